package schema

import (
	"sort"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// languageFunction is one row of the table of functions; it feeds evaluation,
// suggestions and the reference page. All are pure: no clock, no environment, no
// network. file and templatefile read the folder of the site file, whose files
// are part of a plan's inputs.
type languageFunction struct {
	group, name, signature, doc, example string
	fn                                   function.Function
}

// The groups of the reference page, in its order.
const (
	groupText   = "Texts"
	groupList   = "Lists and maps"
	groupNumber = "Numbers"
	groupIP     = "Networks"
	groupCoding = "Types and encodings"
	groupOther  = "Missing values, files and secrets"
	groupPolicy = "Policies"
)

func functionGroups() []string {
	return []string{groupText, groupList, groupNumber, groupIP, groupCoding, groupOther}
}

// functionTable is the closed list, ordered by name. They are go-cty's own,
// bounded where their results could be out of proportion; what go-cty lacks stands
// in functions_*.go.
func functionTable() []languageFunction {
	table := []languageFunction{
		{groupText, "chomp", "chomp(text)", "The text without line ends at its end.", `chomp("a\n")`, stdlib.ChompFunc},
		{groupText, "endswith", "endswith(text, end)", "Whether the text ends so.", `endswith(device.name, "-01")`, endsWithFunction},
		{groupText, "format", "format(pattern, values…)", "Text by a pattern with verbs such as `%s` and `%03d`.", `format("bmc-%s", device.name)`, bounded(stdlib.FormatFunc, formatFits)},
		{groupText, "formatlist", "formatlist(pattern, lists…)", "One text by the pattern for each element of the lists.", `formatlist("%s.example.net", ["a", "b"])`, bounded(stdlib.FormatListFunc, formatListFits)},
		{groupText, "indent", "indent(spaces, text)", "The text with every line but the first moved in.", `indent(2, "a\nb")`, bounded(stdlib.IndentFunc, indentFits)},
		{groupText, "join", "join(separator, list)", "The elements as one text.", `join("-", ["a", "b"])`, bounded(stdlib.JoinFunc, joinFits)},
		{groupText, "lower", "lower(text)", "The text in lower case.", `lower(device.name)`, stdlib.LowerFunc},
		{groupText, "regex", "regex(pattern, text)", "The first match: a text, or a list or map of the groups in the pattern. No match is an error; `can` asks for it.", `regex("[0-9]+$", device.name)`, bounded(stdlib.RegexFunc, patternFits(1))},
		{groupText, "regexall", "regexall(pattern, text)", "All matches.", `regexall("[0-9]+", device.name)`, bounded(stdlib.RegexAllFunc, patternFits(1))},
		{groupText, "regexreplace", "regexreplace(text, pattern, new)", "The text with each match replaced; `$1` is the first group.", `regexreplace(device.name, "[^a-z0-9]+", "-")`, bounded(stdlib.RegexReplaceFunc, regexReplaceFits)},
		{groupText, "replace", "replace(text, old, new)", "The text with each occurrence replaced.", `replace(device.name, "_", "-")`, bounded(stdlib.ReplaceFunc, replaceFits)},
		{groupText, "split", "split(separator, text)", "The parts of a text.", `split(".", "a.b")`, stdlib.SplitFunc},
		{groupText, "startswith", "startswith(text, start)", "Whether the text begins so.", `startswith(device.name, "gpu-")`, startsWithFunction},
		{groupText, "strlen", "strlen(text)", "How many characters a text has.", `strlen(device.name)`, stdlib.StrlenFunc},
		{groupText, "strrev", "strrev(text)", "The text from its end.", `strrev("abc")`, stdlib.ReverseFunc},
		{groupText, "substr", "substr(text, offset, length)", "A piece of a text, counted in characters from 0.", `substr(device.serial, 0, 4)`, stdlib.SubstrFunc},
		{groupText, "title", "title(text)", "Every word with a capital.", `title("rack one")`, stdlib.TitleFunc},
		{groupText, "trim", "trim(text, characters)", "The text without these characters at its ends.", `trim("--a--", "-")`, stdlib.TrimFunc},
		{groupText, "trimprefix", "trimprefix(text, prefix)", "The text without the prefix.", `trimprefix(device.name, "gpu-")`, stdlib.TrimPrefixFunc},
		{groupText, "trimspace", "trimspace(text)", "The text without blanks at its ends.", `trimspace(" a ")`, stdlib.TrimSpaceFunc},
		{groupText, "trimsuffix", "trimsuffix(text, suffix)", "The text without the suffix.", `trimsuffix("a.example.net", ".example.net")`, stdlib.TrimSuffixFunc},
		{groupText, "upper", "upper(text)", "The text in upper case.", `upper("a")`, stdlib.UpperFunc},

		{groupList, "chunklist", "chunklist(list, size)", "The list cut into lists of a size.", `chunklist(["a", "b", "c"], 2)`, stdlib.ChunklistFunc},
		{groupList, "coalescelist", "coalescelist(lists…)", "The first list that is not empty.", `coalescelist([], ["a"])`, stdlib.CoalesceListFunc},
		{groupList, "compact", "compact(list)", "The list without empty texts and nulls.", `compact(["a", ""])`, stdlib.CompactFunc},
		{groupList, "concat", "concat(lists…)", "One list of all elements.", `concat(["a"], ["ntp9.example.net"])`, stdlib.ConcatFunc},
		{groupList, "contains", "contains(list, value)", "Whether the list has the value.", `contains(device.tags, "lab")`, stdlib.ContainsFunc},
		{groupList, "distinct", "distinct(list)", "The list without repetitions.", `distinct(["a", "a"])`, stdlib.DistinctFunc},
		{groupList, "element", "element(list, index)", "An element, counted from 0 and again from the beginning after the last.", `element(["a", "b"], 3)`, stdlib.ElementFunc},
		{groupList, "flatten", "flatten(list)", "The elements of nested lists as one list.", `flatten([["a"], ["b"]])`, stdlib.FlattenFunc},
		{groupList, "index", "index(list, value)", "The place of the value, counted from 0. None is an error.", `index(["a", "b"], "b")`, indexFunction},
		{groupList, "keys", "keys(map)", "The names of a map or an object, sorted.", `keys({ a = 1 })`, stdlib.KeysFunc},
		{groupList, "length", "length(collection)", "How many elements a list, map or object has, or how many characters a text.", `length(device.tags)`, lengthFunction},
		{groupList, "lookup", "lookup(map, name, default)", "An element of a map, or the default.", `lookup({ a = "1" }, "b", "0")`, stdlib.LookupFunc},
		{groupList, "merge", "merge(maps…)", "One map of all; later ones win.", `merge({ a = 1 }, { b = 2 })`, stdlib.MergeFunc},
		{groupList, "range", "range(start, limit, step)", "Numbers, at most 1024. `range(3)` is 0, 1 and 2.", `range(1, 4)`, stdlib.RangeFunc},
		{groupList, "reverse", "reverse(list)", "The list from its end.", `reverse(["a", "b"])`, stdlib.ReverseListFunc},
		{groupList, "setintersection", "setintersection(lists…)", "What all lists have.", `setintersection(["a", "b"], ["b"])`, stdlib.SetIntersectionFunc},
		{groupList, "setsubtract", "setsubtract(list, other)", "What the other list does not have.", `setsubtract(["a", "b"], ["b"])`, stdlib.SetSubtractFunc},
		{groupList, "setunion", "setunion(lists…)", "What one of the lists has.", `setunion(["a"], ["b"])`, stdlib.SetUnionFunc},
		{groupList, "slice", "slice(list, from, to)", "The elements from one place to before another.", `slice(["a", "b", "c"], 0, 2)`, stdlib.SliceFunc},
		{groupList, "sort", "sort(list)", "A list of texts in order.", `sort(["b", "a"])`, stdlib.SortFunc},
		{groupList, "values", "values(map)", "The values of a map or an object, in the order of its names.", `values({ a = 1 })`, stdlib.ValuesFunc},
		{groupList, "zipmap", "zipmap(names, values)", "A map of two lists.", `zipmap(["a"], [1])`, stdlib.ZipmapFunc},
		{groupList, "alltrue", "alltrue(list)", "Whether all elements are true; an empty list is.", `alltrue([true, true])`, allTrueFunction},
		{groupList, "anytrue", "anytrue(list)", "Whether one element is true; of an empty list none is.", `anytrue([for t in device.tags : t == "lab"])`, anyTrueFunction},

		{groupNumber, "abs", "abs(number)", "The number without its sign.", `abs(-1)`, stdlib.AbsoluteFunc},
		{groupNumber, "ceil", "ceil(number)", "The next whole number that is not smaller.", `ceil(1.2)`, stdlib.CeilFunc},
		{groupNumber, "floor", "floor(number)", "The next whole number that is not larger.", `floor(1.8)`, stdlib.FloorFunc},
		{groupNumber, "max", "max(numbers…)", "The largest number.", `max(1, 2)`, stdlib.MaxFunc},
		{groupNumber, "min", "min(numbers…)", "The smallest number.", `min(1, 2)`, stdlib.MinFunc},
		{groupNumber, "parseint", "parseint(text, base)", "The whole number that a text stands for.", `parseint("ff", 16)`, bounded(stdlib.ParseIntFunc, parseIntFits)},
		{groupNumber, "pow", "pow(number, power)", "A power.", `pow(2, 10)`, bounded(stdlib.PowFunc, numberFits(1e9))},
		{groupNumber, "signum", "signum(number)", "-1, 0 or 1.", `signum(-3)`, bounded(stdlib.SignumFunc, numberFits(1e15))},

		{groupIP, "cidrcontains", "cidrcontains(network, address)", "Whether the network has the address, or the other network whole.", `cidrcontains("192.0.2.0/24", "192.0.2.7")`, cidrContainsFunction},
		{groupIP, "cidrhost", "cidrhost(network, number)", "An address of the network, counted from its beginning or, when negative, from its end.", `cidrhost("192.0.2.0/24", 1)`, cidrHostFunction},
		{groupIP, "cidrnetmask", "cidrnetmask(network)", "The mask of an IPv4 network.", `cidrnetmask("192.0.2.0/24")`, cidrNetmaskFunction},
		{groupIP, "cidrprefix", "cidrprefix(network)", "The prefix length.", `cidrprefix("192.0.2.0/24")`, cidrPrefixFunction},
		{groupIP, "cidrsubnet", "cidrsubnet(network, bits, number)", "A part of the network whose prefix is longer by some bits.", `cidrsubnet("192.0.2.0/24", 2, 1)`, cidrSubnetFunction},

		{groupCoding, "jsondecode", "jsondecode(text)", "The value that a JSON text stands for.", `jsondecode("[1, 2]")`, bounded(stdlib.JSONDecodeFunc, jsonFits)},
		{groupCoding, "jsonencode", "jsonencode(value)", "The value as a JSON text.", `jsonencode([1, 2])`, stdlib.JSONEncodeFunc},
		{groupCoding, "tobool", "tobool(value)", "The value as true or false.", `tobool("true")`, stdlib.MakeToFunc(cty.Bool)},
		{groupCoding, "tolist", "tolist(value)", "The value as a list; its elements get one type.", `tolist(["a", 1])`, stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType))},
		{groupCoding, "tomap", "tomap(value)", "The value as a map; its elements get one type.", `tomap({ a = 1 })`, stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType))},
		{groupCoding, "tonumber", "tonumber(value)", "The value as a number.", `tonumber("22")`, stdlib.MakeToFunc(cty.Number)},
		{groupCoding, "tostring", "tostring(value)", "The value as a text.", `tostring(device.id)`, stdlib.MakeToFunc(cty.String)},
		{groupCoding, "yamldecode", "yamldecode(text)", "The value that a YAML text stands for; aliases are not served.", `yamldecode("a: [1, 2]")`, bounded(yaml.YAMLDecodeFunc, yamlFits)},

		{groupOther, "can", "can(expression)", "Whether the expression can be evaluated.", `can(device.custom_fields.rack_zone)`, tryfunc.CanFunc},
		{groupOther, "coalesce", "coalesce(values…)", "The first value that is not null.", `coalesce(device.rack, "none")`, stdlib.CoalesceFunc},
		{groupOther, "file", "file(name)", "The text of a file in the folder of the site file. The name cannot depend on the device.", `file("banner.txt")`, filesElsewhere},
		{groupOther, "secret", "secret(item, field)", "A reference to a secret. It can be handed over whole, and neither be put into text, nor compared, nor printed.", `secret("bmc-${device.name}", "password")`, secretFunction},
		{groupOther, "templatefile", "templatefile(name, values)", "The text of a file in the folder of the site file, with `${…}` and `%{ … }` evaluated over the values. Templates cannot use other files.", `templatefile("motd.tmpl", { name = "x" })`, templatesElsewhere},
		{groupOther, "try", "try(expressions…)", "The first expression that can be evaluated.", `try(device.custom_fields.bmc_name, device.name)`, tryfunc.TryFunc},
	}
	sort.Slice(table, func(i, j int) bool { return table[i].name < table[j].name })
	return table
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
