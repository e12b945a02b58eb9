package schema

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// What go-cty's own library lacks.

func textTest(second string, holds func(text, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: second, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(holds(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var (
	startsWithFunction = textTest("start", strings.HasPrefix)
	endsWithFunction   = textTest("end", strings.HasSuffix)
)

// lengthFunction also takes texts, as people expect from Terraform.
var lengthFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		t := args[0].Type()
		if t == cty.DynamicPseudoType || t == cty.String || t.IsCollectionType() || t.IsTupleType() || t.IsObjectType() {
			return cty.Number, nil
		}
		return cty.NilType, function.NewArgErrorf(0, "must be a list, a map or a text")
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		if v.Type() == cty.String {
			return cty.NumberIntVal(int64(utf8.RuneCountInString(v.AsString()))), nil
		}
		if t := v.Type(); t.IsObjectType() {
			return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
		}
		return stdlib.LengthFunc.Call([]cty.Value{v})
	},
})

// indexFunction gives the place of a value.
var indexFunction = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		if t := args[0].Type(); !t.IsListType() && !t.IsTupleType() && t != cty.DynamicPseudoType {
			return cty.NilType, function.NewArgErrorf(0, "must be a list")
		}
		return cty.Number, nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		n := int64(0)
		for it := args[0].ElementIterator(); it.Next(); n++ {
			_, v := it.Element()
			same, err := stdlib.Equal(v, args[1])
			if err != nil {
				return cty.NilVal, err
			}
			if !same.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if same.True() {
				return cty.NumberIntVal(n), nil
			}
		}
		return cty.NilVal, errors.New("the list does not have this value")
	},
})

// boolsFunction looks for one value in a list of true and false.
func boolsFunction(sought bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if t := args[0].Type(); t != cty.DynamicPseudoType && !t.IsListType() && !t.IsTupleType() && !t.IsSetType() {
				return cty.NilType, function.NewArgErrorf(0, "must be a list")
			}
			return cty.Bool, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			undecided := false
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				b, err := convert.Convert(v, cty.Bool)
				switch {
				case err != nil || b.IsNull():
					return cty.NilVal, function.NewArgErrorf(0, "must hold true and false only")
				case !b.IsKnown():
					undecided = true
				case b.True() == sought:
					return cty.BoolVal(sought), nil
				}
			}
			if undecided {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(!sought), nil
		},
	})
}

var (
	allTrueFunction = boolsFunction(false)
	anyTrueFunction = boolsFunction(true)
)

func parseIntFits(args []cty.Value) error {
	if args[0].Type() == cty.String && len(args[0].AsString()) > 100 {
		return function.NewArgErrorf(0, "is longer than 100 digits")
	}
	return nil
}
