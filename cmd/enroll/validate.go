package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/schema"
)

func (a *app) validateCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "validate [DIR…]", Short: "Check site files without any network",
		RunE: func(_ *cobra.Command, dirs []string) error {
			if format != "text" && format != "json" {
				return usageError{fmt.Errorf("--format is text or json, not %q", format)}
			}
			if len(dirs) == 0 {
				dirs = []string{a.siteDir}
			}
			failed := false
			for _, dir := range dirs {
				file, diags := a.load(dir)
				if err := a.printDiagnostics(diags, format); err != nil {
					return err
				}
				if diags.HasErrors() {
					failed = true
					continue
				}
				if format == "text" {
					fmt.Fprintf(a.sys.stdout, "%s: site %s is valid.\n", dir, file.Site().Name)
				}
			}
			if failed {
				return exitStatus(exitConfig)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

// load reads a site's folder with the variables of the command line and of the
// environment.
func (a *app) load(dir string) (*schema.File, schema.Diagnostics) {
	return schema.Load(dir, schema.Options{Vars: a.variables(), Version: version, Now: a.sys.now()})
}

func (a *app) printDiagnostics(diags schema.Diagnostics, format string) error {
	if format == "json" {
		return diags.WriteJSON(a.sys.stdout)
	}
	return diags.WriteText(a.sys.stderr, a.sys.color())
}
