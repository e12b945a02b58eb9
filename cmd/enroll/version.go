package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/plan"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the program and of its plan files", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.sys.stdout, "enroll %s, plan format %s, %s %s/%s\n", version, plan.FormatVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
