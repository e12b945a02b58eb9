package view

import (
	"fmt"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"
)

const contextLines = 3

// edit is one line of a difference: '-', '+' or ' ' for both.
type edit struct {
	mark byte
	text string
}

// Unified writes the difference of two files as `patch` reads it; nothing when
// they are equal.
func Unified(oldName, newName, before, after string) string {
	if before == after {
		return ""
	}
	edits := lineEdits(before, after)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", oldName, newName)
	oldLine, newLine := 1, 1 // of the edit at i
	for i := 0; i < len(edits); {
		if edits[i].mark == ' ' {
			oldLine, newLine, i = oldLine+1, newLine+1, i+1
			continue
		}
		from := max(i-contextLines, 0)
		end := hunkEnd(edits, i)
		lead := i - from
		oldCount, newCount := 0, 0
		for _, e := range edits[from:end] {
			if e.mark != '+' {
				oldCount++
			}
			if e.mark != '-' {
				newCount++
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", hunkSpan(oldLine-lead, oldCount), hunkSpan(newLine-lead, newCount))
		for _, e := range edits[from:end] {
			b.WriteByte(e.mark)
			b.WriteString(e.text)
			if !strings.HasSuffix(e.text, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine, newLine = oldLine-lead+oldCount, newLine-lead+newCount
		i = end
	}
	return b.String()
}

// hunkEnd is behind the context after the last change that belongs together with
// the one at i.
func hunkEnd(edits []edit, i int) int {
	last := i
	for j := i; j < len(edits) && j <= last+2*contextLines; j++ {
		if edits[j].mark != ' ' {
			last = j
		}
	}
	return min(last+1+contextLines, len(edits))
}

// hunkSpan writes begin and length; a side without lines begins before.
func hunkSpan(line, count int) string {
	if count == 0 {
		line--
	}
	if count == 1 {
		return itoa(line)
	}
	return itoa(line) + "," + itoa(count)
}

func lineEdits(before, after string) []edit {
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0 // the same difference on every machine
	a, b, lines := dmp.DiffLinesToRunes(before, after)
	var out []edit
	for _, d := range dmp.DiffCharsToLines(dmp.DiffMainRunes(a, b, false), lines) {
		mark := map[diffmatchpatch.Operation]byte{diffmatchpatch.DiffDelete: '-', diffmatchpatch.DiffInsert: '+', diffmatchpatch.DiffEqual: ' '}[d.Type]
		for _, l := range strings.SplitAfter(d.Text, "\n") {
			if l != "" {
				out = append(out, edit{mark, l})
			}
		}
	}
	return out
}
