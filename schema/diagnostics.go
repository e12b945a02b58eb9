package schema

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/enroll-dev/enroll/plan"
)

// Severity of a diagnostic, in the words of Terraform's JSON.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Pos is a place in a file. Line and Column count from 1, Column in characters;
// Byte counts from 0.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Range is a piece of a file. A zero Range means that no place can be named.
type Range struct {
	Filename string `json:"filename"`
	Start    Pos    `json:"start"`
	End      Pos    `json:"end"` // exclusive
}

// IsZero reports whether no place is named.
func (r Range) IsZero() bool { return r.Filename == "" }

// String is file:line, as editors and people take it.
func (r Range) String() string {
	if r.IsZero() {
		return ""
	}
	if r.Start.Line == 0 {
		return r.Filename
	}
	return r.Filename + ":" + strconv.Itoa(r.Start.Line)
}

// Snippet is the source around a range. What may be a secret is replaced; the
// offsets count bytes of Code.
type Snippet struct {
	Context              *string `json:"context"` // the blocks around it, outermost first; null outside of any
	Code                 string  `json:"code"`
	StartLine            int     `json:"start_line"`
	HighlightStartOffset int     `json:"highlight_start_offset"`
	HighlightEndOffset   int     `json:"highlight_end_offset"`
	// Values are what the references of the expression stand for, as far as they
	// are known and no secret.
	Values []ReferenceValue `json:"values"`
}

// ReferenceValue is what one reference of an expression stands for, in the shape
// of Terraform's JSON.
type ReferenceValue struct {
	Traversal string `json:"traversal"` // var.port
	Statement string `json:"statement"` // is 70000
}

// Diagnostic is one mistake, or one warning. It is a plain value. It never holds
// the text of a literal that stands where a secret belongs.
type Diagnostic struct {
	Severity   Severity         `json:"severity"`
	Summary    string           `json:"summary"`
	Detail     string           `json:"detail"`               // what is wrong and what to write instead
	Suggestion string           `json:"suggestion,omitempty"` // the name that was probably meant
	Range      Range            `json:"range,omitzero"`
	Snippet    *Snippet         `json:"snippet,omitempty"`
	values     []ReferenceValue // finish puts them into the snippet
}

// Diagnostics are all mistakes of a folder, ordered by file and line.
type Diagnostics []Diagnostic

// HasErrors reports whether one of them is an error.
func (ds Diagnostics) HasErrors() bool { return ds.count(Error) > 0 }

func (ds Diagnostics) count(s Severity) int {
	n := 0
	for i := range ds {
		if ds[i].Severity == s {
			n++
		}
	}
	return n
}

// Error makes the list an error; it names the first mistake and counts the rest.
func (ds Diagnostics) Error() string {
	for i := range ds {
		if ds[i].Severity != Error {
			continue
		}
		text := ds[i].Summary + ": " + ds[i].Detail
		if place := ds[i].Range.String(); place != "" {
			text = place + ": " + text
		}
		if n := ds.count(Error); n > 1 {
			text += fmt.Sprintf(" (and %d more)", n-1)
		}
		return text
	}
	return "no error"
}

// Fault is the list as a fault of one device, for expressions that fail on what
// NetBox says about it. It is nil when there is no error.
func (ds Diagnostics) Fault(device string) *plan.Fault {
	if !ds.HasErrors() {
		return nil
	}
	f := plan.NewFault(plan.CodeConfigInvalid, "the site's expressions do not hold for device %q: %s", device, ds.Error())
	for i := range ds {
		if ds[i].Severity == Error {
			f = f.With("at "+ds[i].Range.String(), ds[i].Detail)
		}
	}
	return f
}

func (ds Diagnostics) sorted() Diagnostics {
	sort.SliceStable(ds, func(i, j int) bool {
		a, b := ds[i].Range, ds[j].Range
		if a.Filename != b.Filename {
			return a.Filename < b.Filename
		}
		return a.Start.Byte < b.Start.Byte
	})
	return ds
}

// maxDiagnostics bounds what a damaged file can print.
const maxDiagnostics = 200

// reporter collects diagnostics of one run.
type reporter struct {
	sources map[string]*source
	files   map[string]*folderFiles // by the folder as the user gave it
	diags   Diagnostics
	now     time.Time
	// flowing are the names of variables and locals that stand where a secret
	// belongs.
	flowing map[string]bool
	broken  bool // a file could not be read whole: what is missing may stand there
	// included: the folder that is decoded belongs to whichever site includes it.
	included bool
}

func newReporter() *reporter {
	return &reporter{sources: map[string]*source{}, files: map[string]*folderFiles{}}
}

// error reports a mistake at a range.
func (r *reporter) error(at hcl.Range, summary, format string, args ...any) *Diagnostic {
	return r.add(Error, at, summary, fmt.Sprintf(format, args...))
}

func (r *reporter) warn(at hcl.Range, summary, format string, args ...any) *Diagnostic {
	return r.add(Warning, at, summary, fmt.Sprintf(format, args...))
}

// suggested is error with a name that was probably meant.
func (r *reporter) suggested(at hcl.Range, suggestion, summary, format string, args ...any) {
	d := r.error(at, summary, format, args...)
	d.Detail += didYouMean(suggestion)
	d.Suggestion = suggestion
}

func (r *reporter) add(severity Severity, at hcl.Range, summary, detail string) *Diagnostic {
	if len(r.diags) >= maxDiagnostics {
		return &Diagnostic{} // finish says that there are more
	}
	if src := r.sources[at.Filename]; src != nil {
		at = src.inFile(at)
	}
	r.diags = append(r.diags, Diagnostic{Severity: severity, Summary: summary, Detail: detail, Range: fromHCLRange(at)})
	return &r.diags[len(r.diags)-1]
}

// finish orders the diagnostics and cuts their snippets out. It comes last,
// because only then all places to hide are known.
func (r *reporter) finish() Diagnostics {
	for i := range r.diags {
		d := &r.diags[i]
		if src := r.sources[d.Range.Filename]; src != nil {
			d.Snippet = src.snippet(d.Range)
			if d.Snippet != nil {
				d.Snippet.Values = append([]ReferenceValue{}, d.values...)
			}
		}
	}
	full := len(r.diags) >= maxDiagnostics
	ds := r.diags.sorted()
	if full {
		ds = append(ds, Diagnostic{Severity: Error, Summary: "Too many mistakes", Detail: fmt.Sprintf("Only the first %d are shown.", maxDiagnostics)})
	}
	return ds
}

// fromHCL takes over what the parser or the evaluator of hcl reports.
func (r *reporter) fromHCL(diags hcl.Diagnostics) {
	for _, d := range diags {
		var at hcl.Range
		if d.Subject != nil {
			at = *d.Subject
		}
		severity := Error
		if d.Severity == hcl.DiagWarning {
			severity = Warning
		}
		detail := d.Detail
		if src := r.sources[at.Filename]; src != nil && src.hides(at) {
			detail = "The value cannot be read here. It is not shown because a secret belongs here: write secret(\"ITEM\", \"FIELD\")."
		}
		summary := d.Summary
		if strings.Contains(detail, errSecretText.Error()) { // of format, which wraps it
			summary, detail = "Secret inside an expression", secretAlone
		}
		r.add(severity, at, summary, detail)
	}
}

func fromHCLRange(r hcl.Range) Range {
	return Range{
		Filename: r.Filename,
		Start:    Pos{Line: r.Start.Line, Column: r.Start.Column, Byte: r.Start.Byte},
		End:      Pos{Line: r.End.Line, Column: r.End.Column, Byte: r.End.Byte},
	}
}

func quote(s string) string { return strconv.Quote(s) }

// listed writes names as people do: "a", "b" or "c".
func listed(names []string, word string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " " + word + " " + quoted[len(quoted)-1]
}

// didYouMean is the sentence for a suggestion, empty without one.
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return " Did you mean " + quote(name) + "?"
}
