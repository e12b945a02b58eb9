package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/schema"
)

func (a *app) schemaCommand() *cobra.Command {
	var document string
	var ofPlan, ofEvents bool
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a site file, a plan file, an event stream, or a NetBox config context",
		Long: "Prints the JSON Schema of the site file in its JSON form, stamped with this version. With --context it is\n" +
			"the schema of one document that NetBox's config context holds, to be pasted into a config context profile.\n" +
			"With --plan it is the schema of plan files, and with --events that of the lines that apply --format json and\n" +
			"--json-into write, for programs that read them.",
		Example: "  enroll schema > site.schema.json\n  enroll schema --context ironic_settings\n  enroll schema --plan\n  enroll schema --events",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := schema.JSONSchema(version)
			ofContext := cmd.Flags().Changed("context")
			if ofPlan && ofContext || ofEvents && (ofPlan || ofContext) {
				return usageError{errors.New("--plan, --events and --context name a schema each; ask for one at a time")}
			}
			switch {
			case ofPlan:
				text = plan.JSONSchema()
			case ofEvents:
				var err error
				if text, err = view.StreamSchema(version); err != nil {
					return err
				}
			case ofContext:
				var ok bool
				if text, ok = schema.ContextSchema(document, version); !ok {
					return usageError{fmt.Errorf("--context: enroll reads no document %q; it reads %s", document, strings.Join(schema.ContextNames(), ", "))}
				}
			}
			_, err := a.sys.stdout.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&ofEvents, "events", false, "the schema of a line of the event stream of apply")
	cmd.Flags().BoolVar(&ofPlan, "plan", false, "the schema of plan files")
	cmd.Flags().StringVar(&document, "context", "", strings.Join(schema.ContextNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("context", cobra.FixedCompletions(schema.ContextNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}
