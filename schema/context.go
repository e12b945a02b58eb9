package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// ContextMistake is one mistake in the config-context documents of a device. It is
// a plain value and never a secret's place: config contexts hold none.
type ContextMistake struct {
	Severity   Severity // unknown keys are warnings: nothing is done with them
	Path       string   // "ironic_settings.bond.mode", "inspection_validation.disks.models[0]"
	Detail     string   // completes a sentence that begins with the path
	Suggestion string   // the key or value that was probably meant
	Missing    bool     // nothing is there
	// Source is the config context that sets the value; empty when NetBox does not
	// give it.
	Source string
}

// Text is the mistake as one sentence.
func (m ContextMistake) Text() string {
	text := m.Path + " " + strings.TrimSuffix(m.Detail, ".") + "."
	if m.Source != "" {
		text += " The config context " + quote(m.Source) + " sets it."
	}
	return text + didYouMean(m.Suggestion)
}

// Fault is the mistake as a fault of a device; its owner is NETBOX. url is the page
// or API address of the rendered context.
func (m ContextMistake) Fault(device, url string) *plan.Fault {
	code := plan.CodeIntentInvalid
	if m.Missing {
		code = plan.CodeIntentIncomplete
	}
	f := plan.NewFault(code, "config context of %s: %s", device, m.Text()).With("path", m.Path).With("url", url)
	if m.Source != "" {
		f = f.With("config_context", m.Source)
	}
	return f
}

// ContextLayer is one config context of NetBox, or a device's local context data.
type ContextLayer struct {
	Name string
	Data map[string]any
}

// ContextSource tells which layer sets a path of the rendered context. The layers
// are given in NetBox's order: by weight, then by name, the local context data
// last. NetBox merges objects, replaces everything else, and replaces whole what
// stands over an empty object.
func ContextSource(layers []ContextLayer) func(path string) string {
	return func(path string) string {
		steps := strings.Split(path, ".")
		if i := strings.IndexByte(steps[len(steps)-1], '['); i >= 0 { // lists are set whole
			steps[len(steps)-1] = steps[len(steps)-1][:i]
		}
		for n := len(layers) - 1; n >= 0; n-- {
			if sets(layers[n].Data, steps) {
				return layers[n].Name
			}
		}
		return ""
	}
}

// sets reports whether a layer decides what stands at a path: it has the path, or
// something that is no filled object on the way to it.
func sets(data map[string]any, steps []string) bool {
	for i, step := range steps {
		v, there := data[step]
		if !there {
			return false
		}
		inner, isObject := v.(map[string]any)
		if i == len(steps)-1 || !isObject || len(inner) == 0 {
			return true
		}
		data = inner
	}
	return false
}

// maxContextMistakes bounds what a damaged context can print.
const maxContextMistakes = 100

// CheckContext judges the documents of a rendered config context as
// encoding/json decodes it. What belongs to other programs is not looked at. source
// may be nil.
func CheckContext(context map[string]any, source func(path string) string) []ContextMistake {
	c := &contextCheck{source: source}
	for _, d := range contextDocuments() {
		v, there := context[d.name]
		if !there || v == nil {
			if d.required {
				c.missing(d.name, "is not there. Set it in a config context that applies to the device")
			}
			continue
		}
		c.value(d.name, d, v)
	}
	return c.found
}

type contextCheck struct {
	source func(string) string
	found  []ContextMistake
}

func (c *contextCheck) add(m ContextMistake) {
	if len(c.found) >= maxContextMistakes {
		return
	}
	m.Path = cutText(printable(m.Path), 200)
	if c.source != nil && !m.Missing {
		m.Source = c.source(m.Path)
	}
	c.found = append(c.found, m)
}

func (c *contextCheck) wrong(path, format string, args ...any) {
	c.add(ContextMistake{Severity: Error, Path: path, Detail: fmt.Sprintf(format, args...)})
}

func (c *contextCheck) missing(path, detail string) {
	c.add(ContextMistake{Severity: Error, Path: path, Detail: detail, Missing: true})
}

// value judges one value by its row.
func (c *contextCheck) value(path string, k contextKey, v any) {
	switch k.typ {
	case contextObject:
		if object, ok := v.(map[string]any); ok {
			c.object(path, k, object)
			return
		}
		c.wrong(path, "is %s, not an object. Write for example %s", jsonKind(v), k.example)
	case contextText:
		c.text(path, k, v)
	case contextBool:
		if _, ok := v.(bool); !ok {
			c.wrong(path, "is %s, not true or false", shownJSON(v))
		}
	case contextCount:
		if !isCount(v) {
			c.wrong(path, "is %s, not a whole number from 0 to 1000000", shownJSON(v))
		}
	case contextTexts:
		c.texts(path, k, v)
	case contextStrings:
		c.strings(path, v)
	case contextPairs:
		if s, ok := v.(string); ok {
			if !arePairs(s) {
				c.wrong(path, "is %s, not NAME:VALUE,NAME:VALUE", shownJSON(v))
			}
			return
		}
		c.strings(path, v)
	}
}

func (c *contextCheck) object(path string, k contextKey, object map[string]any) {
	var names []string
	for _, child := range k.keys {
		names = append(names, child.name)
		v, there := object[child.name]
		switch {
		case there && v != nil:
			c.value(path+"."+child.name, child, v)
		case child.required:
			c.missing(path+"."+child.name, "is not set. Write for example "+child.example)
		}
	}
	if k.free {
		return
	}
	for _, name := range sortedNames(object) {
		if !slices.Contains(names, name) {
			c.add(ContextMistake{Severity: Warning, Path: path + "." + name, Suggestion: plan.Suggest(cutText(name, 60), names),
				Detail: "is no key that enroll knows; nothing is done with it. Remove it, or correct its name"})
		}
	}
}

func (c *contextCheck) text(path string, k contextKey, v any) bool {
	s, ok := v.(string)
	switch {
	case !ok:
		c.wrong(path, "is %s, not a string%s", shownJSON(v), forExample(k, ""))
	case strings.TrimSpace(s) == "":
		c.wrong(path, "is an empty string%s", forExample(k, ", or leave the key out"))
	case isPlaceholder(s):
		c.wrong(path, "is the placeholder %s, which a template leaves when it has nothing to write%s", shownJSON(v), forExample(k, ", or leave the key out"))
	case len(k.enum) > 0 && !slices.Contains(k.enum, s):
		c.add(ContextMistake{Severity: Error, Path: path, Detail: "is " + shownJSON(v) + ", not " + listed(k.enum, "or"), Suggestion: plan.Suggest(cutText(s, 60), k.enum)})
	case k.check != nil && k.check(s) != nil:
		c.wrong(path, "%s", strings.TrimSuffix(k.check(s).Error(), "."))
	default:
		return true
	}
	return false
}

// forExample says what to write, where there is an example.
func forExample(k contextKey, more string) string {
	if k.example == "" {
		return ""
	}
	return ". Write for example " + k.example + more
}

func (c *contextCheck) texts(path string, k contextKey, v any) {
	list, ok := v.([]any)
	if !ok {
		c.wrong(path, "is %s, not a list of strings. Write for example %s", shownJSON(v), k.example)
		return
	}
	one := contextKey{check: k.check, enum: k.enum}
	for i, e := range list {
		c.text(fmt.Sprintf("%s[%d]", path, i), one, e)
	}
}

func (c *contextCheck) strings(path string, v any) {
	object, ok := v.(map[string]any)
	if !ok {
		c.wrong(path, "is %s, not an object of strings", shownJSON(v))
		return
	}
	for _, name := range sortedNames(object) {
		if object[name] != nil { // null takes a key of another context back
			c.text(path+"."+name, contextKey{}, object[name])
		}
	}
}

// isPlaceholder finds what templates and exports write for nothing.
func isPlaceholder(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "none", "null", "nil", "n/a", "undefined":
		return true
	}
	return false
}

func isCount(v any) bool {
	var f float64
	switch v := v.(type) {
	case float64:
		f = v
	case int:
		f = float64(v)
	case json.Number:
		n, err := v.Float64()
		if err != nil {
			return false
		}
		f = n
	default:
		return false
	}
	return f == math.Trunc(f) && f >= 0 && f <= 1e6
}

func arePairs(s string) bool {
	for _, pair := range strings.Split(s, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(pair), ":")
		if !found || name == "" || value == "" {
			return false
		}
	}
	return true
}

// jsonKind names the JSON type of a decoded value, with an article.
func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// shownJSON is a short form of a wrong value; nested ones are only named.
func shownJSON(v any) string {
	switch v := v.(type) {
	case string:
		return quote(cutText(printable(v), 40))
	case nil, []any, map[string]any:
		return jsonKind(v)
	}
	return fmt.Sprint(v)
}

func cutText(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + "…"
}

// inspectionValidationKeys are what an inspection must have found.
func inspectionValidationKeys() []contextKey {
	count := func(name, doc, example string) contextKey {
		return contextKey{name: name, typ: contextCount, doc: doc, example: example}
	}
	texts := func(name, doc, example string) contextKey {
		return contextKey{name: name, typ: contextTexts, doc: doc, example: example}
	}
	return []contextKey{
		{name: "cpu", typ: contextObject, doc: "The processors.", example: `{"sockets": 2, "cores": 64, "architecture": "x86_64"}`, keys: []contextKey{
			count("sockets", "How many processors.", "2"), count("cores", "How many cores all processors have together.", "64"),
			{name: "architecture", typ: contextText, enum: []string{"x86_64", "aarch64"}, doc: "Their architecture.", example: `"x86_64"`},
		}},
		{name: "nics", typ: contextObject, doc: "The network interfaces.", example: `{"count": 2, "vendors": ["0x15b3"], "link": true}`, keys: []contextKey{
			count("count", "How many, by MAC address: a VLAN is none.", "2"), {name: "vendors", typ: contextTexts, check: isPCIVendor, doc: "PCI vendor ids of which each must have one.", example: `["0x15b3"]`},
			{name: "link", typ: contextBool, doc: "Whether each must have a carrier. One that reports none explicitly is refused in any case.", example: "true"},
		}},
		{name: "disks", typ: contextObject, doc: "The disks.", example: `{"count": 8, "models": ["MZQL27T6HBLA"]}`, keys: []contextKey{
			count("count", "How many.", "8"), texts("models", "Models of which each disk must be one.", `["MZQL27T6HBLA"]`),
		}},
		{name: "memory", typ: contextObject, doc: "The memory.", example: `{"total_gib": 2048, "dimms": 32}`, keys: []contextKey{
			count("total_gib", "How much, in GiB.", "2048"), count("dimms", "How many modules.", "32"), count("dimm_gib", "The size of each module, in GiB.", "64"),
			{name: "consistent", typ: contextBool, doc: "Whether all modules must be of one size, speed and maker.", example: "true"},
		}},
		{name: "bios", typ: contextObject, doc: "The BIOS.", example: `{"block": ["2.1.0"]}`, keys: []contextKey{
			texts("allow", "Versions of which it must have one.", `["2.3.4"]`), texts("block", "Versions that it must not have.", `["2.1.0"]`),
		}},
		count("gpus", "How many GPUs are on the PCI bus: display controllers and accelerators, without the screen of the BMC.", "8"),
		{name: "gpu_devices", typ: contextTexts, check: isPCIDevice, doc: "What counts as a GPU, by PCI vendor and product id. For machines with other devices of those classes, or with virtual functions.", example: `["10de:2330"]`},
	}
}

// ContextKeys lists all keys of the documents by their paths, for people who
// look for one.
func ContextKeys() []string {
	var out []string
	var visit func(k contextKey, path string)
	visit = func(k contextKey, path string) {
		path = joinPath(path, k.name)
		out = append(out, path)
		for _, child := range k.keys {
			visit(child, path)
		}
	}
	for _, d := range contextDocuments() {
		visit(d, "")
	}
	sort.Strings(out)
	return out
}
