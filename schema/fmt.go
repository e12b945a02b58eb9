package schema

import (
	"bytes"
	"errors"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format writes a site file in the one form that `enroll fmt` knows: hclwrite's
// indent and alignment, no more than one empty line in a row, none at the
// beginning and the end, line ends without carriage returns, a final newline.
// Comments stay where they are, and so does every byte inside a heredoc.
// Formatting what was formatted changes nothing. A file that does not parse gives
// diagnostics and no text.
func Format(name string, text []byte) ([]byte, Diagnostics) {
	r := newReporter()
	src := &source{name: name, bytes: text}
	if !r.readable(src) || !r.formattable(src) {
		return nil, r.finish()
	}
	// hclwrite aligns in one pass and may see more to align in the second.
	const most = 5
	out := text
	for range most {
		next := collapse(hclwrite.Format(unixLines(out)))
		if bytes.Equal(next, out) {
			break
		}
		out = next
	}
	if err := sameMeaning(text, out); err != nil {
		r.add(Error, inFile(name), "File cannot be formatted", "The formatted text would not mean the same: "+err.Error()+". The file is left as it is; please report it.")
		return nil, r.finish()
	}
	return out, nil
}

// formattable parses the file, for its mistakes.
func (r *reporter) formattable(src *source) bool {
	r.sources[src.name] = src
	if len(src.bytes) > maxFileSize {
		r.add(Error, inFile(src.name), "File cannot be read", "The file cannot be read: "+errTooLarge.Error()+".")
		return false
	}
	tokens, _ := hclsyntax.LexConfig(src.bytes, src.name, hcl.InitialPos) // the parser reports the same again
	src.tokens, src.hidden = tokens, hideTokens(tokens)
	if at, problem := tooDeep(tokens); problem != "" {
		r.error(at, "File is nested too deeply", "%s Split the expression with locals.", problem)
		return false
	}
	_, diags := hclsyntax.ParseConfig(src.bytes, src.name, hcl.InitialPos)
	if diags.HasErrors() {
		src.broken = true
		r.flow()
		src.hidden = append(src.hidden, hideLines(src.bytes, isSensitiveName)...)
	}
	r.fromHCL(firstOfEach(diags))
	return !diags.HasErrors()
}

// piece is a stretch of lines, counted from 0, that formatting must not look into.
type piece struct{ from, to int }

// untouchable finds the lines inside heredocs and comments of several lines: what
// looks like an empty line there is text.
func untouchable(text []byte) []piece {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	var out []piece
	depth, begin := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			if depth == 0 {
				begin = t.Range.Start.Line
			}
			depth++
		case hclsyntax.TokenCHeredoc:
			if depth--; depth == 0 {
				out = append(out, piece{begin, t.Range.End.Line - 1})
			}
		case hclsyntax.TokenComment:
			if depth == 0 && t.Range.End.Line > t.Range.Start.Line && bytes.HasPrefix(t.Bytes, []byte("/*")) {
				out = append(out, piece{t.Range.Start.Line, t.Range.End.Line - 1})
			}
		default:
		}
	}
	return out
}

// inside reports whether a line, counted from 0, lies in one of the pieces.
func inside(pieces []piece, line int) bool {
	i := sort.Search(len(pieces), func(i int) bool { return pieces[i].to >= line })
	return i < len(pieces) && pieces[i].from <= line
}

// unixLines takes the carriage returns off line ends, but for those in heredocs,
// which are part of a value.
func unixLines(text []byte) []byte {
	if !bytes.Contains(text, []byte("\r")) {
		return text
	}
	pieces := untouchable(text)
	lines := bytes.SplitAfter(text, []byte("\n"))
	var out bytes.Buffer
	for i, line := range lines {
		if inside(pieces, i) {
			out.Write(line)
			continue
		}
		out.Write(bytes.TrimRight(line, "\r\n"))
		if bytes.HasSuffix(line, []byte("\n")) {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// collapse leaves one empty line of several, and none at both ends of the file.
func collapse(text []byte) []byte {
	pieces := untouchable(text)
	var out bytes.Buffer
	empty := true // as if one stood before the first line
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		blank := len(bytes.TrimSpace(line)) == 0 && !inside(pieces, i)
		switch {
		case len(line) == 0, blank && empty:
			continue
		case blank:
			out.WriteByte('\n')
		default:
			out.Write(line)
		}
		empty = blank
	}
	whole := out.Bytes()
	if empty && len(whole) > 0 { // the last line that was written is an empty one
		whole = whole[:len(whole)-1]
	}
	if len(whole) > 0 && whole[len(whole)-1] != '\n' {
		whole = append(whole, '\n')
	}
	return whole
}

// sameMeaning compares two files by their tokens without the space between them.
func sameMeaning(before, after []byte) error {
	a, b := meaning(before), meaning(after)
	if len(a) != len(b) {
		return errors.New("it has another number of parts")
	}
	for i := range a {
		if a[i] != b[i] {
			return errors.New("a part of it differs")
		}
	}
	return nil
}

func meaning(text []byte) []string {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	var out []string
	heredoc := 0
	for _, t := range tokens {
		said := string(t.Bytes)
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenEOF:
			continue
		case hclsyntax.TokenOHeredoc:
			heredoc++
			said = strings.TrimRight(said, "\r\n")
		case hclsyntax.TokenCHeredoc:
			heredoc--
			said = strings.TrimSpace(said)
		case hclsyntax.TokenComment:
			said = strings.TrimSpace(strings.ReplaceAll(said, "\r\n", "\n"))
		default:
			if heredoc == 0 {
				said = strings.TrimSpace(said)
			}
		}
		out = append(out, said)
	}
	return out
}

// Shown is the text of a site file with what may be a secret hidden, for
// differences that end up in logs.
func Shown(text []byte) string {
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	src := &source{bytes: text, tokens: tokens, hidden: hideTokens(tokens)}
	(&reporter{sources: map[string]*source{"": src}}).flow()
	var b strings.Builder
	at := 0
	for _, h := range src.hiddenSpans() {
		if h.from < at || h.to > len(text) {
			continue
		}
		b.Write(text[at:h.from])
		b.WriteString(hiddenText)
		at = h.to
	}
	b.Write(text[at:])
	return b.String()
}
