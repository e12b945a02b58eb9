package apply

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
)

// tails are what a crash can leave behind the last bytes that were written: nothing,
// a block that was never filled, somebody else's block, and lines that are none of a
// journal's.
func tails() map[string]string {
	return map[string]string{
		"nothing": "", "zeros": strings.Repeat("\x00", 97), "noise": "\xff\xfe}{\"what\":\x01", "noise and lines": "\n\x00\n\xff\n",
		"other JSON": "\nnull\n{}\n[]\n7\n{\"what\":\"flight\",\"step\":\"s1\",\"state\":\"done\"}\n{\"what\":\"end\"}\n", "the begin of a line": "{\"time\":\"2026-",
	}
}

// recorded is the journal of a run that came to its end, with every kind of line
// but stop.
func recorded(t *testing.T) []byte {
	t.Helper()
	s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), step("s3", "b", "one"), step("s4", "a", "three", "s2"))
	s.world.run[addr("a", "two")] = func(nth int, _ plan.Memo) plan.Result {
		switch nth {
		case 1:
			return plan.Failed(plan.NewFault(plan.CodeIronicLocked, "locked by %q", "host-7"))
		case 2:
			return plan.Wait(time.Minute, "cleaning", plan.Memo{"sent": "1"})
		case 3:
			return plan.Wait(0, "another attempt", plan.Memo{plan.MemoAttempt: "2"})
		}
		s.world.set(addr("a", "two"), wanted)
		return plan.Done()
	}
	s.run(t, t.Context())
	raw, err := os.ReadFile(journalPath(s.dir, "p1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{wroteBeginPlan, wroteBegin, wroteWait, wroteAttempt, wroteEnd, wroteEndPlan} {
		if !bytes.Contains(raw, []byte(`"what":"`+what+`"`)) {
			t.Fatalf("the journal has no line %q:\n%s", what, raw)
		}
	}
	return raw
}

// Wherever a journal is cut, and whatever stands behind the cut, it says what its
// whole lines say, to whoever looks and to the run that goes on; and what that run
// writes is whole.
func TestAJournalCutAtEveryByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := recorded(t)
		dir := t.TempDir()
		path := journalPath(dir, "p1")
		same := cmp.Options{cmpopts.IgnoreUnexported(Past{}), cmpopts.EquateEmpty()}
		read := func(content []byte) Past {
			t.Helper()
			past, err := readPast(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			return past
		}
		for cut := range len(raw) + 1 {
			whole := bytes.LastIndexByte(raw[:cut], '\n') + 1
			if cut+1 < len(raw) && raw[cut] == '\n' {
				whole = cut // a line is whole before its end is written
			}
			if cut == len(raw)-1 {
				whole = cut
			}
			want := read(raw[:whole])
			for name, tail := range tails() {
				if tail != "" && tail[0] != '\n' && whole == cut && cut > 0 && raw[cut-1] != '\n' {
					continue // spoils the line itself
				}
				content := append(bytes.Clone(raw[:cut]), tail...)
				got := read(content)
				if diff := cmp.Diff(want, got, same); diff != "" {
					t.Fatalf("cut at %d, then %s:\n%s", cut, name, diff)
				}
				if cut%29 != 0 && cut < len(raw)-2 {
					continue // files take their time
				}
				// One that opens it writes whole lines behind it.
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				j, err := OpenJournal(dir, "p1", time.Now)
				if want.Ended != errors.Is(err, plan.CodePlanApplied) {
					t.Fatalf("cut at %d, then %s: opened: %v", cut, name, err)
				}
				if want.Ended {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, j.Past(), same); diff != "" {
					t.Fatalf("cut at %d, then %s, opened:\n%s", cut, name, diff)
				}
				f := j.add(entry{What: wroteBegin, Step: "s9", At: "s/a/x.nine"})
				if f == nil {
					f = j.flush()
				}
				if err := errors.Join(j.Close(), asError(f)); err != nil {
					t.Fatal(err)
				}
				if past, err := ReadJournal(dir, "p1"); err != nil || !past.Begun["s9"] || len(past.Steps) != len(want.Steps)+1 {
					t.Fatalf("cut at %d, then %s: what was written behind it is lost: %v", cut, name, err)
				}
			}
		}
	})
}

// asError keeps a nil fault a nil error.
func asError(f *plan.Fault) error {
	if f == nil {
		return nil
	}
	return f
}

// Wherever a crash cut the journal, the next run of the plan goes on: what stands as
// done is read and not sent again, what was begun is done once, whether or not its request
// had arrived, and the plan is used up at the end.
func TestARunGoesOnFromEveryByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := recorded(t)
		for cut := range sweep.Points(t, len(raw)-1, 23) {
			for _, arrived := range []bool{true, false} {
				s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), step("s3", "b", "one"), step("s4", "a", "three", "s2"))
				if err := os.WriteFile(journalPath(s.dir, "p1"), raw[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
				past, err := ReadJournal(s.dir, "p1")
				if err != nil || past.Ended {
					t.Fatalf("cut at %d: %+v, %v", cut, past, err)
				}
				for _, st := range s.in.Steps {
					if past.Done[st.ID] || past.Begun[st.ID] && arrived {
						s.world.set(st.Address, wanted)
					}
				}
				s.in.Begun, s.in.Done, s.in.Ledgers = past.Begun, past.Done, past.Ledgers
				r := s.run(t, t.Context())
				for _, st := range r.Steps {
					calls := s.world.calls[st.Step.Address]
					switch {
					case !st.State.OK():
						t.Fatalf("cut at %d, arrived %v: %s", cut, arrived, states(r))
					case past.Done[st.Step.ID] && calls > 0:
						t.Fatalf("cut at %d: %s was done and was sent again", cut, st.Step.ID)
					case calls > 1 || calls == 1 && past.Begun[st.Step.ID] && arrived:
						t.Fatalf("cut at %d, arrived %v: %s was sent %d times more", cut, arrived, st.Step.ID, calls)
					}
				}
				if _, err := OpenJournal(s.dir, "p1", time.Now); !errors.Is(err, plan.CodePlanApplied) {
					t.Fatalf("cut at %d: the plan may be applied again: %v", cut, err)
				}
				now, err := ReadJournal(s.dir, "p1")
				if err != nil || len(now.Done) != len(s.in.Steps) || len(now.Begun) > 0 {
					t.Fatalf("cut at %d: %+v, %v", cut, now, err)
				}
			}
		}
	})
}

// The file of obligations is cut like any other: whole lines count, and what is
// opened behind the cut is found.
func TestObligationsCutAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir, "p1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	of := func(id, kind string) plan.Obligation {
		return plan.Obligation{ID: id, Address: addr("a", kind), Text: "maintenance: on", Memo: plan.Memo{"reason": "cleaning"}}
	}
	for _, o := range []struct{ what, id string }{{wroteOpen, "p1/s1"}, {wroteOpen, "p1/s2"}, {wroteClosed, "p1/s1"}} {
		if f := j.oblige(o.what, of(o.id, "one")); f != nil {
			t.Fatal(f)
		}
	}
	path := filepath.Join(dir, obligationsFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := func(content string) map[string]bool {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := OpenObligations(dir, "s", []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, o := range list {
			ids[o.ID] = true
		}
		return ids
	}
	for cut := range len(raw) + 1 {
		lines := strings.Count(strings.ReplaceAll(string(raw[:cut]), "\n\n", "\n"), "}}\n")
		if cut < len(raw) && raw[cut] == '\n' && cut > 0 && raw[cut-1] == '}' {
			lines++ // whole, without its end
		}
		want := []map[string]bool{{}, {"p1/s1": true}, {"p1/s1": true, "p1/s2": true}, {"p1/s2": true}}[lines]
		for name, tail := range tails() {
			if tail != "" && (cut%5 != 0 || tail[0] != '\n' && cut > 0 && raw[cut-1] == '}') {
				continue // …which spoils the line itself
			}
			if got := open(string(raw[:cut]) + tail); !maps.Equal(got, want) {
				t.Fatalf("cut at %d, then %s: open %v, want %v", cut, name, got, want)
			}
		}
		if cut%61 != 0 {
			continue // each line that is written waits for the disk
		}
		open(string(raw[:cut]))
		if f := j.oblige(wroteOpen, of("p1/s9", "nine")); f != nil {
			t.Fatal(f)
		}
		list, err := OpenObligations(dir, "s", []string{"a"})
		if err != nil || len(list) != len(want)+1 {
			t.Fatalf("cut at %d: %v open, %v", cut, list, err)
		}
	}
}

// small is a disk that is full after some bytes, or that fails when it has to keep
// what it took.
type small struct {
	disk
	left  int
	syncs int // that succeed; negative: all
}

var errFull = errors.New("no space left on device")

func (s *small) Write(b []byte) (int, error) {
	if len(b) <= s.left {
		s.left -= len(b)
		return s.disk.Write(b)
	}
	n, err := s.disk.Write(b[:s.left])
	s.left = 0
	return n, errors.Join(errFull, err)
}

func (s *small) Sync() error {
	if s.syncs == 0 {
		return errFull
	}
	s.syncs--
	return s.disk.Sync()
}

// The disk under a journal fills up at some byte, any byte, or fails at some sync: no
// request of a step is sent whose begin is not on it, the run says so at its end, and
// the next one, with room again, goes on from what is there.
func TestAJournalOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := len(recorded(t))
		for point := range sweep.Points(t, whole+12, 19) {
			s := newSetup(t, []string{"a", "b"}, step("s1", "a", "one"), step("s2", "a", "two", "s1"), step("s3", "b", "one"), step("s4", "a", "three", "s2"))
			j, err := OpenJournal(s.dir, "p1", time.Now)
			if err != nil {
				t.Fatal(err)
			}
			full := &small{disk: j.file, left: point, syncs: -1}
			if point >= whole {
				full.left, full.syncs = 1<<20, point-whole
			}
			j.disk = full
			for _, st := range s.in.Steps {
				s.world.run[st.Address] = func(int, plan.Memo) plan.Result {
					if past, err := ReadJournal(s.dir, "p1"); err != nil || !past.Begun[st.ID] {
						t.Errorf("full after %d: %s was sent and does not stand as begun, %v", point, st.ID, err)
					}
					s.world.set(st.Address, wanted)
					return plan.Done()
				}
			}
			rep, err := Run(t.Context(), s.in, Deps{Reader: s.world, Runner: s.world, Owner: s.world, Clock: RealClock{}, Journal: j}, s.o)
			broke := errors.Is(err, plan.CodeJournal)
			if err != nil && !broke || broke && !errors.Is(err, errFull) {
				t.Fatalf("full after %d: %v", point, err)
			}
			if rep != nil && rep.Interrupted {
				t.Errorf("full after %d: reported as interrupted", point)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			past, err := ReadJournal(s.dir, "p1")
			if err != nil || !broke && !past.Ended {
				t.Fatalf("full after %d: %+v, %v", point, past, err)
			}
			if past.Ended { // also where only the end of the last line has no room
				if len(past.Done) != len(s.in.Steps) {
					t.Fatalf("full after %d: used up with %v done", point, past.Done)
				}
				continue
			}
			sent := maps.Clone(s.world.calls)
			s.in.Begun, s.in.Done, s.in.Ledgers = past.Begun, past.Done, past.Ledgers
			r := s.run(t, t.Context())
			for _, st := range r.Steps {
				if calls := s.world.calls[st.Step.Address]; !st.State.OK() || calls != 1 {
					t.Fatalf("full after %d, then %s: %s was sent %d times, %d before", point, states(r), st.Step.ID, calls, sent[st.Step.Address])
				}
			}
		}
	})
}

// Two writers, where a file system does not pass locks on: each line is whole, and
// what one of them began is begun.
func TestTwoWritersOfAJournal(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenJournal(dir, "p1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(first.Path(), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	second := &Journal{file: file, disk: file, planID: "p1", now: time.Now}
	done := make(chan *plan.Fault)
	const each = 200
	for w, j := range []*Journal{first, second} {
		go func() {
			var f *plan.Fault
			for i := 0; i < each && f == nil; i++ {
				st := step(fmt.Sprintf("s%d-%d", w, i), "a", "one")
				if f = j.begin(st); f == nil && i%2 == 0 {
					f = j.end(st, plan.StepDone, "", nil)
				}
			}
			if f == nil {
				f = j.flush()
			}
			done <- f
		}()
	}
	for range 2 {
		if f := <-done; f != nil {
			t.Fatal(f)
		}
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	past, err := ReadJournal(dir, "p1")
	if err != nil || len(past.Steps) != 2*each || len(past.Done) != each || len(past.Begun) != each {
		t.Errorf("%d steps, %d done, %d begun, %v", len(past.Steps), len(past.Done), len(past.Begun), err)
	}
}
