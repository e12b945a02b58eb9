package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/schema"
)

func (a *app) validateCommand() *cobra.Command {
	var format string
	var live bool
	cmd := &cobra.Command{
		Use: "validate [DIR…]", Short: "Check site files; with --live also the systems that they name",
		Long: "Checks site files without any network. With --live it also asks the vault, NetBox, the DHCP server and\n" +
			"Ironic whether they answer and whether the credentials have the rights that a run needs. It writes nothing.",
		Example: "  enroll validate sites/*\n  enroll validate --live --site sites/lon14",
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if format != "text" && format != "json" {
				return usageError{fmt.Errorf("--format is text or json, not %q", format)}
			}
			if len(dirs) == 0 {
				dirs = []string{a.siteDir}
			}
			code := exitDone
			for _, dir := range dirs {
				got, err := a.validate(cmd.Context(), dir, format, live, nil)
				if err != nil {
					return err
				}
				if code == exitDone || got == exitConfig {
					code = got
				}
			}
			if code != exitDone {
				return exitStatus(code)
			}
			return nil
		},
		ValidArgsFunction: completeSites,
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&live, "live", false, "also ask the systems whether they answer and grant what a run needs; writes nothing")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// validate checks one folder and gives the exit code of what it found. more adds
// findings of its own; nil has none.
func (a *app) validate(ctx context.Context, dir, format string, live bool, more func() []providers.Finding) (int, error) {
	file, diags := a.load(dir)
	if diags.HasErrors() {
		return exitConfig, a.printDiagnostics(diags, format)
	}
	var findings []providers.Finding
	if live {
		findings = a.probe(ctx, file)
	}
	if more != nil {
		findings = append(findings, more()...)
	}
	code := exitDone
	for _, f := range findings {
		if f.Fault != nil && code == exitDone {
			code = faultExit(f.Fault)
		}
	}
	if format == "json" {
		return code, a.printFindingsJSON(diags, findings, live)
	}
	if err := a.printDiagnostics(diags, format); err != nil {
		return code, err
	}
	fmt.Fprintf(a.sys.stdout, "%s: site %s is valid.\n", dir, file.Site().Name)
	return code, a.printFindings(findings)
}

// load reads a site's folder with the variables of the command line and of the
// environment.
func (a *app) load(dir string) (*schema.File, schema.Diagnostics) {
	return schema.Load(dir, a.options())
}

func (a *app) printDiagnostics(diags schema.Diagnostics, format string) error {
	if format == "json" {
		return diags.WriteJSON(a.sys.stdout)
	}
	return diags.WriteText(a.sys.stderr, a.sys.color())
}

type findingJSON struct {
	What  string      `json:"what"`
	OK    bool        `json:"ok"`
	Note  string      `json:"note,omitempty"`
	Fault *plan.Fault `json:"fault,omitempty"`
}

// printFindingsJSON writes the diagnostics' object with one member more: live.
func (a *app) printFindingsJSON(diags schema.Diagnostics, findings []providers.Finding, live bool) error {
	if !live {
		return diags.WriteJSON(a.sys.stdout)
	}
	var b bytes.Buffer
	if err := diags.WriteJSON(&b); err != nil {
		return err
	}
	var report map[string]any
	if err := json.Unmarshal(b.Bytes(), &report); err != nil {
		return err
	}
	list := []findingJSON{}
	for _, f := range findings {
		list = append(list, findingJSON{f.What, f.Fault == nil, f.Note, f.Fault})
	}
	report["live"] = list
	return view.JSON(a.sys.stdout, report)
}

// failed counts the findings with a fault.
func failed(findings []providers.Finding) int {
	n := 0
	for _, f := range findings {
		if f.Fault != nil {
			n++
		}
	}
	return n
}

// sentence joins what is not empty.
func sentence(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "; ")
}
