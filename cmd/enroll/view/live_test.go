package view

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/enroll-dev/enroll/plan"
)

// recorded is a writer that two goroutines may use.
type recorded struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(b)
}

func (r *recorded) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// pseudoTerminal is a terminal of that many columns.
func pseudoTerminal(t *testing.T, columns uint16) int {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return int(f.Fd())
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func TestLiveBlock(t *testing.T) {
	var p plan.Plan
	var steps []*plan.Step
	for i := range 40 {
		s := &plan.Step{ID: fmt.Sprintf("s%d", i), Address: plan.Address{Site: "s", Device: fmt.Sprintf("gpu-%03d", i), System: "ironic", Kind: "provision", Key: "provide"}, Budget: plan.Duration(3 * time.Hour)}
		steps = append(steps, s)
	}
	p.Steps = steps
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	var out recorded
	l := NewLive(&out, pseudoTerminal(t, 60), &p, false, func() time.Time { return now.Add(12 * time.Minute) })
	for _, s := range steps {
		l.Event(plan.Event{Time: now, Kind: plan.EventBegin, Step: s})
		l.Event(plan.Event{Time: now, Kind: plan.EventWait, Step: s, Text: "provision state cleaning, a text that is too long for this terminal"})
	}
	if got := l.text(); len(got) != maxRows+1 || !strings.HasPrefix(got[0], "  gpu-000/ironic.provision[provide]  12m of 3h0m0s: provision state cleaning") || got[maxRows] != "  and 24 devices more at work; 0 of 40 steps over" {
		t.Errorf("the block:\n%s", strings.Join(got, "\n"))
	}
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(out.String(), "and 24 devices more") {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is drawn:\n%s", out.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, s := range steps {
		l.Event(plan.Event{Time: now, Kind: plan.EventEnd, Step: s, State: plan.StepDone})
	}
	l.End()
	text := escapes.ReplaceAllString(out.String(), "")
	if n := strings.Count(text, "✓ gpu-"); n != len(steps) {
		t.Errorf("%d ends are told, want %d:\n%s", n, len(steps), text)
	}
	for _, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > 60 && !strings.Contains(line, "✓") {
			t.Errorf("a row is wider than the terminal: %q", line)
		}
	}
}
