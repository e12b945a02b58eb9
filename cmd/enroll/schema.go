package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/schema"
)

func (a *app) schemaCommand() *cobra.Command {
	var document string
	var ofPlan bool
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a site file, a plan file, or a NetBox config context",
		Long: "Prints the JSON Schema of the site file in its JSON form, stamped with this version. With --context it is\n" +
			"the schema of one document that NetBox's config context holds, to be pasted into a config context profile.\n" +
			"With --plan it is the schema of plan files, for programs that read them.",
		Example: "  enroll schema > site.schema.json\n  enroll schema --context ironic_settings\n  enroll schema --plan",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := schema.JSONSchema(version)
			if ofPlan && cmd.Flags().Changed("context") {
				return usageError{errors.New("--plan and --context name two schemas; ask for one at a time")}
			}
			if ofPlan {
				text = plan.JSONSchema()
			}
			if cmd.Flags().Changed("context") {
				var ok bool
				if text, ok = schema.ContextSchema(document, version); !ok {
					return usageError{fmt.Errorf("--context: enroll reads no document %q; it reads %s", document, strings.Join(schema.ContextNames(), ", "))}
				}
			}
			_, err := a.sys.stdout.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&ofPlan, "plan", false, "the schema of plan files")
	cmd.Flags().StringVar(&document, "context", "", strings.Join(schema.ContextNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("context", cobra.FixedCompletions(schema.ContextNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}
