package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

func (a *app) statusCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use: "status [PLANFILE | PLANID | JOURNAL]", Short: "Show a running, stopped or dead apply, from any terminal",
		Long: "Reads the journal of a plan: whether a process is at work on it, which steps are under way and what they\n" +
			"wait for, what failed, and what was left open. Without an argument it is the plan that was applied last,\n" +
			"and --all lists all of them. It changes nothing. Exit 3 when there is no journal of what was named.",
		Example: "  enroll status\n  enroll status gpu-017.plan\n  enroll status --all",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || f.all && len(args) > 0 {
				return usageError{fmt.Errorf("status wants at most one plan file, plan id or journal")}
			}
			return a.status(f, args)
		},
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "list the plans of the journal folder, the last one first")
	cmd.Flags().StringVar(&f.journal, "journal", "", "folder of the journals (default: $XDG_STATE_HOME/enroll/journal)")
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json")
	return cmd
}

func (a *app) status(f applyFlags, args []string) error {
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("--format is text or json, not %q", f.format)}
	}
	dir := a.journalDir(f)
	var past apply.Past
	switch {
	case len(args) == 0:
		all, err := apply.ListJournals(dir)
		if err != nil {
			return err
		}
		switch {
		case f.all && f.format == "json":
			return view.JSON(a.sys.stdout, append([]apply.Past{}, all...))
		case len(all) == 0 && f.format == "json":
			return view.JSON(a.sys.stdout, map[string]any{"journal": nil, "obligations": []plan.Obligation{}})
		case len(all) == 0:
			_, err := fmt.Fprintf(a.sys.stdout, "Nothing was applied from here yet: %s holds no journal.\n", view.Clean(dir))
			return err
		case f.all:
			return view.Journals(a.sys.stdout, all, a.sys.now(), a.sys.color())
		}
		past = all[0]
	default:
		var err error
		if dir, past, err = a.pastOf(dir, args[0]); err != nil {
			return err
		}
	}
	open, err := openOf(dir, past)
	if err != nil {
		return err
	}
	if f.format == "json" {
		return view.JSON(a.sys.stdout, map[string]any{"journal": past, "obligations": append([]plan.Obligation{}, open...)})
	}
	return view.Status(a.sys.stdout, past, open, a.sys.now(), a.sys.color())
}

// pastOf finds a journal by what a person has at hand.
func (a *app) pastOf(dir, arg string) (string, apply.Past, error) {
	id := arg
	switch {
	case strings.HasSuffix(arg, ".jsonl"):
		dir, id = filepath.Dir(arg), strings.TrimSuffix(filepath.Base(arg), ".jsonl")
	case !isFile(arg) && noFile(arg) != nil:
		return dir, apply.Past{}, usageError{fmt.Errorf("there is no plan file %q", arg)}
	case isFile(arg):
		p, err := readPlan(arg)
		if err != nil {
			return dir, apply.Past{}, err
		}
		id = p.PlanID
	}
	past, err := apply.ReadJournal(dir, id)
	if err == nil && past.PlanID == "" {
		err = usageError{fmt.Errorf("plan %q was not applied from here: %s has no journal of it", id, dir)}
	}
	return dir, past, err
}

// openOf are the obligations of the devices that a journal tells of.
func openOf(dir string, past apply.Past) ([]plan.Obligation, error) {
	seen := map[string]bool{}
	for _, s := range past.Steps {
		if at, err := plan.ParseAddress(s.Address); err == nil {
			seen[at.Device] = true
		}
	}
	devices := make([]string, 0, len(seen))
	for d := range seen {
		devices = append(devices, d)
	}
	return apply.OpenObligations(dir, past.Site, devices)
}
