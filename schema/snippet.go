package schema

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	maxSnippetLines = 4
	maxSnippetWidth = 200 // bytes shown of a line on each side of the place
)

// snippet cuts the lines of a range out of the file, with everything hidden
// replaced, and says where in the cut text the range is.
func (s *source) snippet(r Range) *Snippet {
	if r.Start.Line == 0 || r.Start.Byte > len(s.bytes) {
		return nil
	}
	from := bytes.LastIndexByte(s.bytes[:r.Start.Byte], '\n') + 1
	end := min(max(r.End.Byte, r.Start.Byte), len(s.bytes))
	to := lineEnd(s.bytes, end)
	if end > r.Start.Byte && s.bytes[end-1] == '\n' {
		to = end - 1 // the range ends with its line
	}
	if lines := bytes.Count(s.bytes[from:to], []byte("\n")) + 1; lines > maxSnippetLines {
		to = lineEnd(s.bytes, r.Start.Byte)
	}
	end = min(end, to)
	start := min(r.Start.Byte, to)
	// A file can be one line of megabytes.
	front, back := "", ""
	if start-from > maxSnippetWidth {
		from, front = runeStart(s.bytes, start-maxSnippetWidth), "…"
	}
	if to-start > 2*maxSnippetWidth {
		to, back = runeStart(s.bytes, start+2*maxSnippetWidth), "…"
		end = min(end, to)
	}
	var code strings.Builder
	code.WriteString(front)
	out := &Snippet{StartLine: r.Start.Line, HighlightStartOffset: -1, HighlightEndOffset: -1, Context: s.context(r)}
	mark := func(i int) { // called before byte i is written
		if i == start {
			out.HighlightStartOffset = code.Len()
		}
		if i == end {
			out.HighlightEndOffset = code.Len()
		}
	}
	hidden := s.hiddenSpans()
	for i := from; i < to; {
		mark(i)
		for len(hidden) > 0 && hidden[0].to <= i {
			hidden = hidden[1:]
		}
		if len(hidden) == 0 || hidden[0].from > i {
			code.WriteByte(s.bytes[i])
			i++
			continue
		}
		stop := min(hidden[0].to, to)
		inside, done := start > i && start < stop, end > i && end < stop
		if inside {
			out.HighlightStartOffset = code.Len()
		}
		code.WriteString(hiddenText)
		if done {
			out.HighlightEndOffset = code.Len()
		}
		i = stop
	}
	mark(to)
	code.WriteString(back)
	out.Code = strings.TrimSuffix(code.String(), "\r")
	out.HighlightStartOffset = min(max(out.HighlightStartOffset, 0), len(out.Code))
	out.HighlightEndOffset = min(max(out.HighlightEndOffset, out.HighlightStartOffset), len(out.Code))
	return out
}

func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

func runeStart(text []byte, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// context names the blocks around a place: `site "lon14" / netbox`.
func (s *source) context(r Range) *string {
	if s.body == nil {
		return nil
	}
	var path []string
	for body := s.body; body != nil; {
		var next *hclsyntax.Body
		for _, b := range body.Blocks {
			if b.OpenBraceRange.Start.Byte <= r.Start.Byte && r.Start.Byte < b.CloseBraceRange.End.Byte {
				name := b.Type
				for i, l := range b.Labels {
					if i < len(b.LabelRanges) && s.hides(b.LabelRanges[i]) {
						name += " " + hiddenText
						continue
					}
					name += " " + quote(l)
				}
				path, next = append(path, name), b.Body
				break
			}
		}
		body = next
	}
	if len(path) == 0 {
		return nil
	}
	text := strings.Join(path, " / ")
	return &text
}
