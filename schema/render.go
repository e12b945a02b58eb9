package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

const textWidth = 100 // WriteText wraps details there

type report struct {
	FormatVersion string      `json:"format_version"`
	Valid         bool        `json:"valid"`
	ErrorCount    int         `json:"error_count"`
	WarningCount  int         `json:"warning_count"`
	Diagnostics   Diagnostics `json:"diagnostics"`
}

// WriteJSON writes one object in the shape that tooling for `terraform validate
// -json` reads.
func (ds Diagnostics) WriteJSON(w io.Writer) error {
	list := ds
	if list == nil {
		list = Diagnostics{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(report{FormatVersion: "1.0", Valid: !ds.HasErrors(), ErrorCount: ds.count(Error), WarningCount: ds.count(Warning), Diagnostics: list})
	if err != nil {
		return err
	}
	_, err = w.Write(plan.VisibleJSON(b.Bytes()))
	return err
}

// WriteText writes the list for people: what and where, the source line with the
// place underlined, and the way out.
func (ds Diagnostics) WriteText(w io.Writer, color bool) error {
	var b strings.Builder
	for i := range ds {
		writeDiagnostic(&b, &ds[i], paint(color))
	}
	if len(ds) > 0 {
		fmt.Fprintf(&b, "%s, %s.\n", counted(ds.count(Error), "error"), counted(ds.count(Warning), "warning"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type painter func(code, text string) string

func paint(color bool) painter {
	return func(code, text string) string {
		if !color || text == "" {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
}

const (
	red, yellow, bold, dim = "1;31", "1;33", "1", "2"
)

func writeDiagnostic(b *strings.Builder, d *Diagnostic, p painter) {
	word, shade := "Error", red
	if d.Severity == Warning {
		word, shade = "Warning", yellow
	}
	fmt.Fprintf(b, "%s %s\n", p(shade, word+":"), p(bold, printable(d.Summary)))
	if s := d.Snippet; s != nil {
		place := fmt.Sprintf("%s:%d:%d", d.Range.Filename, d.Range.Start.Line, d.Range.Start.Column)
		if s.Context != nil {
			place += ", in " + *s.Context
		}
		fmt.Fprintf(b, "  %s\n", p(dim, printable(place)))
		writeCode(b, s, p, shade)
		for _, v := range s.Values {
			fmt.Fprintf(b, "     │ %s\n", p(dim, printable(v.Traversal+" "+v.Statement)))
		}
	} else if !d.Range.IsZero() {
		fmt.Fprintf(b, "  %s\n", p(dim, printable(d.Range.String())))
	}
	for _, line := range wrap(printable(d.Detail), textWidth-2) {
		fmt.Fprintf(b, "  %s\n", line)
	}
	b.WriteByte('\n')
}

// writeCode prints the lines with their numbers and underlines the highlighted
// part of each.
func writeCode(b *strings.Builder, s *Snippet, p painter, shade string) {
	offset := 0
	for i, line := range strings.Split(s.Code, "\n") {
		fmt.Fprintf(b, "%5d│ %s\n", s.StartLine+i, printable(line))
		from, to := max(s.HighlightStartOffset-offset, 0), min(s.HighlightEndOffset-offset, len(line))
		if from <= len(line) && to >= from && s.HighlightEndOffset > offset {
			under := strings.Repeat("─", max(1, cells(line[from:to])))
			fmt.Fprintf(b, "     │ %s%s\n", blank(line[:from]), p(shade, under))
		}
		offset += len(line) + 1
	}
}

// blank keeps tabs, so that what stands below lines up.
func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\t'
		}
		return ' '
	}, s)
}

func cells(s string) int { return utf8.RuneCountInString(s) }

// printable takes control characters out: a site file must not steer the
// terminal of the person who reads the message.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return '·'
		}
		return r
	}, s)
}

func wrap(text string, width int) []string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && cells(line)+1+cells(word) > width {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}
