package secrets

import (
	"bytes"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/enroll-dev/enroll/plan"
)

// placeholder stands for a secret in everything printed, as in plan.Secret.
const placeholder = "(secret)"

// minimum is the length in bytes from which on a secret is replaced: shorter
// ones stand in ordinary words.
const minimum = 4

// Redactor knows the secrets of a run. It may be used from many goroutines.
type Redactor struct {
	mu    sync.RWMutex
	known map[string]bool
	// byStart finds the forms that begin with some bytes, longest first.
	byStart map[[minimum]byte][]string
	longest int // bytes of the longest form
	// starts are the first 1 to minimum-1 bytes of all forms.
	starts map[string]bool
}

// NewRedactor makes a redactor that knows nothing yet.
func NewRedactor() *Redactor {
	return &Redactor{known: map[string]bool{}, byStart: map[[minimum]byte][]string{}, starts: map[string]bool{}}
}

// Add makes the redactor replace a secret from now on, in all its forms.
func (r *Redactor) Add(s plan.Secret) {
	forms := formsOf(s.Reveal())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range forms {
		if len(f) < minimum || r.known[f] {
			continue
		}
		r.known[f] = true
		r.longest = max(r.longest, len(f))
		key := [minimum]byte([]byte(f[:minimum]))
		list := r.byStart[key]
		list = slices.Insert(list, sort.Search(len(list), func(i int) bool { return len(list[i]) < len(f) }), f)
		r.byStart[key] = list
		for n := 1; n < minimum; n++ {
			r.starts[f[:n]] = true
		}
	}
}

// at gives the length of the longest form that text begins with, and whether
// text could be the beginning of a longer one.
func (r *Redactor) at(text []byte) (match int, open bool) {
	if len(text) < minimum {
		return 0, r.starts[string(text)]
	}
	for _, f := range r.byStart[[minimum]byte(text[:minimum])] {
		switch {
		case len(f) > len(text):
			open = open || strings.HasPrefix(f, string(text))
		case match == 0 && bytes.HasPrefix(text, []byte(f)):
			match = len(f)
		}
	}
	return match, open
}

// cutMark ends a text that was cut off.
const cutMark = "…"

// Text gives a text with every known secret replaced, also with one whose end was
// cut off with the text's ("…").
func (r *Redactor) Text(s string) string {
	// The cut-off one is looked for first: a short secret inside of it would
	// otherwise be replaced and leave the pieces around it.
	end := ""
	if body, isCut := strings.CutSuffix(s, cutMark); isCut {
		// What quoted the text may have hidden a part of it already.
		open := body
		for strings.HasSuffix(open, placeholder) {
			open = strings.TrimSuffix(open, placeholder)
		}
		if at, found := r.cutOff(open); found {
			s, end = body[:at], placeholder+cutMark
		}
	}
	if r.Holds(s) {
		var b strings.Builder
		w := r.Writer(&b)
		_, _ = w.Write([]byte(s)) // a builder takes everything
		_ = w.Flush()
		s = b.String()
	}
	return s + end
}

// cutOff finds where the beginning of a secret that reaches to the end starts.
func (r *Redactor) cutOff(body string) (at int, found bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	const least = 2 // bytes; one is the beginning of too much
	for i := max(0, len(body)-r.longest); i+least <= len(body); i++ {
		if _, open := r.at([]byte(body[i:])); open {
			return i, true
		}
	}
	return 0, false
}

// Holds reports whether a text has a known secret in it, in any form.
func (r *Redactor) Holds(s string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	text := []byte(s)
	for i := 0; i+minimum <= len(text); i++ {
		if match, _ := r.at(text[i:]); match > 0 {
			return true
		}
	}
	return false
}

// Writer gives a writer that replaces known secrets and passes everything else
// to w. Call Flush at the end.
func (r *Redactor) Writer(w io.Writer) *RedactingWriter {
	return &RedactingWriter{redactor: r, to: w}
}

// RedactingWriter replaces secrets, also those that come in pieces: what could
// be the beginning of one is held back until the next Write or Flush.
type RedactingWriter struct {
	redactor *Redactor
	mu       sync.Mutex
	to       io.Writer
	held     []byte
	inside   int // how many bytes of held still belong to a secret that was replaced
}

// Write takes all of p unless the writer behind fails.
func (w *RedactingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p...)
	if err := w.pass(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was held back.
func (w *RedactingWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(true)
}

func (w *RedactingWriter) pass(final bool) error {
	out := make([]byte, 0, len(w.held))
	i := 0
	w.redactor.mu.RLock()
	for ; i < len(w.held); i++ {
		match, open := w.redactor.at(w.held[i:])
		if open && !final {
			break
		}
		if match > 0 {
			if w.inside == 0 {
				out = append(out, placeholder...)
			}
			w.inside = max(w.inside, match) // secrets may overlap
		}
		if w.inside > 0 {
			w.inside--
			continue
		}
		out = append(out, w.held[i])
	}
	w.redactor.mu.RUnlock()
	w.held = append(w.held[:0], w.held[i:]...)
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}
