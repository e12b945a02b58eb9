package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/schema"
)

func (a *app) explainCommand() *cobra.Command {
	var file string
	var full bool
	cmd := &cobra.Command{
		Use: "explain NAME|ADDRESS", Short: "Explain a fault code, a name of the site language, or what is wanted and live at an address",
		Long: "ADDRESS is [SITE/]DEVICE/SYSTEM.KIND[KEY], or SITE/SYSTEM.KIND, also as a glob behind the device: what is wanted\n" +
			"there and where that comes from (NetBox's page, file and line), what is live, the rule that decided and the\n" +
			"verdict; the systems are asked, or with --plan a plan file, and nothing is written. For what devices share it\n" +
			"is what a plan of all the site's devices says.\n\n" +
			"NAME is a fault code, an attribute or a block by its path, a function, a reference such as device.name, or a\n" +
			"key of a config context. For attributes, when --site is given, the value that the site has, and the file\n" +
			"and line that set it.",
		Example: "  enroll explain PLAN_STALE\n  enroll explain --site sites/lon14 ironic.attempts\n  enroll explain within\n  enroll explain ironic_settings.bond.mode\n  enroll explain gpu-017/bmc.ntp\n  enroll explain --plan gpu-017.plan 'gpu-017/ironic.*'",
		Args:    exactlyOne("one name, for example PLAN_STALE, dhcp.host or within, or one address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isAddress(args[0]) {
				return a.explainAddress(cmd.Context(), args[0], file, full)
			}
			if file != "" {
				return usageError{fmt.Errorf("--plan is for addresses, which have a slash, and %q has none", args[0])}
			}
			if code := plan.Code(strings.ToUpper(args[0])); plan.Codes()[code] != (plan.CodeInfo{}) {
				return explainCode(a.sys.stdout, code)
			}
			if args[0] == walkTopic {
				return explainWalk(a.sys.stdout)
			}
			topics, suggestions := schema.Explain(args[0])
			if len(topics) == 0 {
				return unexplained(args[0], suggestions)
			}
			for i, t := range topics {
				if i > 0 {
					fmt.Fprintln(a.sys.stdout)
				}
				if err := explainTopic(a.sys.stdout, t); err != nil {
					return err
				}
			}
			if _, fromEnv := a.sys.lookupEnv("ENROLL_SITE"); topics[0].Kind == "attribute" && (fromEnv || cmd.Flags().Changed("site")) {
				return a.explainValue(args[0])
			}
			return nil
		},
		ValidArgsFunction: a.completeExplained,
	}
	cmd.Flags().StringVar(&file, "plan", "", "explain an address by this plan file, without asking any system")
	cmd.Flags().BoolVar(&full, "full", false, "show long values whole")
	return cmd
}

// unexplained is the error for a name that nothing has.
func unexplained(name string, suggestions []string) error {
	if strings.ToUpper(name) == name && strings.Contains(name, "_") {
		var codes []string
		for code := range plan.Codes() {
			codes = append(codes, string(code))
		}
		slices.Sort(codes)
		return usageError{fmt.Errorf("there is no fault code %q; plan/FAULTS.md lists them all%s", name, meant(plan.Suggest(name, codes)))}
	}
	if kind, _, _ := strings.Cut(name, "["); slices.Contains(plan.KindNames(), kind) {
		return usageError{fmt.Errorf("%q is a kind of resource; write the device before it, as in gpu-017/%s, or the site where devices share it", name, name)}
	}
	return usageError{fmt.Errorf("nothing is named %q; schema/REFERENCE.md lists the site language, plan/FAULTS.md the fault codes, and what a device has is asked for as in gpu-017/bmc.ntp%s", name, meant(suggestions...))}
}

// meant is the end of an error about a name; empty names suggest nothing.
func meant(names ...string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(". Did you mean \"%s\"?", strings.Join(names, "\" or \""))
}

func explainCode(w io.Writer, code plan.Code) error {
	info := code.Info()
	retry := "no: somebody has to act first"
	if info.Retry {
		retry = "yes: it may pass by itself"
	}
	_, err := fmt.Fprintf(w, "%s\n  %s\n  owner   %s\n  class   %s\n  retry   %s\n  what to do   %s\n", code, info.Text, info.Owner, info.Class, retry, info.Hint)
	return err
}

func explainTopic(w io.Writer, t schema.Topic) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (%s)\n", t.Name, t.Kind)
	for _, line := range view.Wrap(strings.ReplaceAll(t.Doc, "`", ""), 98) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if t.Later {
		b.WriteString("  This version of enroll refuses it: it is not supported yet.\n")
	}
	facts := t.Facts
	if t.Example != "" {
		facts = append(facts, schema.Fact{Name: "example", Text: t.Example})
	}
	if len(t.Below) > 0 {
		facts = append(facts, schema.Fact{Name: "holds", Text: strings.Join(t.Below, ", ")})
	}
	width := 0
	for _, f := range facts {
		width = max(width, utf8.RuneCountInString(f.Name))
	}
	for _, f := range facts {
		for i, line := range view.Wrap(strings.ReplaceAll(f.Text, "`", ""), 96-width) {
			name := f.Name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "  %-*s  %s\n", width, name, line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// explainValue tells what the site says about an attribute.
func (a *app) explainValue(name string) error {
	file, diags := a.load(a.siteDir)
	if diags.HasErrors() {
		if err := a.printDiagnostics(diags, "text"); err != nil {
			return err
		}
		return exitStatus(exitConfig)
	}
	values := file.Values(name)
	fmt.Fprintf(a.sys.stdout, "\nsite %s\n", file.Site().Name)
	if len(values) == 0 {
		fmt.Fprintf(a.sys.stdout, "  the site has no such block\n")
	}
	for _, v := range values {
		fmt.Fprintf(a.sys.stdout, "  %s = %s\n", view.Clean(v.Path), view.Clean(v.Value))
		if v.Default {
			fmt.Fprintf(a.sys.stdout, "    the default\n")
			continue
		}
		fmt.Fprintf(a.sys.stdout, "    %s%s\n", view.Clean(v.Place), asWritten(v.Text, v.Value))
		for _, o := range v.Overridden {
			fmt.Fprintf(a.sys.stdout, "    instead of %s at %s\n", view.Clean(o.Text), view.Clean(o.Place))
		}
	}
	return nil
}

// asWritten shows an expression where it is not the value itself.
func asWritten(text, value string) string {
	if text == value || strings.Contains(text, "\n") {
		return ""
	}
	return ": " + view.Clean(text)
}
