package bmc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// ruled makes a registry with three enumerations, a number and the given rules, each
// written as what it sets and its conditions: {"A ReadOnly true", "B NEQ x", "OR C EQU y"}.
func ruled(t testing.TB, rows string, rules ...[]string) registry {
	t.Helper()
	var list []any
	for _, rule := range rules {
		to := strings.Fields(rule[0])
		var from []any
		for _, text := range rule[1:] {
			c := map[string]any{"MapFromProperty": "CurrentValue"}
			f := strings.Fields(text)
			switch {
			case f[0] == "AND" || f[0] == "OR":
				c["MapTerms"], f = f[0], f[1:]
			case len(f) == 4: // an XCC's, before the next
				c["MapTerms"] = f[3]
			}
			c["MapFromAttribute"], c["MapFromCondition"], c["MapFromValue"] = f[0], f[1], word(f[2])
			from = append(from, c)
		}
		list = append(list, map[string]any{"Type": "Map", "DependencyFor": to[0], "Dependency": map[string]any{"MapFrom": from, "MapToAttribute": to[0], "MapToProperty": to[1], "MapToValue": word(to[2])}})
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return registryOf(t, rows, string(raw))
}

func word(s string) any {
	var v any
	if json.Unmarshal([]byte(s), &v) == nil {
		return v
	}
	return s
}

func registryOf(t testing.TB, rows, rules string) registry {
	t.Helper()
	enum := func(name string) string {
		return `{"AttributeName":"` + name + `","Type":"Enumeration","Value":[{"ValueName":"x","ValueDisplayName":"X shown"},{"ValueName":"y"},{"ValueName":"z"}]},`
	}
	d, ok := parse("/r", "", []byte(`{"RegistryEntries":{"Attributes":[`+rows+enum("A")+enum("B")+enum("C")+`{"AttributeName":"N","Type":"Integer"}],"Dependencies":`+rules+`}}`))
	if !ok {
		t.Fatal("the registry is no JSON")
	}
	return parseRegistry(d)
}

func liveBIOS(t testing.TB, attributes string) values {
	t.Helper()
	d, ok := parse("/b", "", []byte(`{"Attributes":`+attributes+`}`))
	if !ok {
		t.Fatal("the BIOS is no JSON")
	}
	return bios{live: d}.value
}

func TestDependencies(t *testing.T) {
	const now = `{"A":"x","B":"x","C":"x","N":5,"R":"x"}`
	const readOnlyR = `{"AttributeName":"R","Type":"String","ReadOnly":true},`
	type want = map[string]any
	for _, tc := range []struct {
		name  string
		rules [][]string
		want  want
		says  string // of the one that conflicts, "" where none does
	}{
		{"no rule", nil, want{"A": "y"}, ""},
		{"one that holds", [][]string{{"A ReadOnly true", "B NEQ y"}}, want{"A": "y"}, `A is ReadOnly because B = "x"; also set B = "y"`},
		{"grayed", [][]string{{"A GrayOut true", "B EQU x"}}, want{"A": "y"}, ""},
		{"hidden", [][]string{{"A Hidden true", "B EQU x"}}, want{"A": "y"}, ""},
		{"immutable", [][]string{{"A Immutable true", "B EQU x"}}, want{"A": "y"}, `A is Immutable because B = "x"; also set B = "y"`},
		{"another spelling of the property", [][]string{{"A Readonly true", "B EQU x"}}, want{"A": "y"}, "A is ReadOnly"},
		{"true as a word", [][]string{{`A ReadOnly "true"`, "B EQU x"}}, want{"A": "y"}, "A is ReadOnly"},
		{"a display name", [][]string{{"A ReadOnly true", "B NEQ X"}, {"C ReadOnly true", `B EQU "X\u0020shown"`}}, want{"C": "y"}, "C is ReadOnly"},
		{"one that does not hold", [][]string{{"A ReadOnly true", "B EQU y"}}, want{"A": "y"}, ""},
		{"equal already", [][]string{{"A ReadOnly true", "B EQU x"}}, want{"A": "x", "C": "y"}, ""},
		{"lifted by another wanted one", [][]string{{"A ReadOnly true", "B NEQ y"}}, want{"A": "y", "B": "y"}, ""},
		{"caused by another wanted one", [][]string{{"A ReadOnly true", "B EQU y"}}, want{"A": "y", "B": "y"}, `A is ReadOnly because B = "y"; set B = "x" instead`},
		{"a way out that helps", [][]string{{"A ReadOnly true", "B EQU x"}, {"A Immutable true", "B EQU y"}}, want{"A": "y"}, `also set B = "z"`},
		{"no way out", [][]string{{"A ReadOnly true", "B EQU x"}, {"A Immutable true", "C EQU x"}}, want{"A": "y"}, "no other value of one attribute changes that"},
		{"no way out by what is read-only", [][]string{{"A ReadOnly true", "R EQU x"}}, want{"A": "y"}, "no other value of one attribute changes that"},
		{"lifted by a rule", [][]string{{"A ReadOnly true", "B EQU x"}, {"A ReadOnly false", "C EQU x"}}, want{"A": "y"}, ""},
		{"both of two", [][]string{{"A ReadOnly true", "B EQU x", "AND C EQU y"}}, want{"A": "y"}, ""},
		{"one of two", [][]string{{"A ReadOnly true", "B EQU y", "OR C EQU x"}}, want{"A": "y"}, `because C = "x"`},
		{"terms before the next", [][]string{{"A ReadOnly true", "B EQU x OR", "C EQU y"}}, want{"A": "y"}, `because B = "x"`},
		{"terms before the next, both", [][]string{{"A ReadOnly true", "B EQU x AND", "C EQU y"}}, want{"A": "y"}, ""},
		{"no terms, one attribute", [][]string{{"A ReadOnly true", "B EQU y", "B EQU x"}}, want{"A": "y"}, `because B = "x"`},
		{"no terms, two that differ", [][]string{{"A ReadOnly true", "B EQU x", "C EQU y"}}, want{"A": "y"}, ""},
		{"no terms, two that agree", [][]string{{"A ReadOnly true", "B EQU x", "C EQU x"}}, want{"A": "y"}, `because B = "x" and C = "x"`},
		{"greater", [][]string{{"A ReadOnly true", "N GTR 4"}}, want{"A": "y"}, `because N = "5"`},
		{"not greater", [][]string{{"A ReadOnly true", "N GTR 5"}}, want{"A": "y"}, ""},
		{"at least", [][]string{{"A ReadOnly true", "N GEQ 5"}}, want{"A": "y"}, "A is ReadOnly"},
		{"less", [][]string{{"A ReadOnly true", "N LSS 5"}}, want{"A": "y"}, ""},
		{"less, as it will be", [][]string{{"A ReadOnly true", "N LSS 5"}}, want{"A": "y", "N": "4"}, `because N = "4"`},
		{"at most, as text", [][]string{{"A ReadOnly true", `N LEQ "5"`}}, want{"A": "y"}, "A is ReadOnly"},
		{"no order of words", [][]string{{"A ReadOnly true", "B GTR 4"}}, want{"A": "y"}, ""},
		{"a condition nobody knows", [][]string{{"A ReadOnly true", "B LIKE x"}}, want{"A": "y"}, ""},
		{"an attribute nobody knows", [][]string{{"A ReadOnly true", "Z NEQ x"}}, want{"A": "y"}, ""},
		{"a value that comes along", [][]string{{"A CurrentValue z", "B EQU y"}}, want{"A": "x", "B": "y"}, `A becomes "z" because B = "y"; set B = "x" instead`},
		{"a value that comes along and is wanted", [][]string{{"A CurrentValue z", "B EQU y"}}, want{"A": "z", "B": "y"}, ""},
		{"a value that came along before", [][]string{{"A CurrentValue x", "B EQU x"}}, want{"A": "y"}, ""},
		{"a rule on what another may change", [][]string{{"B CurrentValue y", "C EQU y"}, {"A ReadOnly true", "B EQU x"}}, want{"A": "y", "C": "y"}, ""},
		{"rules in a circle", [][]string{{"B CurrentValue y", "C EQU y"}, {"C CurrentValue y", "B EQU y"}, {"B CurrentValue z", "B EQU y"}}, want{"A": "y"}, ""},
		{"a lower bound", [][]string{{"N LowerBound 7", "B EQU x"}}, want{"N": "6"}, `N takes at least 7 because B = "x"; also set B = "y"`},
		{"an upper bound", [][]string{{"N UpperBound 7", "B EQU y"}}, want{"N": "8", "B": "y"}, `N takes at most 7 because B = "y"; set B = "x" instead`},
		{"within bounds", [][]string{{"N UpperBound 7", "B EQU x"}, {"N LowerBound 3", "B EQU x"}}, want{"N": "7"}, ""},
		{"shown read-only, and lifted", [][]string{{"R ReadOnly true", "B EQU x"}}, want{"R": "y", "B": "y"}, ""},
		{"shown read-only", [][]string{{"R ReadOnly true", "B EQU x"}}, want{"R": "y"}, `R is ReadOnly because B = "x"; also set B = "y"`},
		{"shown read-only for another reason", [][]string{{"R ReadOnly true", "B EQU z"}}, want{"R": "y", "B": "y"}, "R can only be read"},
		{"shown read-only, for what is not shown", [][]string{{"R ReadOnly true", "Z EQU z"}}, want{"R": "y"}, "R is ReadOnly because of Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg := ruled(t, readOnlyR, tc.rules...)
			wanted := map[string]plan.Value{}
			for name, v := range tc.want {
				wanted[name] = scalar(v)
			}
			got := reg.conflicts(liveBIOS(t, now), wanted)
			text := ""
			for _, why := range got {
				text += why
			}
			if tc.says == "" && len(got) != 0 || tc.says != "" && (len(got) != 1 || !strings.Contains(text, tc.says)) {
				t.Errorf("%q", got)
			}
		})
	}
}

// What is no rule says nothing.
func TestDependenciesThatAreNone(t *testing.T) {
	for _, rules := range []string{
		`null`, `7`, `{}`, `[null,7,"x",[]]`, `[{"Dependency":[]}]`, `[{"Dependency":{"MapFrom":{},"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
		`[{"Dependency":{"MapFrom":[],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
		`[{"Dependency":{"MapFrom":[null],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"EQU","MapFromValue":["x"]}],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"EQU","MapFromValue":"x"}],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":"perhaps"}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"EQU","MapFromValue":"x"}],"MapToAttribute":"A","MapToProperty":"Colour","MapToValue":true}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromProperty":"DefaultValue","MapFromCondition":"EQU","MapFromValue":"x"}],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
		`[{"Type":"Other","Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"EQU","MapFromValue":"x"}],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
	} {
		if got := registryOf(t, "", rules).conflicts(liveBIOS(t, `{"A":"x","B":"x"}`), map[string]plan.Value{"A": plan.Str("y")}); len(got) != 0 {
			t.Errorf("%s: %q", rules, got)
		}
	}
}

// However many rules hang on one another, in a circle or on one attribute, each is
// looked at a bounded number of times.
func TestDependenciesWithoutEnd(t *testing.T) {
	looks := func(many int) int {
		rules := [][]string{{"A Immutable true", "B EQU y"}}
		live := map[string]any{"A": "x", "B": "x"}
		for i := range many {
			live[fmt.Sprintf("L%d", i)] = "x"
			rules = append(rules, []string{fmt.Sprintf("L%d CurrentValue y", (i+1)%many), fmt.Sprintf("L%d EQU y", i)}, []string{"A ReadOnly true", fmt.Sprintf("L%d EQU y", i)})
		}
		counted := 0
		at := func(name string) (any, bool) { counted++; v, ok := live[name]; return v, ok }
		got := ruled(t, "", rules...).conflicts(at, map[string]plan.Value{"A": plan.Str("y"), "L0": plan.Str("y"), "B": plan.Str("y")})
		if got["A"] != `A is ReadOnly because L0 = "y"; no other value of one attribute changes that` {
			t.Errorf("%q", got)
		}
		return counted
	}
	few, more := looks(500), looks(5000)
	if more > 11*few {
		t.Errorf("%d values looked at for 1000 rules, %d for 10000", few, more)
	}
}

// Registries of real BMCs, beside the BIOS that they were read with, are understood:
// what the rules say of now is what the rows show.
func TestDependenciesOfRealRegistries(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "samples", "redfish", "*", "attribute-registry*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no attribute registries of real BMCs beside the repository")
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+" "+filepath.Base(file), func(t *testing.T) {
			read := func(name string) document {
				raw, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				d, ok := parse("/x", "", raw)
				if !ok {
					t.Fatalf("%s is no JSON", name)
				}
				return d
			}
			d := read(file)
			reg := parseRegistry(d)
			entries, _ := d.at("RegistryEntries", "Dependencies")
			list, _ := entries.([]any)
			dropped := 0
			for _, item := range list {
				entry, _ := item.(map[string]any)
				rule, _ := entry["Dependency"].(map[string]any)
				if rule["MapToProperty"] == "Value" { // lists of values, which are not looked at
					dropped++
				}
			}
			if len(reg.dependencies) != len(list)-dropped {
				t.Errorf("%d of %d rules are understood", len(reg.dependencies), len(list)-dropped)
			}
			live := strings.Replace(file, "attribute-registry", "bios-of-registry", 1)
			if _, err := os.Stat(live); err != nil {
				t.Skip("no BIOS beside the registry")
			}
			at := bios{live: read(live)}.value
			shown, explained := 0, 0
			for name := range reg.momentary {
				if !reg.readOnly(name) {
					continue
				}
				shown++
				for _, rule := range reg.dependencies {
					if rule.to == name && rule.property == "ReadOnly" && reg.holds(rule, at) != no {
						explained++
						break
					}
				}
			}
			t.Logf("%d rules; of %d rows read-only by rules, %d are so by what is live", len(reg.dependencies), shown, explained)
			if explained*4 < shown*3 { // a BMC that is locked shows rows read-only without a rule
				t.Errorf("only %d of %d read-only rows follow from their rules", explained, shown)
			}
		})
	}
}

// Whatever stands in a registry, a conflict names a wanted attribute that differs or
// would be changed, and a way out that is offered is one.
func FuzzDependencies(f *testing.F) {
	for _, rules := range []string{
		`[{"Type":"Map","Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"NEQ","MapFromValue":"y"}],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":true}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"EQU","MapFromValue":"x","MapTerms":"OR"},{"MapFromAttribute":"N","MapFromCondition":"GTR","MapFromValue":4}],"MapToAttribute":"A","MapToProperty":"ReadOnly","MapToValue":"true"}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"A","MapFromCondition":"EQU","MapFromValue":"x"}],"MapToAttribute":"B","MapToProperty":"CurrentValue","MapToValue":"y"}},{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"EQU","MapFromValue":"y"}],"MapToAttribute":"A","MapToProperty":"CurrentValue","MapToValue":"x"}}]`,
		`[{"Dependency":{"MapFrom":[{"MapFromAttribute":"B","MapFromCondition":"LEQ","MapFromValue":-1}],"MapToAttribute":"N","MapToProperty":"UpperBound","MapToValue":1e300}}]`,
		`[null,7,{"Dependency":7}]`, `{}`,
	} {
		f.Add(rules, `{"A":"x","B":"x","N":5}`, "y")
		f.Add(rules, `{"A":null,"B":[],"N":"5"}`, "7")
	}
	f.Fuzz(func(t *testing.T, rules, attributes, value string) {
		d, ok := parse("/r", "", []byte(`{"RegistryEntries":{"Attributes":[{"AttributeName":"A","Type":"Enumeration","Value":[{"ValueName":"x"},{"ValueName":"y"}]},{"AttributeName":"B","Type":"Enumeration","Value":[{"ValueName":"x"},{"ValueName":"y"}]}],"Dependencies":`+rules+`}}`))
		live, ok2 := parse("/b", "", []byte(`{"Attributes":`+attributes+`}`))
		if !ok || !ok2 {
			return
		}
		reg := parseRegistry(d)
		wanted := map[string]plan.Value{"A": plan.Str(value), "N": plan.Str(value)}
		got := reg.conflicts(bios{live: live}.value, wanted)
		for name, why := range got {
			if _, isWanted := wanted[name]; !isWanted || !strings.HasPrefix(why, name+" ") {
				t.Fatalf("%s: %q", name, why)
			}
		}
		_, out, offered := strings.Cut(got["A"], "; also set B = ")
		other, err := strconv.Unquote(out)
		if !offered || err != nil {
			return
		}
		wanted["B"] = plan.Str(other)
		if again := reg.conflicts(bios{live: live}.value, wanted)["A"]; again == got["A"] {
			t.Fatalf("%q, and then the same", got["A"])
		}
	})
}
