package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sort"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// Value is a wanted or live value: a cty value, usually an object whose
// attributes carry the field names of the system it belongs to. Unknown parts
// are what becomes known only during apply. Values hold no secrets: a
// reference stands for one.
type Value = cty.Value

// Null is the value of a resource that does not exist.
var Null = cty.NullVal(cty.DynamicPseudoType) //nolint:gochecknoglobals // an immutable constant of a type that has no const form

// Unknown stands for what is known only during apply.
var Unknown = cty.DynamicVal //nolint:gochecknoglobals // as Null

// Str makes a text leaf.
func Str(s string) Value { return cty.StringVal(s) }

// Bool makes a boolean leaf.
func Bool(b bool) Value { return cty.BoolVal(b) }

// Int makes an integer leaf.
func Int(n int) Value { return cty.NumberIntVal(int64(n)) }

// Strs makes a list of strings; its order counts.
func Strs(list ...string) Value {
	vals := make([]cty.Value, len(list))
	for i, s := range list {
		vals[i] = cty.StringVal(s)
	}
	return tuple(vals)
}

// Obj makes an object.
func Obj(attrs map[string]Value) Value { return cty.ObjectVal(attrs) }

// unknownToken stands for an unknown part in the JSON form of a value.
const unknownToken = `"(known after apply)"`

// ToJSON writes a value canonically: sorted keys, no spaces, unknown parts as
// "(known after apply)".
func ToJSON(v Value) json.RawMessage {
	var b bytes.Buffer
	writeJSON(&b, v, unknownToken)
	return b.Bytes()
}

// writeJSON writes the token for each unknown part, and says whether it met none.
func writeJSON(b *bytes.Buffer, v Value, token string) (known bool) {
	known = true
	switch {
	case !v.IsKnown():
		b.WriteString(token)
		return false
	case v.IsNull():
		b.WriteString("null")
	case v.Type() == cty.String:
		writeString(b, v.AsString())
	case v.Type() == cty.Bool:
		b.WriteString(strconv.FormatBool(v.True()))
	case v.Type() == cty.Number:
		b.WriteString(v.AsBigFloat().Text('f', -1))
	case v.Type().IsObjectType() || v.Type().IsMapType():
		b.WriteByte('{')
		for i, k := range attributeNames(v) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, k)
			b.WriteByte(':')
			known = writeJSON(b, attribute(v, k), token) && known
		}
		b.WriteByte('}')
	default:
		b.WriteByte('[')
		first := true
		for it := v.ElementIterator(); it.Next(); first = false {
			if !first {
				b.WriteByte(',')
			}
			_, el := it.Element()
			known = writeJSON(b, el, token) && known
		}
		b.WriteByte(']')
	}
	return known
}

func writeString(b *bytes.Buffer, s string) {
	if isPlain(s) {
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
		return
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // plans are read by people; < stays <
	_ = enc.Encode(s)        // a string always encodes
	b.Truncate(b.Len() - 1)  // Encode ends with a newline
}

// isPlain finds texts that JSON writes as they are.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}

func attributeNames(v Value) []string {
	var names []string
	if v.Type().IsObjectType() {
		for k := range v.Type().AttributeTypes() {
			names = append(names, k)
		}
	} else {
		for k := range v.AsValueMap() {
			names = append(names, k)
		}
	}
	sort.Strings(names)
	return names
}

func attribute(v Value, name string) Value {
	if v.Type().IsObjectType() {
		return v.GetAttr(name)
	}
	return v.Index(cty.StringVal(name))
}

// Attr gives an attribute of an object, or Null when the value is no object or
// lacks it: absent and null are told apart by HasAttr.
func Attr(v Value, name string) Value {
	if !HasAttr(v, name) {
		return Null
	}
	return attribute(v, name)
}

// HasAttr reports whether the value is a known object with that attribute.
func HasAttr(v Value, name string) bool {
	if !v.IsKnown() || v.IsNull() {
		return false
	}
	switch {
	case v.Type().IsObjectType():
		return v.Type().HasAttribute(name)
	case v.Type().IsMapType():
		return v.HasIndex(cty.StringVal(name)).True()
	default:
		return false
	}
}

// Text gives a string leaf of an object, "" when it is absent, null, unknown
// or no string.
func Text(v Value, name string) string {
	a := Attr(v, name)
	if !a.IsKnown() || a.IsNull() || a.Type() != cty.String {
		return ""
	}
	return a.AsString()
}

// Fingerprint is the hash that guards compare: SHA-256 over the canonical JSON.
func Fingerprint(v Value) string {
	return hashOf(ToJSON(v))
}

const hashPrefix = "sha256:"

// hashOf is the form of every hash in a plan: sha256:HEX.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hashPrefix + hex.EncodeToString(sum[:])
}

// Satisfies reports whether the live value is what is wanted: every known
// attribute of want is equal in live; what live has beyond that does not count,
// and what want leaves unknown fits anything. Lists must be equal as wholes.
func Satisfies(want, live Value) bool {
	if !want.IsKnown() {
		return true
	}
	if !live.IsKnown() {
		return false
	}
	if want.IsNull() || live.IsNull() {
		return want.IsNull() && live.IsNull()
	}
	if isObject(want) {
		if !isObject(live) {
			return false
		}
		for _, k := range attributeNames(want) {
			if !Satisfies(attribute(want, k), Attr(live, k)) {
				return false
			}
		}
		return true
	}
	if isList(want) {
		if !isList(live) || want.LengthInt() != live.LengthInt() {
			return false
		}
		w, l := want.AsValueSlice(), live.AsValueSlice()
		for i := range w {
			if !Satisfies(w[i], l[i]) {
				return false
			}
		}
		return true
	}
	return want.RawEquals(live)
}

// Between reports whether each part of a live value is as it was before, or as it
// shall be after: what a write that takes several requests leaves when it ends in
// the middle. A list between two others has no element that neither has.
func Between(before, after, live Value) bool {
	if !before.IsKnown() || !live.IsKnown() {
		return !before.IsKnown()
	}
	if Satisfies(after, live) || Fingerprint(Restrict(live, before)) == Fingerprint(before) {
		return true
	}
	if before.IsNull() || live.IsNull() || !after.IsKnown() || after.IsNull() {
		return false
	}
	switch {
	case isObject(before) && isObject(after) && isObject(live):
		for _, k := range attributeNames(after) {
			if !Between(Attr(before, k), attribute(after, k), Attr(live, k)) {
				return false
			}
		}
		return true
	case isList(before) && isList(after) && isList(live):
		return within(after, live) && within(live, before) || within(before, live) && within(live, after)
	}
	return false
}

// within reports whether each element of a list is in another one too.
func within(list, other Value) bool {
	for _, v := range list.AsValueSlice() {
		if !slices.ContainsFunc(other.AsValueSlice(), func(o Value) bool { return o.RawEquals(v) }) {
			return false
		}
	}
	return true
}

// Restrict cuts a live value down to the attributes that want speaks about, so
// that a plan shows and guards exactly the fields that were decided on. A
// wanted attribute that is absent in live becomes null.
func Restrict(live, want Value) Value {
	if !live.IsKnown() || live.IsNull() || want.IsNull() || !want.IsKnown() || !want.Type().IsObjectType() || !live.Type().IsObjectType() {
		return live
	}
	attrs := map[string]Value{}
	for _, k := range attributeNames(want) {
		attrs[k] = Restrict(Attr(live, k), attribute(want, k))
	}
	return cty.ObjectVal(attrs)
}

// tuple makes a list of any values.
func tuple(list []Value) Value { return cty.TupleVal(list) }
