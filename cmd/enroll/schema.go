package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/schema"
)

func (a *app) schemaCommand() *cobra.Command {
	var document string
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a site file, or of a NetBox config context",
		Long: "Prints the JSON Schema of the site file in its JSON form, stamped with this version. With --context it is\n" +
			"the schema of one document that NetBox's config context holds, to be pasted into a config context profile.",
		Example: "  enroll schema > site.schema.json\n  enroll schema --context ironic_settings",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := schema.JSONSchema(version)
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
	cmd.Flags().StringVar(&document, "context", "", strings.Join(schema.ContextNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("context", cobra.FixedCompletions(schema.ContextNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}
