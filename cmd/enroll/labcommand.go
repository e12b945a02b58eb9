package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
)

type labFlags struct {
	dir      string
	devices  int
	scenario string
	seed     int64
	families []string
	replay   string
}

func (a *app) labCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lab", Short: "Run simulators of all systems, to try enroll without touching anything",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.labRunCommand(), a.labScenariosCommand())
	return cmd
}

func (a *app) labRunCommand() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use: "run", Short: "Serve the lab until interrupted",
		Long: "Serves simulators of NetBox, Ironic, BMCs, a DHCP machine and a vault on loopback ports, in the foreground.\n" +
			"DIR gets site/ (for --site), env (lines to source), requests.jsonl (every request that a simulator\n" +
			"received) and, once all serve, ready. SIGTERM ends it; nothing is removed.",
		Example: "  enroll lab run --dir lab &\n  . lab/env\n  enroll plan gpu-001",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.labRun(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder for the lab's files (required)")
	cmd.Flags().IntVar(&f.devices, "devices", 2, "number of devices, gpu-001 on")
	cmd.Flags().StringVar(&f.scenario, "scenario", "fresh", "what the devices have been through; see enroll lab scenarios")
	cmd.Flags().StringSliceVar(&f.families, "families", nil, "of the devices' BMCs, in turn: "+strings.Join(lab.Families(), ", ")+" (default idrac,generic)")
	cmd.Flags().StringVar(&f.replay, "replay", "", "recording of a real BMC (enroll record bmc) to serve as the BMC of gpu-001; it takes no changes")
	_ = cmd.RegisterFlagCompletionFunc("families", cobra.FixedCompletions(lab.Families(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	cmd.Flags().Int64Var(&f.seed, "seed", 1, "for the made-up passwords; the same seed gives the same lab")
	return cmd
}

func (a *app) labScenariosCommand() *cobra.Command {
	return &cobra.Command{
		Use: "scenarios", Short: "List the scenarios of the lab", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, s := range lab.Scenarios() {
				if _, err := fmt.Fprintf(a.sys.stdout, "%-11s %s\n", s.Name, s.Doc); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) labRun(ctx context.Context, f labFlags) (err error) {
	scenario, ok := lab.FindScenario(f.scenario)
	switch {
	case !ok:
		return usageError{fmt.Errorf("--scenario: there is no %q; enroll lab scenarios lists them", f.scenario)}
	case f.dir == "":
		return usageError{errors.New("--dir is required: a folder for the lab's files")}
	case f.devices < 1 || f.devices > lab.MaxDevices:
		return usageError{fmt.Errorf("--devices wants 1 to %d", lab.MaxDevices)}
	}
	for _, family := range f.families {
		if !slices.Contains(lab.Families(), family) {
			return usageError{fmt.Errorf("--families: there is no %q; there are %s", family, strings.Join(lab.Families(), ", "))}
		}
	}
	replay, err := readRecording(f.replay)
	if err != nil {
		return err
	}
	if replay != nil && scenario.Converge != nil {
		return usageError{fmt.Errorf("--replay: a recording takes no changes, and scenario %s is one that enroll has brought about", scenario.Name)}
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	inUse, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inUse.Close()) }()
	if syscall.Flock(int(inUse.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return plan.NewFault(plan.CodeLockHeld, "a lab runs in %s already", dir).WithHint("End it, or give another --dir.")
	}
	if err := os.Remove(filepath.Join(dir, "ready")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	requests, err := os.OpenFile(filepath.Join(dir, "requests.jsonl"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, requests.Close()) }()
	l, err := lab.Start(lab.Options{Dir: dir, //nolint:contextcheck // servers live until Close
		Devices: f.devices, Seed: f.seed, Families: f.families, Replay: replay, Now: a.sys.now, Requests: requests})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := a.happen(ctx, l, dir, scenario); err != nil {
		return err
	}
	l.Recorder.Reset()
	if err := requests.Truncate(0); err != nil {
		return err
	}
	fmt.Fprintf(a.sys.stdout, "The lab serves %d devices, scenario %s.\n  . %s\nInterrupt to end it.\n", f.devices, scenario.Name, filepath.Join(dir, "env"))
	if err := os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// readRecording reads the file of --replay; none gives nil.
func readRecording(path string) (*recording.Recording, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, usageError{fmt.Errorf("--replay: %w", err)}
	}
	defer func() { _ = file.Close() }() // it was only read
	rec, err := recording.Decode(file)
	if err != nil {
		return nil, usageError{fmt.Errorf("--replay: %s: %w", path, err)}
	}
	return rec, nil
}

// happen lets the devices go through what the scenario says. enroll itself brings
// them on their way, so that a scenario is what enroll makes of them and nothing
// else.
func (a *app) happen(ctx context.Context, l *lab.Lab, dir string, scenario lab.Scenario) error {
	if scenario.Converge != nil {
		if err := a.converge(ctx, l, dir, scenario.Converge(l)); err != nil {
			return err
		}
	}
	return scenario.Change(l)
}

func (a *app) converge(ctx context.Context, l *lab.Lab, dir string, args []string) error {
	var out, errOut bytes.Buffer // an interrupt is told on the second one while the first one is written
	inner := *a.sys
	env := map[string]string{"ENROLL_SITE": filepath.Join(dir, "site"), "VAULT_TOKEN": l.Vault.Token, "XDG_STATE_HOME": filepath.Join(dir, "state")}
	inner.stdin, inner.stdout, inner.stderr = strings.NewReader(""), &out, &errOut
	inner.terminal = false
	inner.lookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if code := run(ctx, append([]string{"apply", "--auto-approve", "--journal", filepath.Join(dir, "journal")}, args...), &inner); code != exitDone {
		return fmt.Errorf("the lab's devices could not be brought on their way (exit %d):\n%s%s", code, out.String(), errOut.String())
	}
	return nil
}
