// Package exchange is what all simulators have in common: every request that
// one receives is recorded, and a fault can be injected at a named or numbered
// one. It is used by the …test packages, the embedded lab and tests only.
package exchange

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Record is one request as a simulator saw it.
type Record struct {
	Seq      int       `json:"seq"` // from 1, over all systems that share the recorder
	Time     time.Time `json:"time"`
	System   string    `json:"system"` // netbox, ironic, bmc, dhcp, vault
	Device   string    `json:"device,omitempty"`
	Method   string    `json:"method"` // HTTP method, or sftp.rename, ssh.exec, ssh.login
	Path     string    `json:"path"`
	Status   int       `json:"status"` // HTTP status, or a command's exit status; 0 when the connection was cut
	Mutating bool      `json:"mutating"`
	Fault    string    `json:"fault,omitempty"` // the injected fault, if one hit
	// Body is what an HTTP request that writes carried. It may hold secrets and is
	// never written out.
	Body []byte `json:"-"`
}

// Recorder collects records and decides on faults. The zero value is not
// usable; see NewRecorder.
type Recorder struct {
	mu      sync.Mutex
	now     func() time.Time
	out     io.Writer
	seq     int
	records []Record
	faults  []*Fault
	before  func(Record)
}

// NewRecorder makes a recorder. now is the simulators' clock. Records are also
// written to out as JSON lines, unless it is nil.
func NewRecorder(now func() time.Time, out io.Writer) *Recorder {
	return &Recorder{now: now, out: out}
}

// Begin numbers a request and tells which fault, if any, hits it. Call End
// with the same record when it was answered.
func (r *Recorder) Begin(rec Record) (Record, *Fault) {
	r.mu.Lock()
	r.seq++
	rec.Seq, rec.Time = r.seq, r.now()
	before := r.before
	r.mu.Unlock()
	if before != nil {
		before(rec)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		if f.hits(rec) {
			rec.Fault = string(f.Kind)
			return rec, f
		}
	}
	return rec, nil
}

// End stores the record with its outcome.
func (r *Recorder) End(rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
	if r.out != nil {
		line, err := json.Marshal(rec)
		if err == nil {
			_, _ = r.out.Write(append(line, '\n')) // a lost log line must not change what a simulator answers
		}
	}
}

// Records copies what was recorded so far, in the order of completion.
func (r *Recorder) Records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Record(nil), r.records...)
}

// Count counts the records that fit.
func (r *Recorder) Count(fits func(Record) bool) int {
	n := 0
	for _, rec := range r.Records() {
		if fits(rec) {
			n++
		}
	}
	return n
}

// Reset forgets records, numbering and faults.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq, r.records, r.faults = 0, nil, nil
}

// Before calls f with each request before it is served, nil for nobody: what
// somebody else does between two exchanges. f may reach into the simulators and
// inject faults, which hit this very request too.
func (r *Recorder) Before(f func(Record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = f
}

// Inject arms a fault.
func (r *Recorder) Inject(f *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, f)
}
