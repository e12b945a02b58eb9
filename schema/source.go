package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/enroll-dev/enroll/plan"
)

// Site files are written by people. What is larger is not a site file.
const (
	maxFileSize = 2 << 20
	maxFiles    = 200
)

// source is one file that was read.
type source struct {
	name    string // as the user would type it
	folder  string // the folder it stands in
	bytes   []byte
	body    *hclsyntax.Body
	tokens  hclsyntax.Tokens // while the site is loaded; of JSON: none
	json    *jsonNode        // the same of the JSON form
	broken  bool             // it does not parse
	escaped []escapedText    // of the JSON form, in order
	hidden  []span           // bytes that no snippet shows
	ordered bool             // hidden is sorted and merged
}

// folder reads all *.hcl and *.hcl.json files of a folder, in the order of their names. It
// refuses symbolic links that lead out of the folder: what is reviewed in Git is
// what is read. Links within it are fine (a mounted Kubernetes ConfigMap is made
// of them).
func (r *reporter) folder(dir string, files fs.FS) []plan.SourceFile {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		r.broken = true
		r.add(Error, inFile(dir), "Folder cannot be read", "The folder cannot be listed: "+reason(err)+".")
		return nil
	}
	var names []string
	for _, e := range entries {
		if isSiteFile(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	switch {
	case len(names) == 0:
		r.broken = true
		r.add(Error, inFile(dir), "No site file", "The folder holds no file with the ending .hcl. Write one with a site block; sites/demo is an example.")
	case len(names) > maxFiles:
		r.broken = true
		r.add(Error, inFile(dir), "Too many files", "The folder holds more than 200 files with the ending .hcl, so it is hardly a site's folder.")
		return nil
	}
	var read []plan.SourceFile
	for _, name := range names {
		if f, ok := r.file(files, dir, name); ok {
			read = append(read, f)
		}
	}
	return read
}

// isSiteFile takes the native form of HCL and its JSON form.
func isSiteFile(name string) bool {
	return strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json")
}

// file reads and parses one file.
func (r *reporter) file(files fs.FS, dir, name string) (plan.SourceFile, bool) {
	shown := filepath.Join(dir, name)
	text, err := readFile(files, name)
	if err != nil {
		r.broken = true
		detail := "The file cannot be read: " + reason(err) + "."
		if leadsOut(err) {
			detail = "The file is a symbolic link that leads out of the site's folder. Put the file itself into the folder."
		}
		r.add(Error, inFile(shown), "File cannot be read", detail)
		return plan.SourceFile{}, false
	}
	sum := sha256.Sum256(text)
	src := &source{name: shown, bytes: text}
	if !r.readable(src) {
		r.broken = true
		return plan.SourceFile{}, false
	}
	r.sources[shown] = src
	if !r.parse(src) {
		return plan.SourceFile{}, false
	}
	return plan.SourceFile{Name: shown, SHA256: hex.EncodeToString(sum[:])}, true
}

// parse sets a source's body. False: it was not even tried.
func (r *reporter) parse(src *source) bool {
	if strings.HasSuffix(src.name, ".json") {
		return r.parseJSON(src)
	}
	start := hcl.Pos{Line: 1, Column: 1}
	tokens, _ := hclsyntax.LexConfig(src.bytes, src.name, start) // the parser reports the same again
	src.tokens, src.hidden = tokens, hideTokens(tokens)
	src.hideNamed(r.flowing)
	if at, problem := tooDeep(tokens); problem != "" {
		r.broken = true
		r.error(at, "File is nested too deeply", "%s Split the expression with locals.", problem)
		return false
	}
	parsed, diags := hclsyntax.ParseConfig(src.bytes, src.name, start)
	if diags.HasErrors() {
		r.broken = true
		src.broken = true
		src.hidden = append(src.hidden, hideLines(src.bytes, isSensitiveName)...)
	}
	r.fromHCL(firstOfEach(diags))
	if parsed != nil {
		src.body, _ = parsed.Body.(*hclsyntax.Body)
	}
	return true
}

// firstOfEach keeps the first diagnostic of each summary: one quote that is not
// closed makes every further line of a file wrong.
func firstOfEach(diags hcl.Diagnostics) hcl.Diagnostics {
	var first hcl.Diagnostics
	seen := map[string]bool{}
	for _, d := range diags {
		if !seen[d.Summary] {
			seen[d.Summary] = true
			first = append(first, d)
		}
	}
	return first
}

var (
	errTooLarge = errors.New("it is larger than 2 MiB, so it is hardly a site file")
	errNoFile   = errors.New("it is not a regular file")
	errMoreJSON = errors.New("it is more than one JSON value")
)

func readFile(files fs.FS, name string) ([]byte, error) {
	// Looked at before it is opened: opening a named pipe waits for a writer.
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(text) > maxFileSize {
		return nil, errTooLarge
	}
	return text, err
}

// leadsOut recognises the refusal of os.Root, which has no exported error.
func leadsOut(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && strings.Contains(p.Err.Error(), "escapes")
}

// text is a piece of the file. The ranges of expressions that do not parse may
// end before they begin.
func (s *source) text(at hcl.Range) string {
	if e := s.escapedAt(at); e != nil {
		begin := e.at.Start.Byte + 1
		return e.text[min(at.Start.Byte-begin, len(e.text)):min(at.End.Byte-begin, len(e.text))]
	}
	if at.Start.Byte < 0 || at.End.Byte < at.Start.Byte || at.End.Byte > len(s.bytes) {
		return ""
	}
	return string(s.bytes[at.Start.Byte:at.End.Byte])
}

// reason is an error's innermost text, without the path that stands beside it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// readable refuses bytes that are no UTF-8 text, and control characters. A byte order mark is skipped by
// the scanner, CRLF counts as one line end.
func (r *reporter) readable(src *source) bool {
	text := src.bytes
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		r.add(Error, inFile(src.name), "File is not UTF-8", "The file is UTF-16. Save it as UTF-8.")
		return false
	}
	line, column := 1, 1
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size == 1 {
			at := hcl.Pos{Line: line, Column: column, Byte: i}
			r.error(hcl.Range{Filename: src.name, Start: at, End: hcl.Pos{Line: line, Column: column + 1, Byte: i + 1}},
				"File is not UTF-8", "Line %d, column %d holds the byte %#02x, which is no UTF-8 text. Save the file as UTF-8.", line, column, text[i])
			return false
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			at := hcl.Pos{Line: line, Column: column, Byte: i}
			r.error(hcl.Range{Filename: src.name, Start: at, End: hcl.Pos{Line: line, Column: column + 1, Byte: i + 1}},
				"Control character", "Line %d, column %d holds the control character U+%04X, which no editor shows. Remove it; where a value needs it, write \\u%04x.", line, column, c, c)
			return false
		}
		if c == '\n' {
			line, column = line+1, 0
		}
		i, column = i+size, column+1
	}
	return true
}

func inFile(name string) hcl.Range { return hcl.Range{Filename: name} }
