package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// identity are the members that the content hash does not cover: what makes this
// one plan, and how it came about.
var identity = []string{"content_hash", "plan_id", "created", "expires", "site_dir", "statistics", "seal"} //nolint:gochecknoglobals // a constant table

// Encode writes the plan file: canonical JSON with sorted members, two spaces
// of indent and a final newline. Equal plans give equal bytes.
func Encode(p *Plan) ([]byte, error) {
	d, err := documentOf(p)
	if err != nil {
		return nil, err
	}
	return d.with("seal", d.without("seal").hash()).indented()
}

// documentOf is the plan's document. What its content hash was taken of is not
// made again: it is nearly all of the work.
func documentOf(p *Plan) (document, error) {
	if p.content == nil || p.content.hash != p.ContentHash {
		return encodeDocument(p)
	}
	head := *p
	head.Steps, head.Checks, head.Observed, head.Diagnostics, head.Devices = nil, nil, nil, nil, nil
	head.Inputs, head.Scope, head.Racks, head.Policies = Inputs{}, ScopeRecord{}, nil, nil
	d, err := encodeDocument(&head)
	if err != nil {
		return nil, err
	}
	return d.only(identity...).join(p.content.document), nil
}

// ContentHash is the hash that people approve: SHA-256 over the canonical form
// of everything but the identity of this one plan (id, times, site folder) and
// its statistics.
func ContentHash(p *Plan) string {
	c, err := contentOf(p)
	if err != nil {
		return "" // unreachable: every part of a plan encodes; Encode reports it
	}
	return c.hash
}

// content is what a content hash was taken of.
type content struct {
	document
	hash string
}

func contentOf(p *Plan) (*content, error) {
	d, err := encodeDocument(p)
	if err != nil {
		return nil, err
	}
	d = d.without(identity...)
	return &content{d, d.hash()}, nil
}

// takeHash gives the plan its content hash, and keeps what it was taken of.
func (p *Plan) takeHash() {
	c, err := contentOf(p)
	if err != nil {
		return // as for ContentHash
	}
	p.content, p.ContentHash = c, c.hash
}

func encodeDocument(p *Plan) (document, error) {
	raw, err := encode(formOf(p))
	if err != nil {
		return nil, err
	}
	return canonize(raw)
}

// encode is json.Marshal that leaves < > & as they are: plans are read by people.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// list writes an empty list as [], which readers need not tell from null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Decode reads a plan file and proves it whole: known format, hashes unchanged,
// closed lists kept, ids unique, needs complete and without a cycle, counts those
// of the steps. What a later
// minor version adds is covered by the hashes and otherwise passed over. Every
// failure is a PLAN_FILE_INVALID fault.
func Decode(raw []byte) (*Plan, error) {
	d, err := parseDocument(raw)
	if err != nil {
		return nil, damaged(err)
	}
	var head struct {
		FormatVersion string `json:"format_version"`
		ContentHash   string `json:"content_hash"`
		Seal          string `json:"seal"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, invalid("a member of the file has the wrong form").Because(err)
	}
	if major, _, _ := strings.Cut(head.FormatVersion, "."); major != "1" {
		return nil, invalid("the file has format version %q, this program reads 1.x", head.FormatVersion).
			WithHint("Use the version of enroll that made the plan, or plan again with this one.")
	}
	if got := d.without(identity...).hash(); got != head.ContentHash {
		return nil, invalid("the content hash is %s but the file says %s: it was edited or damaged", got, head.ContentHash)
	}
	if d.without("seal").hash() != head.Seal {
		return nil, invalid("the seal does not fit: the file was edited or damaged outside of what the content hash covers")
	}
	p := &Plan{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, invalid("a member of the file has the wrong form").Because(err)
	}
	if !planID.MatchString(p.PlanID) {
		return nil, invalid("the plan id %q is none", p.PlanID)
	}
	if slices.Contains(p.Steps, nil) || slices.ContainsFunc(p.Diagnostics, func(d Diagnostic) bool { return d.Fault == nil }) {
		return nil, invalid("a step or a diagnostic of the file is empty")
	}
	if err := checkLists(p); err != nil {
		return nil, invalid("the file has a word that this version does not know").Because(err).
			WithHint("Use the version of enroll that made the plan, or plan again with this one.")
	}
	if err := checkNeeds(p.Steps); err != nil {
		return nil, invalid("the steps do not fit together").Because(err)
	}
	if err := checkCounts(p); err != nil {
		return nil, invalid("the file does not say what its steps do").Because(err)
	}
	return p, nil
}

// damaged says where a file stops being JSON.
func damaged(err error) *Fault {
	f := invalid("the file is no whole JSON document").Because(err)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return f.With("at byte", strconv.FormatInt(syntax.Offset, 10))
	}
	return f
}

// planID is the form of plan ids; they become names of files.
var planID = regexp.MustCompile(`^[0-9a-f]{12}$`)

func invalid(format string, args ...any) *Fault { return NewFault(CodePlanInvalid, format, args...) }
