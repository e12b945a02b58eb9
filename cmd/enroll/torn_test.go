package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// A crash cut the last lines of a journal at some byte, any byte, when all was done
// already: status tells of the run, the run is continued without writing anything
// anywhere, and then, not before, the plan is used up.
func TestAJournalThatIsCutShort(t *testing.T) {
	e := newEstate(t, 1, families()[3])
	file := filepath.Join(e.dir, "gpu-001.plan")
	if r := e.run("plan", "gpu-001", "--out", file); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	if r := e.apply(file); r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.text)
	}
	journals, err := apply.ListJournals(filepath.Join(e.state(), "enroll", "journal"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("%d journals, %v", len(journals), err)
	}
	path := journals[0].Path
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	world := e.world()
	lines := bytes.SplitAfter(whole, []byte("\n"))
	last := len(bytes.Join(lines[len(lines)-6:], nil)) // the end of the plan, and of its last steps
	for point := range sweep.Points(t, last, 97) {
		cut := len(whole) - last + point
		for _, tail := range []string{"", "\x00\x00\x00\x00", "{\"time\":\n"} {
			name := fmt.Sprintf("cut at %d of %d, then %q", cut, len(whole), tail)
			if err := os.WriteFile(path, append(bytes.Clone(whole[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			used := strings.HasSuffix(string(whole[:cut]), "\"}") && tail == "" && cut == len(whole)-1
			if r := e.run("status", file); r.code != exitDone || !strings.Contains(r.text, journals[0].PlanID) {
				t.Fatalf("%s: status: exit %d\n%s", name, r.code, r.text)
			}
			e.lab.Recorder.Reset()
			r := e.run("apply", "--resume", file)
			if want := map[bool]int{true: exitStale, false: exitDone}[used]; r.code != want {
				t.Fatalf("%s: exit %d, want %d\n%s", name, r.code, want, r.text)
			}
			if n := e.lab.Recorder.Count(func(r exchange.Record) bool { return r.Mutating && r.System != "vault" }); n > 0 {
				t.Errorf("%s: %d requests that write\n%s", name, n, r.text)
			}
			if r := e.run("apply", "--auto-approve", file); r.code != exitStale || !strings.Contains(r.text, "PLAN_ALREADY_APPLIED") {
				t.Errorf("%s: once more: exit %d\n%s", name, r.code, r.text)
			}
		}
	}
	if d := differences(world, e.world()); d != "" {
		t.Errorf("the world is another one:\n%s", d)
	}
}
