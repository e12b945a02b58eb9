package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestGeneratedReference keeps REFERENCE.md what the table says. `make docs`
// writes it anew.
func TestGeneratedReference(t *testing.T) {
	golden(t, "REFERENCE.md", referencePage())
}

func referencePage() string {
	var b strings.Builder
	b.WriteString("<!-- Generated from the table in schema/language.go by `make docs`. Do not edit. -->\n\n# The site language\n\n" +
		"HCL, the syntax that Terraform uses. " + language().doc + " `enroll validate DIR` checks a folder without any network;\n" +
		"[sites/demo](../sites/demo/site.hcl) is an example to copy.\n\n" +
		"Durations are texts with a unit: `\"500ms\"`, `\"30s\"`, `\"15m\"`, `\"1h30m\"`. Relative paths begin at the folder of the file that sets them.\n" +
		"A secret is written as a reference, `secret(\"ITEM\", \"FIELD\")`, and as nothing else: it cannot be put into a text,\n" +
		"compared, printed, or used for an attribute that is no secret.\n\n## Blocks\n\n```\n")
	outline(&b, language(), "")
	b.WriteString("```\n\nBlocks in brackets may be left out; of the `secrets` blocks one is written.\n")
	for _, child := range language().blocks {
		blockPage(&b, child, "")
	}
	b.WriteString("\n## References\n\n| reference | value |\n|---|---|\n" +
		"| `var.NAME` | a variable |\n| `local.NAME` | a local |\n")
	docs := deviceDocs()
	for _, name := range sortedNames(deviceType()) {
		fmt.Fprintf(&b, "| `device.%s` | %s |\n", name, docs[name])
	}
	fmt.Fprintf(&b, "\n`device` is known in these attributes of the `bmc` block only: `%s`. What NetBox leaves empty is null;\n`coalesce` and `try` give a default.\n", strings.Join(perDeviceNames(), "`, `"))
	b.WriteString("\nIn the expressions of `policy` blocks, `device` and `step` are known:\n\n| reference | value |\n|---|---|\n")
	steps := stepDocs()
	for _, name := range sortedNames(stepType()) {
		fmt.Fprintf(&b, "| `step.%s` | %s |\n", name, steps[name])
	}
	b.WriteString("\n## Functions\n\nThe list is closed. All are pure: no clock, no environment, no network. `file` and `templatefile` read files of the folder\n" +
		"that the site file stands in, and nothing outside of it; what they read is part of a plan's inputs.\n")
	for _, group := range functionGroups() {
		fmt.Fprintf(&b, "\n### %s\n\n| function | value | example |\n|---|---|---|\n", group)
		for _, f := range functionTable() {
			if f.group == group {
				fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", f.signature, f.doc, f.example)
			}
		}
	}
	b.WriteString("\nIn the expressions of `policy` blocks there are four more, and no `secret`, `file` and `templatefile`; what a file holds can be put into a local:\n\n| function | value | example |\n|---|---|---|\n")
	for _, f := range policyFunctionTable() {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", f.signature, f.doc, f.example)
	}
	var rows strings.Builder
	later(&rows, language(), "")
	if rows.Len() > 0 {
		b.WriteString("\n## Not in this version\n\nThese names are reserved. A folder that uses one is refused with a message that says so.\n\n| name | meant for |\n|---|---|\n" + rows.String())
	}
	return b.String()
}

func outline(b *strings.Builder, parent *block, indent string) {
	for _, child := range parent.blocks {
		if child.later {
			continue
		}
		line := child.name
		switch {
		case child.variant != "":
			line += ` "` + child.variant + `"`
		case child.label != nil:
			line += ` "` + child.label.name + `"`
		}
		if !child.required {
			line = "[" + line + "]"
		}
		if child.many {
			line += " …"
		}
		fmt.Fprintf(b, "%s%s\n", indent, line)
		outline(b, child, indent+"  ")
	}
}

func blockPage(b *strings.Builder, spec *block, path string) {
	if spec.later {
		return
	}
	title := path + spec.name
	if spec.variant != "" {
		title += ` "` + spec.variant + `"`
	}
	fmt.Fprintf(b, "\n## %s\n\n%s Since %s.\n", title, spec.doc, spec.since)
	if spec.label != nil && spec.variant == "" {
		fmt.Fprintf(b, "\nThe label is %s, for example `%s \"%s\"`.\n", spec.label.doc, spec.name, spec.label.example)
	}
	first := true
	for i := range spec.attrs {
		a := &spec.attrs[i]
		if a.later {
			continue
		}
		if first {
			b.WriteString("\n| attribute | type | default | meaning | decides | since |\n|---|---|---|---|---|---|\n")
			first = false
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s<br>`%s = %s` | %s | %s |\n", a.name, typeCell(a), defaultCell(a), a.doc, a.name, a.example, a.effect, a.since)
	}
	for _, child := range spec.blocks {
		next := title + "."
		if spec.name == "site" {
			next = ""
		}
		blockPage(b, child, next)
	}
}

func typeCell(a *attribute) string {
	cell := string(a.typ)
	if len(a.enum) > 0 {
		cell += ": `" + strings.Join(a.enum, "`, `") + "`"
	}
	if a.min != "" {
		cell += ", " + a.min + " to " + a.max
	}
	if a.perDevice {
		cell += ", may use `device`"
	}
	return cell
}

func defaultCell(a *attribute) string {
	switch {
	case a.required:
		return "**required**"
	case a.fallback != "":
		return "`" + a.fallback + "`"
	}
	return a.fallbackDoc
}

func later(b *strings.Builder, spec *block, path string) {
	for i := range spec.attrs {
		if spec.attrs[i].later {
			fmt.Fprintf(b, "| `%s%s` | %s |\n", path, spec.attrs[i].name, spec.attrs[i].doc)
		}
	}
	for _, child := range spec.blocks {
		name := child.name
		if child.variant != "" {
			name += ` "` + child.variant + `"`
		}
		if child.later {
			fmt.Fprintf(b, "| `%s%s` | %s |\n", path, name, child.doc)
			continue
		}
		next := path + child.name + "."
		if child.name == "site" {
			next = ""
		}
		later(b, child, next)
	}
}

// TestTable keeps the table itself whole: what a reader needs is there, defaults
// and bounds can be read, and examples and checks agree.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	language().walkAttributes(func(b *block, a *attribute) {
		name := b.name + "." + a.name
		if a.doc == "" || a.name == "" {
			t.Errorf("%s is not explained", name)
		}
		if a.later {
			return
		}
		if a.example == "" || a.effect == "" || a.since == "" || a.typ == "" {
			t.Errorf("%s lacks an example, its effect, a version or a type", name)
		}
		if !a.required && a.fallback == "" && a.fallbackDoc == "" {
			t.Errorf("%s has no default", name)
		}
		if a.fallback != "" && a.defaultValue() == nil {
			t.Errorf("%s: default %q cannot be read", name, a.fallback)
		}
		if a.typ == durationType || a.typ == durationPairType {
			if bound(a.max) == 0 || bound(a.min) > bound(a.max) {
				t.Errorf("%s: bounds %q and %q", name, a.min, a.max)
			}
		}
		if a.typ == durationType && a.fallback != "" && (bound(a.fallback) < bound(a.min) || bound(a.fallback) > bound(a.max)) {
			t.Errorf("%s: default %q", name, a.fallback)
		}
		if seen[b.name+b.variant+a.name] {
			t.Errorf("%s stands twice", name)
		}
		seen[b.name+b.variant+a.name] = true
	})
	for name := range deviceType() {
		if deviceDocs()[name] == "" {
			t.Errorf("device.%s is not explained", name)
		}
	}
}

// TestExamples evaluates every example of the table at its place: what messages
// tell people to write is accepted.
func TestExamples(t *testing.T) {
	// Of what excludes each other each run leaves out all but one.
	for _, without := range []string{
		"cloud clouds clouds_file secure secure_file identity_file known_hosts_file insecure tls.reason bmc.ca_file | env | token_file app_role kubernetes",
		"endpoint clouds_file secure_file identity known_hosts ca_file pins | vault | token_file app_role kubernetes",
		"endpoint clouds secure identity known_hosts ca_file pins | vault | token_env app_role kubernetes",
		"endpoint clouds secure identity known_hosts ca_file pins | vault | token_env token_file kubernetes secret_id_file",
		"endpoint clouds secure identity known_hosts ca_file pins | vault | token_env token_file app_role",
		"endpoint clouds secure identity known_hosts ca_file pins | onepassword | token_env",
		"endpoint clouds secure identity known_hosts ca_file pins | onepassword | token_file",
		"endpoint clouds secure identity known_hosts ca_file pins | age | identity_env",
		"endpoint clouds secure identity known_hosts ca_file pins | command |",
	} {
		parts := strings.Split(without, "|")
		examples(t, strings.TrimSpace(parts[1]), strings.Fields(parts[0]), strings.Fields(parts[2]))
	}
	for _, f := range functionTable() {
		if f.name == "try" || f.name == "can" { // they look at custom fields
			continue
		}
		src := minimal("", "  bmc {\n    credential = secret(\"x\", \"y\")\n    hostname = can("+f.example+") ? \"yes\" : \"no\"\n  }\n")
		file, ds := Load("", Options{Files: fstest.MapFS{"site.hcl": {Data: []byte(src)}, "banner.txt": {Data: []byte("x")}, "motd.tmpl": {Data: []byte("${name}")}}})
		if ds.HasErrors() {
			if f.name != "secret" { // not in a condition
				t.Errorf("%s: %s", f.name, text(t, ds))
			}
			continue
		}
		s, ds := file.Settings(device())
		if ds.HasErrors() || s.Hostname != "yes" {
			t.Errorf("example of %s: %q %v", f.name, s.Hostname, ds)
		}
	}
}

// examples writes a folder of all examples but some, with one secrets backend.
// skipSecrets are left out of its block only.
func examples(t *testing.T, backend string, skip, skipSecrets []string) {
	t.Helper()
	var b strings.Builder
	var write func(spec *block, indent string, skip []string)
	write = func(spec *block, indent string, skip []string) {
		for i := range spec.attrs {
			if a := &spec.attrs[i]; !a.later && !slices.Contains(skip, a.name) && !slices.Contains(skip, spec.name+"."+a.name) {
				fmt.Fprintf(&b, "%s%s = %s\n", indent, a.name, a.example)
			}
		}
		for _, child := range spec.blocks {
			if child.later || child.variant != "" && child.variant != backend || child.free || child.name == "variable" || slices.Contains(skip, child.name) {
				continue
			}
			left := skip
			if child.variant != "" {
				left = skipSecrets
			}
			fmt.Fprintf(&b, "%s%s {\n", indent, strings.TrimSuffix(blockExample(child), " { … }"))
			write(child, indent+"  ", left)
			b.WriteString(indent + "}\n")
		}
	}
	write(language(), "", append(skip, "include", "ntp_servers", "config", "warn", "require_approval"))
	_, ds := load(b.String(), Options{Version: "0.1.0"})
	if ds.HasErrors() || len(ds) > 0 && slices.Contains(skip, "insecure") {
		t.Errorf("with secrets %q without %v, %v: %s", backend, skip, skipSecrets, text(t, ds))
	}
}
