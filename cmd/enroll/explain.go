package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain CODE", Short: "Explain a fault code: what it means, who acts, what to do", Args: exactlyOne("one fault code, for example PLAN_STALE"),
		RunE: func(_ *cobra.Command, args []string) error {
			code := plan.Code(strings.ToUpper(args[0]))
			info, ok := plan.Codes()[code]
			if !ok {
				return usageError{fmt.Errorf("there is no fault code %q; plan/FAULTS.md lists them all", args[0])}
			}
			retry := "no: somebody has to act first"
			if info.Retry {
				retry = "yes: it may pass by itself"
			}
			_, err := fmt.Fprintf(a.sys.stdout, "%s\n  %s\n  owner   %s\n  class   %s\n  retry   %s\n  what to do   %s\n", code, info.Text, info.Owner, info.Class, retry, info.Hint)
			return err
		},
	}
}
