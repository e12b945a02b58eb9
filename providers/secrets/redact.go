package secrets

import (
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// placeholder stands for a secret in everything printed, as in plan.Secret.
const placeholder = "(secret)"

// minimum is the length in bytes from which on a secret is replaced: shorter
// ones stand in ordinary words.
const minimum = 4

// Redactor knows the secrets of a run. It may be used from many goroutines.
type Redactor struct {
	mu sync.RWMutex
	// byStart are the patterns by their first character, sorted: those that begin
	// alike stand together.
	byStart map[rune][]pattern
}

// NewRedactor makes a redactor that knows nothing yet.
func NewRedactor() *Redactor { return &Redactor{byStart: map[rune][]pattern{}} }

// Add makes the redactor replace a secret from now on, in whatever a text may be
// escaped.
func (r *Redactor) Add(s plan.Secret) {
	patterns := patternsOf(s.Reveal())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range patterns {
		list := r.byStart[p[0]]
		if i, known := slices.BinarySearchFunc(list, p, slices.Compare[pattern]); !known {
			r.byStart[p[0]] = slices.Insert(list, i, p)
		}
	}
}

// found is what a search at one place of a text came to.
type found struct {
	match int // bytes of the longest pattern that begins here; 0: none
	// open is how many characters of a pattern the text ends in the middle of; 0:
	// it does not. partly: it ends in the middle of what may be its first character.
	open   int
	partly bool
}

// at looks for the secrets that text begins with.
func (r *Redactor) at(text []byte) found {
	s := search{text: text}
	if u, ok := itself(text); ok {
		if list := r.byStart[u.r]; list != nil {
			s.from(list, 1, u.n)
		}
		return s.found
	}
	units, open := unitsAt(text)
	s.partly = open
	for _, u := range units {
		// A backslash before a letter belongs to what was before, for example to the
		// domain of a user name.
		if text[0] == '\\' && (u.r >= utf8.RuneSelf || isAlphanumeric(u.r)) && strings.TrimLeft(string(text[:u.n]), `\`) == string(u.r) {
			continue
		}
		if list := r.byStart[u.r]; list != nil {
			s.from(list, 1, u.n)
		}
	}
	return s.found
}

// cutMark ends a text that was cut off.
const cutMark = "…"

// Text gives a text with every known secret replaced, also with one whose end was
// cut off with the text's ("…").
func (r *Redactor) Text(s string) string {
	body, isCut := strings.CutSuffix(s, cutMark)
	if !isCut {
		out, _, _ := r.replace(nil, []byte(s), 0, atEnd)
		return string(out)
	}
	// What quoted the text may have hidden a part of it already.
	open := body
	for strings.HasSuffix(open, placeholder) {
		open = strings.TrimSuffix(open, placeholder)
	}
	out, _, hidden := r.replace(nil, []byte(open), 0, atCut)
	if hidden > 0 && len(open) < len(body) {
		return string(out) + cutMark
	}
	return string(out) + body[len(open):] + cutMark
}

// ending says what comes behind a piece of text.
type ending int

const (
	goesOn ending = iota // more: what may be the beginning of a secret is left
	atEnd                // nothing
	atCut                // something that was cut off: the beginning of a secret is one
)

// replace appends text to out with the secrets replaced, as far as they are
// decided: done bytes of it. inside is how many of its first bytes still belong to
// one that was replaced; reached is the same for what follows.
func (r *Redactor) replace(out, text []byte, inside int, end ending) (replaced []byte, done, reached int) {
	const least = 2 // bytes of the beginning of a secret; one is the beginning of too much
	r.mu.RLock()
	defer r.mu.RUnlock()
	hidden := inside // end of what is hidden
	for ; done < len(text); done++ {
		at := r.at(text[done:])
		switch {
		case end == goesOn && (at.open > 0 || at.partly):
			return out, done, max(hidden-done, 0)
		case end == atCut && at.open > 0 && len(text)-done >= least:
			at.match = len(text) + 1 - done // and what was cut off
		}
		if at.match > 0 {
			if hidden <= done {
				out = append(out, placeholder...)
			}
			hidden = max(hidden, done+at.match) // secrets may overlap
		}
		if hidden <= done {
			out = append(out, text[done])
		}
	}
	return out, done, max(hidden-done, 0)
}

// Holds reports whether a text has a known secret in it, in any form.
func (r *Redactor) Holds(s string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	text := []byte(s)
	for i := range text {
		if r.at(text[i:]).match > 0 {
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
	inside   int   // how many bytes of held still belong to a secret that was replaced
	lost     error // of the first write that failed
}

// Write takes all of p unless the writer behind fails.
func (w *RedactingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p...)
	if err := w.pass(goesOn); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was held back. The error is that of the first write that
// failed, now or before: who prints line by line looks at the end only.
func (w *RedactingWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.pass(atEnd) // is in lost
	return w.lost
}

func (w *RedactingWriter) pass(end ending) error {
	out, done, inside := w.redactor.replace(make([]byte, 0, len(w.held)), w.held, w.inside, end)
	w.held, w.inside = append(w.held[:0], w.held[done:]...), inside
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	if w.lost == nil {
		w.lost = err
	}
	return err
}
