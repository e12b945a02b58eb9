package apply

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// Past is what a journal says about the runs of its plan until now.
type Past struct {
	PlanID  string          `json:"plan_id"`
	Site    string          `json:"site"`
	Path    string          `json:"path"`
	Ended   bool            `json:"ended"`   // a run came to its end: the plan is used up
	Stopped bool            `json:"stopped"` // the last run was stopped in good order
	Begun   map[string]bool `json:"-"`       // ids of steps that were begun and did not come to a good end
	Done    map[string]bool `json:"-"`       // ids of steps that did

	// For people who look from elsewhere.
	Running bool       `json:"running"`                // a process has it open for writing
	PID     int        `json:"pid"`                    // of the last run
	Began   time.Time  `json:"began"`                  // the last run
	First   time.Time  `json:"first"`                  // the first one
	Hash    string     `json:"content_hash,omitempty"` // of the plan, as the first run was approved
	Last    time.Time  `json:"last"`                   // of the last line
	Total   int        `json:"total"`                  // steps of the plan
	Steps   []PastStep `json:"steps"`

	// Ledgers are what the runs spent on the steps of Begun.
	Ledgers map[string]Ledger `json:"-"`

	open map[string]*opened // steps that the last run has under way
	torn bool               // the last line was cut short by a crash
}

// Of gives PLAN_FILE_INVALID when the journal tells of another plan than the one
// with this id and content: its steps are others, whatever their ids.
func (p Past) Of(planID, hash string) *plan.Fault {
	blank := p.First.IsZero() && len(p.Steps) == 0
	if (p.PlanID == "" || p.PlanID == planID) && (blank || p.Hash == hash) {
		return nil
	}
	f := plan.NewFault(plan.CodePlanInvalid, "the journal of plan %s is that of another content; nothing was done", planID)
	if p.PlanID != "" && p.PlanID != planID {
		f = plan.NewFault(plan.CodePlanInvalid, "the journal of plan %s is that of plan %s; nothing was done", planID, p.PlanID)
	}
	if p.Path != "" {
		f = f.With("journal", p.Path)
	}
	return f.With("approved", p.Hash).With("now", hash).
		WithHint("Find out who changed the plan file or the journal, and make a new plan.")
}

// PastStep is a step as far as a journal tells of it, in the order of first mention.
type PastStep struct {
	ID      string         `json:"id"`
	Address string         `json:"address"`
	Began   time.Time      `json:"began"`
	State   plan.StepState `json:"state,omitempty"` // empty while it is under way
	Text    string         `json:"text,omitempty"`  // what was last observed, or why it was not run
	Fault   *plan.Fault    `json:"fault,omitempty"`
	Ended   time.Time      `json:"ended,omitzero"`
}

// ReadJournal reads the journal of a plan; a missing one has no past.
func ReadJournal(dir, planID string) (Past, error) {
	past, err := readFile(journalPath(dir, planID))
	if errors.Is(err, fs.ErrNotExist) {
		return emptyPast(), nil
	}
	return past, err
}

// ListJournals reads the journals of a folder, the one that was written last
// first. A missing folder has none.
func ListJournals(dir string) ([]Past, error) {
	paths, err := filepath.Glob(journalPath(dir, "*"))
	if err != nil {
		return nil, err
	}
	var out []Past
	for _, path := range paths {
		if filepath.Base(path) == obligationsFile {
			continue
		}
		past, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if past.PlanID != "" {
			out = append(out, past)
		}
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].Last.After(out[b].Last) })
	return out, nil
}

func readFile(path string) (Past, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the folder
	if err != nil {
		return Past{}, plan.NewFault(plan.CodeJournal, "the journal %s cannot be read", path).Because(err)
	}
	defer func() { _ = f.Close() }() // read only
	past, err := readPast(f)
	if err != nil {
		return Past{}, plan.NewFault(plan.CodeJournal, "the journal %s cannot be read", path).Because(err)
	}
	past.Path = path
	if past.PlanID == "" {
		past.PlanID = strings.TrimSuffix(filepath.Base(path), journalSuffix)
	}
	// Whoever applies the plan holds the exclusive lock.
	past.Running = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
	return past, nil
}

// readPast reads all lines. A last line that is no whole one is what a crash
// left, with whatever the disk had there; such a line in the middle was ended by the
// run that came after.
func readPast(r io.Reader) (Past, error) {
	past := emptyPast()
	at := map[string]int{}
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		var e entry
		if json.Unmarshal(line, &e) == nil && e.ours() {
			past.take(e, at)
		}
		if errors.Is(err, io.EOF) {
			past.torn = len(line) > 0
			past.settle()
			return past, nil
		}
		if err != nil {
			return past, err
		}
	}
}

func emptyPast() Past {
	return Past{Begun: map[string]bool{}, Done: map[string]bool{}, Ledgers: map[string]Ledger{}, open: map[string]*opened{}}
}

// opened is a step under way: when it began, and what it spent in this run on a
// busy system, of that in attempts before the one that goes on.
type opened struct {
	began        time.Time
	busy, before time.Duration
	attempt      int
}

// settle adds what the steps under way had spent when their run ended, which is
// when it wrote its last line.
func (p *Past) settle() {
	for id, o := range p.open {
		p.book(id, o, p.Last)
	}
	clear(p.open)
}

func (p *Past) book(id string, o *opened, until time.Time) {
	l := p.Ledgers[id]
	l.Spent += until.Sub(o.began) - o.busy
	if o.attempt > 0 {
		l.Attempt, l.Busy = o.attempt, 0
	}
	l.Busy += o.busy - o.before
	p.Ledgers[id] = l
}

// take takes in one line; at is where a step's entry is.
func (p *Past) take(e entry, at map[string]int) {
	if e.What == wroteBeginPlan {
		p.settle()
	}
	p.Last = e.Time
	switch e.What {
	case wroteBeginPlan:
		p.PlanID, p.Site, p.PID, p.Total, p.Began, p.Stopped = e.PlanID, e.Site, e.PID, e.Steps, e.Time, false
		if p.First.IsZero() {
			p.First, p.Hash = e.Time, e.Hash
		}
		return
	case wroteEndPlan:
		p.Ended = true
		return
	case wroteStop:
		p.Stopped = true
		return
	}
	i, known := at[e.Step]
	if !known {
		i = len(p.Steps)
		at[e.Step] = i
		p.Steps = append(p.Steps, PastStep{ID: e.Step, Address: e.At})
	}
	s := &p.Steps[i]
	switch e.What {
	case wroteBegin:
		p.Begun[e.Step] = true
		*s = PastStep{ID: e.Step, Address: e.At, Began: e.Time}
		p.open[e.Step] = &opened{began: e.Time}
	case wroteWait:
		s.Text = e.Text
		if o := p.open[e.Step]; o != nil {
			o.busy = max(o.busy, e.Busy)
		}
	case wroteAttempt:
		if o := p.open[e.Step]; o != nil {
			o.attempt, o.before = e.Attempt, o.busy
		}
	case wroteEnd:
		if o := p.open[e.Step]; o != nil {
			p.book(e.Step, o, e.Time)
			delete(p.open, e.Step)
		}
		if e.State.OK() {
			delete(p.Begun, e.Step)
			delete(p.Ledgers, e.Step)
			p.Done[e.Step] = true
		}
		s.State, s.Text, s.Fault, s.Ended = e.State, e.Text, e.Fault, e.Time
	}
}
