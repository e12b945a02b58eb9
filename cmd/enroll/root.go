package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// app is one invocation of the program.
type app struct {
	sys      *sys
	siteDir  string
	vars     []string
	varFiles []string
	redactor *secrets.Redactor
	answers  *bufio.Reader // of the person at the terminal

	interrupts *interrupts
}

// run executes the command line and gives its exit code. Everything that is
// printed goes through a redactor that learns the run's secrets as they are
// read.
func run(ctx context.Context, args []string, s *sys) int {
	redactor := secrets.NewRedactor()
	a := &app{sys: s, redactor: redactor}
	ctx, quiet := a.listening(ctx)
	defer quiet()
	plainOut, plainErr := s.stdout, s.stderr
	out, errOut := redactor.Writer(&watched{Writer: s.stdout, lost: a.interrupts.lost}), redactor.Writer(s.stderr)
	s.stdout, s.stderr = out, errOut
	defer func() { s.stdout, s.stderr = plainOut, plainErr }()
	root := a.root() //nolint:contextcheck // commands take their context from ExecuteContext
	root.SetArgs(args)
	root.SetOut(s.stdout)
	root.SetErr(s.stderr)
	root.SetIn(s.stdin)
	command := root
	err := safely(func() (err error) {
		command, err = root.ExecuteContextC(ctx)
		return err
	})
	if lost := out.Flush(); err == nil {
		err = lost
	}
	a.report(err, command.CommandPath())
	if lost := errOut.Flush(); err == nil {
		err = lost
	}
	return exitCode(err)
}

// safely turns a defect into a fault: a panic must not end with an exit code
// that means something else.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = plan.NewFault(plan.CodeInternal, "the program broke down: %v", p).With("stack", string(debug.Stack()))
		}
	}()
	return f()
}

// report prints an error that no command has printed yet. The command's help is
// the way out of a wrong usage.
func (a *app) report(err error, command string) {
	var status exitStatus
	if err == nil || errors.As(err, &status) {
		return
	}
	var fault *plan.Fault
	if errors.As(err, &fault) {
		view.Fault(a.sys.stderr, cleanFault(a.redactor, fault), "", a.sys.color())
		return
	}
	fmt.Fprintf(a.sys.stderr, "enroll: %s\n", view.Clean(err.Error()))
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(a.sys.stderr, "Run `%s --help` for the usage.\n", command)
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "enroll",
		Short: "Plan and apply the enrolment of bare metal servers",
		Long: "enroll compares what NetBox and a site's HCL files say about racked servers with the live\n" +
			"DHCP server, BMC, NetBox fields and Ironic node, shows the difference as a plan, and applies\n" +
			"exactly that plan. It never touches a machine that Nova owns.",
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkGiven(cmd.Flags()); err != nil {
			return err
		}
		return a.checkVars()
	}
	root.Version = version
	root.PersistentFlags().StringVar(&a.siteDir, "site", a.defaultSite(), "folder of the site's HCL files; also ENROLL_SITE")
	root.PersistentFlags().StringArrayVar(&a.vars, "var", nil, "NAME=VALUE of a variable of the site files; also ENROLL_VAR_NAME")
	root.PersistentFlags().StringArrayVar(&a.varFiles, "var-file", nil, "file of lines NAME = VALUE (or .json) with values of variables; --var wins over it")
	_ = root.RegisterFlagCompletionFunc("site", completeSites) // the flag exists
	root.AddCommand(
		a.planCommand(), a.applyCommand(), a.statusCommand(), a.verifyCommand(), a.doctorCommand(),
		a.driftCommand(), a.showCommand(), a.diffCommand(), a.graphCommand(),
		a.validateCommand(), a.fmtCommand(), a.schemaCommand(), a.explainCommand(),
		a.backfillCommand(), a.recordCommand(), a.labCommand(), a.versionCommand(),
	)
	return root
}

// checkGiven refuses flags that are given without a value. In a script that is a
// variable which nobody set: --rack "$RACK" would be the whole site, and --expect
// "$(cat FILE)" no approval at all.
func checkGiven(flags *pflag.FlagSet) error {
	var without []string
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if len(values) == 0 || slices.Contains(values, "") {
			without = append(without, "--"+f.Name)
		}
	})
	if len(without) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("a flag is given without a value: %s; give it one, or leave it out", strings.Join(without, ", "))}
}

func (a *app) defaultSite() string {
	if dir, ok := a.sys.lookupEnv("ENROLL_SITE"); ok && dir != "" {
		return dir
	}
	return "."
}

// exactlyOne and noArgs make cobra's complaints usage errors with a way out.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("%s wants %s", cmd.CommandPath(), what)}
		}
		return nil
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
