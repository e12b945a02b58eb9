package schema

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// languageFunction is one row of the table of functions; it feeds evaluation,
// suggestions and the reference page. All are pure: no clock, no environment,
// no network, no files.
type languageFunction struct {
	name, signature, doc, example string
	fn                            function.Function
}

func functionTable() []languageFunction {
	return []languageFunction{
		{"can", "can(expression)", "Whether the expression can be evaluated.", `can(device.custom_fields.rack_zone)`, tryfunc.CanFunc},
		{"coalesce", "coalesce(values…)", "The first value that is not null.", `coalesce(device.rack, "none")`, stdlib.CoalesceFunc},
		{"concat", "concat(lists…)", "One list of all elements.", `concat(var.ntp, ["ntp9.example.net"])`, stdlib.ConcatFunc},
		{"contains", "contains(list, value)", "Whether the list has the value.", `contains(device.tags, "lab")`, stdlib.ContainsFunc},
		{"distinct", "distinct(list)", "The list without repetitions.", `distinct(["a", "a"])`, stdlib.DistinctFunc},
		{"flatten", "flatten(list)", "The elements of nested lists as one list.", `flatten([["a"], ["b"]])`, stdlib.FlattenFunc},
		{"format", "format(pattern, values…)", "Text by a pattern with verbs such as `%s` and `%03d`.", `format("bmc-%s", device.name)`, bounded(stdlib.FormatFunc, formatFits)},
		{"join", "join(separator, list)", "The elements as one text.", `join("-", ["a", "b"])`, bounded(stdlib.JoinFunc, joinFits)},
		{"jsondecode", "jsondecode(text)", "The value that a JSON text stands for.", `jsondecode("[1, 2]")`, stdlib.JSONDecodeFunc},
		{"keys", "keys(map)", "The names of a map or an object, sorted.", `keys({ a = 1 })`, stdlib.KeysFunc},
		{"length", "length(collection)", "How many elements a list, map or object has.", `length(device.tags)`, stdlib.LengthFunc},
		{"lookup", "lookup(map, name, default)", "An element of a map, or the default.", `lookup({ a = "1" }, "b", "0")`, stdlib.LookupFunc},
		{"lower", "lower(text)", "The text in lower case.", `lower(device.name)`, stdlib.LowerFunc},
		{"max", "max(numbers…)", "The largest number.", `max(1, 2)`, stdlib.MaxFunc},
		{"merge", "merge(maps…)", "One map of all; later ones win.", `merge({ a = 1 }, { b = 2 })`, stdlib.MergeFunc},
		{"min", "min(numbers…)", "The smallest number.", `min(1, 2)`, stdlib.MinFunc},
		{"replace", "replace(text, old, new)", "The text with each occurrence replaced.", `replace(device.name, "_", "-")`, bounded(stdlib.ReplaceFunc, replaceFits)},
		{"secret", "secret(item, field)", "A reference to a secret. It can be handed over whole, and neither be put into text, nor compared, nor printed.", `secret("bmc-${device.name}", "password")`, secretFunction},
		{"sort", "sort(list)", "A list of texts in order.", `sort(["b", "a"])`, stdlib.SortFunc},
		{"split", "split(separator, text)", "The parts of a text.", `split(".", "a.b")`, stdlib.SplitFunc},
		{"strlen", "strlen(text)", "How many characters a text has.", `strlen(device.name)`, stdlib.StrlenFunc},
		{"substr", "substr(text, offset, length)", "A piece of a text, counted in characters from 0.", `substr(device.serial, 0, 4)`, stdlib.SubstrFunc},
		{"tobool", "tobool(value)", "The value as true or false.", `tobool("true")`, stdlib.MakeToFunc(cty.Bool)},
		{"tonumber", "tonumber(value)", "The value as a number.", `tonumber("22")`, stdlib.MakeToFunc(cty.Number)},
		{"tostring", "tostring(value)", "The value as a text.", `tostring(device.id)`, stdlib.MakeToFunc(cty.String)},
		{"trimprefix", "trimprefix(text, prefix)", "The text without the prefix.", `trimprefix(device.name, "gpu-")`, stdlib.TrimPrefixFunc},
		{"trimspace", "trimspace(text)", "The text without blanks at its ends.", `trimspace(" a ")`, stdlib.TrimSpaceFunc},
		{"trimsuffix", "trimsuffix(text, suffix)", "The text without the suffix.", `trimsuffix("a.example.net", ".example.net")`, stdlib.TrimSuffixFunc},
		{"try", "try(expressions…)", "The first expression that can be evaluated.", `try(device.custom_fields.bmc_name, device.name)`, tryfunc.TryFunc},
		{"upper", "upper(text)", "The text in upper case.", `upper("a")`, stdlib.UpperFunc},
		{"values", "values(map)", "The values of a map or an object, in the order of its names.", `values({ a = 1 })`, stdlib.ValuesFunc},
	}
}

func functionMap() map[string]function.Function {
	m := map[string]function.Function{}
	for _, f := range functionTable() {
		m[f.name] = f.fn
	}
	return m
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// maxText bounds what one function call may make, in bytes.
const maxText = 1 << 20

// bounded refuses calls whose result would be out of proportion, before they
// are made. fits sees known, non-null arguments only.
func bounded(fn function.Function, fits func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Params: fn.Params(), VarParam: fn.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) { return fn.ReturnTypeForValues(args) },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for _, a := range args {
				if !a.IsWhollyKnown() || a.IsNull() {
					return fn.Call(args)
				}
			}
			if err := fits(args); err != nil {
				return cty.NilVal, err
			}
			return fn.Call(args)
		},
	})
}

var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*[0-9]{4,}`)

func formatFits(args []cty.Value) error {
	if wideVerb.MatchString(args[0].AsString()) {
		return function.NewArgErrorf(0, "widths of more than 999 characters are not served")
	}
	return nil
}

func joinFits(args []cty.Value) error {
	elements := 0
	for _, list := range args[1:] {
		if list.CanIterateElements() {
			elements += list.LengthInt()
		}
	}
	if len(args[0].AsString())*elements > maxText {
		return fmt.Errorf("the text would be longer than %d bytes", maxText)
	}
	return nil
}

func replaceFits(args []cty.Value) error {
	text, old, replacement := args[0].AsString(), args[1].AsString(), args[2].AsString()
	if strings.Count(text, old)*len(replacement) > maxText {
		return fmt.Errorf("the text would be longer than %d bytes", maxText)
	}
	return nil
}
