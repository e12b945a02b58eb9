package schema

import (
	"errors"
	"reflect"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/enroll-dev/enroll/plan"
)

// secretValue is what secret(…) yields: a reference in a capsule, so that no
// operation of the language gets at it.
type secretValue struct{ ref plan.SecretRef }

// MarshalJSON refuses: format("%v") and its like go through JSON.
func (secretValue) MarshalJSON() ([]byte, error) {
	return nil, errSecretText
}

var errSecretText = errors.New("a secret cannot be made into text")

// secretAlone is what to do about a secret inside an expression.
const secretAlone = "A secret can be handed over whole only: it cannot be put into a text, compared, or given to a function. Write secret(\"ITEM\", \"FIELD\") alone after the equals sign; texts inside its brackets may be composed."

// secretCapsule compares to unknown: whether two secrets are equal is nothing an
// expression may depend on. Whatever does is refused as undecided.
var secretCapsule = cty.CapsuleWithOps("secret", reflect.TypeOf(secretValue{}), &cty.CapsuleOps{
	GoString:     func(any) string { return "secret" },
	TypeGoString: func(reflect.Type) string { return "secret" },
	Equals:       func(any, any) cty.Value { return cty.UnknownVal(cty.Bool) },
	RawEquals: func(a, b any) bool {
		x, y := a.(*secretValue), b.(*secretValue)
		return x.ref == y.ref
	},
	HashKey: func(v any) string {
		ref := v.(*secretValue).ref
		return ref.Item + "\x00" + ref.Field
	},
})

var secretFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "item", Type: cty.String}, {Name: "field", Type: cty.String}},
	Type:   function.StaticReturnType(secretCapsule),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		ref := plan.SecretRef{Item: args[0].AsString(), Field: args[1].AsString()}
		for i, name := range []string{ref.Item, ref.Field} {
			if err := isSecretName(name, i == 0); err != nil {
				return cty.NilVal, function.NewArgError(i, err)
			}
		}
		return cty.CapsuleVal(secretCapsule, &secretValue{ref}), nil
	},
})

// isSecretName takes what every backend can address. The backends check again.
func isSecretName(s string, item bool) error {
	switch {
	case s == "" || strings.TrimSpace(s) != s:
		return errors.New("must not be empty or begin or end with a blank")
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return errors.New("must not hold control characters")
	case !item && strings.Contains(s, "/"):
		return errors.New("must not hold a slash")
	case strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") || strings.Contains(s, "//") || hasDotSegment(s):
		return errors.New("must be a name or a plain path, without \".\" and \"..\"")
	}
	return nil
}

// holdsSecret reports whether a value is or contains a secret.
func holdsSecret(v cty.Value) bool {
	found := false
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) { // the callback returns no error
		found = found || v.Type().Equals(secretCapsule)
		return !found, nil
	})
	return found
}
