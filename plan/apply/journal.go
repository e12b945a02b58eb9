package apply

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// entry is one line of a journal.
type entry struct {
	Time   time.Time      `json:"time"`
	What   string         `json:"what"` // begin-plan, begin, wait, attempt, end, stop, end-plan
	PlanID string         `json:"plan_id,omitempty"`
	Site   string         `json:"site,omitempty"`
	PID    int            `json:"pid,omitempty"`
	Steps  int            `json:"steps,omitempty"`
	Hash   string         `json:"content_hash,omitempty"`
	Step   string         `json:"step,omitempty"`
	At     string         `json:"address,omitempty"`
	Action plan.Action    `json:"action,omitempty"`
	State  plan.StepState `json:"state,omitempty"`
	Text   string         `json:"text,omitempty"`
	// Attempt is the whole attempt that begins; Busy is what the step has spent in
	// this run on a system that was busy.
	Attempt int           `json:"attempt,omitempty"`
	Busy    time.Duration `json:"busy_ns,omitempty"`
	Fault   *plan.Fault   `json:"fault,omitempty"`
}

const (
	wroteBeginPlan = "begin-plan"
	wroteBegin     = "begin"
	wroteWait      = "wait"
	wroteAttempt   = "attempt"
	wroteEnd       = "end"
	wroteStop      = "stop"
	wroteEndPlan   = "end-plan"
)

// ours reports whether a line is one that a Journal writes.
func (e entry) ours() bool {
	switch e.What {
	case wroteBeginPlan, wroteStop, wroteEndPlan:
		return !e.Time.IsZero()
	case wroteBegin, wroteWait, wroteAttempt, wroteEnd:
		return !e.Time.IsZero() && e.Step != ""
	}
	return false
}

// Journal is the append-only record of the runs of one plan: JSON lines in
// PLANID.jsonl, mode 0600. A step's begin is on disk before its first request is
// sent. The open file carries a lock, so that one plan is applied by one process.
//
// What ended is written when the loop has taken in everything that arrived, and
// before anything new starts; begins that come together share one fsync.
type Journal struct {
	mu      sync.Mutex
	file    *os.File
	disk    disk // the file, as what lines are written to
	planID  string
	now     func() time.Time
	past    Past
	buffer  bytes.Buffer // lines that are not in the file yet
	written int          // lines that are
	failed  *plan.Fault  // the first write error; nothing more may be started

	syncing sync.Mutex
	synced  int // lines that are on disk
}

// disk is what a journal asks of its file when it writes.
type disk interface {
	io.Writer
	Sync() error
}

// OpenJournal opens or continues the journal of a plan in a folder, which it
// makes when it is missing. LOCK_HELD when another process has it open,
// JOURNAL_FAILED when it cannot be written, PLAN_ALREADY_APPLIED when the plan
// came to its end before.
func OpenJournal(dir, planID string, now func() time.Time) (*Journal, error) {
	path := journalPath(dir, planID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, plan.NewFault(plan.CodeJournal, "the journal's folder %s cannot be made; nothing was started", dir).Because(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return nil, plan.NewFault(plan.CodeJournal, "the journal %s cannot be opened; nothing was started", path).Because(err)
	}
	j := &Journal{file: f, disk: f, planID: planID, now: now}
	if err := j.prepare(); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return j, nil
}

func (j *Journal) prepare() error {
	if err := syscall.Flock(int(j.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return plan.NewFault(plan.CodeLockHeld, "plan %s is being applied by another process", j.planID).With("journal", j.file.Name()).Because(err)
	}
	past, err := readPast(j.file)
	if err != nil {
		return plan.NewFault(plan.CodeJournal, "the journal %s cannot be read; nothing was started", j.file.Name()).Because(err)
	}
	if past.Ended {
		return alreadyApplied(j.planID, j.file.Name())
	}
	j.past = past
	if past.torn {
		// A line that a crash cut short ends here, so that the next one is whole.
		if _, err := j.file.WriteString("\n"); err != nil {
			return plan.NewFault(plan.CodeJournal, "the journal %s cannot be written; nothing was started", j.file.Name()).Because(err)
		}
	}
	return nil
}

func alreadyApplied(planID, path string) *plan.Fault {
	return plan.NewFault(plan.CodePlanApplied, "plan %s was applied before", planID).With("journal", path)
}

const journalSuffix = ".jsonl"

func journalPath(dir, planID string) string { return filepath.Join(dir, planID+journalSuffix) }

// CheckUnused gives PLAN_ALREADY_APPLIED when the plan came to its end before, and
// PLAN_FILE_INVALID when its journal is another plan's. It takes no lock: OpenJournal
// and Run decide.
func CheckUnused(dir, planID, hash string) error {
	past, err := ReadJournal(dir, planID)
	if err != nil {
		return err
	}
	if past.Ended {
		return alreadyApplied(planID, journalPath(dir, planID))
	}
	if f := past.Of(planID, hash); f != nil {
		return f
	}
	return nil
}

// Past is what earlier runs wrote, as it was when the journal was opened.
func (j *Journal) Past() Past { return j.past }

// Path is the journal's file.
func (j *Journal) Path() string { return j.file.Name() }

// Close releases the lock and the file.
func (j *Journal) Close() error { return j.file.Close() }

// add appends one line to the buffer. After a failure every further write fails.
func (j *Journal) add(e entry) *plan.Fault {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	e.Time = j.now().UTC()
	if err := json.NewEncoder(&j.buffer).Encode(e); err != nil {
		return j.fail(err)
	}
	return nil
}

// flush writes the buffer to the file.
func (j *Journal) flush() *plan.Fault {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flushed()
}

func (j *Journal) flushed() *plan.Fault {
	if j.failed != nil || j.buffer.Len() == 0 {
		return j.failed
	}
	lines := bytes.Count(j.buffer.Bytes(), []byte{'\n'})
	if _, err := j.buffer.WriteTo(j.disk); err != nil {
		return j.fail(err)
	}
	j.written += lines
	return nil
}

// commit writes the buffer and waits until it is on disk, which one that came
// later may have seen to.
func (j *Journal) commit() *plan.Fault {
	j.mu.Lock()
	f, mine := j.flushed(), j.written
	j.mu.Unlock()
	if f != nil {
		return f
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= mine {
		return nil
	}
	j.mu.Lock()
	upTo := j.written
	j.mu.Unlock()
	if err := j.disk.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.fail(err)
	}
	j.synced = upTo
	return nil
}

// fail keeps the first error; the caller holds the lock.
func (j *Journal) fail(err error) *plan.Fault {
	if j.failed == nil {
		j.failed = plan.NewFault(plan.CodeJournal, "the journal %s cannot be written", j.file.Name()).Because(err)
	}
	return j.failed
}

// put is add and commit.
func (j *Journal) put(e entry) *plan.Fault {
	if f := j.add(e); f != nil {
		return f
	}
	return j.commit()
}

func (j *Journal) beginPlan(in Input) *plan.Fault {
	return j.put(entry{What: wroteBeginPlan, PlanID: j.planID, Site: in.Scope.Site.Name, PID: os.Getpid(), Steps: len(in.Steps), Hash: in.ContentHash})
}

// wait tells those who look from elsewhere what a step waits for, and a later run
// what it had spent on a busy system.
func (j *Journal) wait(s *plan.Step, text string, busy time.Duration) *plan.Fault {
	return j.add(entry{What: wroteWait, Step: s.ID, At: s.Address.String(), Text: text, Busy: busy})
}

// attempt is on disk before the attempt's first exchange: a run that was killed
// does not get it back.
func (j *Journal) attempt(s *plan.Step, n int) *plan.Fault {
	return j.put(entry{What: wroteAttempt, Step: s.ID, At: s.Address.String(), Attempt: n})
}

func (j *Journal) begin(s *plan.Step) *plan.Fault {
	e := entry{What: wroteBegin, Step: s.ID, At: s.Address.String(), Action: s.Action}
	if !s.Action.Mutates() {
		return j.add(e)
	}
	return j.put(e)
}

func (j *Journal) end(s *plan.Step, state plan.StepState, text string, f *plan.Fault) *plan.Fault {
	return j.add(entry{What: wroteEnd, Step: s.ID, At: s.Address.String(), State: state, Text: text, Fault: f})
}

// finish closes the run: one that came to its natural end uses the plan up,
// one that was stopped may be continued.
func (j *Journal) finish(interrupted bool) *plan.Fault {
	what := wroteEndPlan
	if interrupted {
		what = wroteStop
	}
	return j.put(entry{What: what, PlanID: j.planID})
}
