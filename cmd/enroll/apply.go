package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

type applyFlags struct {
	planFlags
	autoApprove bool
	approved    []string // policies
	journal     string
	devices     int
	siteGiven   bool
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use: "apply PLANFILE | DEVICE…", Short: "Execute a plan: a reviewed file, or a fresh one for devices",
		Example: "  enroll apply gpu-017.plan\n  enroll apply gpu-017 gpu-018",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.siteGiven = cmd.Flags().Changed("site")
			if len(args) == 1 && isFile(args[0]) && !f.all {
				return a.applyFile(cmd.Context(), f, args[0])
			}
			if len(args) == 1 && strings.ContainsAny(args[0], "/.") && !f.all {
				return usageError{fmt.Errorf("there is no plan file %q, and no device has such a name", args[0])}
			}
			return a.applyDevices(cmd.Context(), f, args)
		},
	}
	cmd.ValidArgsFunction = a.completeDevices
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all devices of the site's device classes")
	cmd.Flags().StringArrayVar(&f.targets, "target", nil, "only steps whose address fits this glob, and what they need")
	cmd.Flags().BoolVar(&f.autoApprove, "auto-approve", false, "do not ask; for scripts")
	cmd.Flags().StringArrayVar(&f.approved, "approve", nil, "approve what this policy of the site asks approval for")
	_ = cmd.RegisterFlagCompletionFunc("approve", a.completePolicies) // the flag exists
	cmd.Flags().StringVar(&f.journal, "journal", "", "folder of the journal (default: beside the plan file, else the user's state folder)")
	cmd.Flags().IntVar(&f.devices, "devices-at-once", 16, "how many devices have an exchange in flight at once")
	f.life = plan.DefaultLife
	return cmd
}

// applyDevices plans, shows, asks and applies.
func (a *app) applyDevices(ctx context.Context, f applyFlags, names []string) error {
	if err := f.check(names); err != nil {
		return err
	}
	p, s, err := a.plan(ctx, f.planFlags, names)
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return err
	}
	a.remember(p)
	if err := a.print(p, f.shape); err != nil {
		return err
	}
	if !p.HasWork() {
		if code := planExit(p, false); code != exitDone {
			return exitStatus(code)
		}
		return nil
	}
	if err := a.approve(p, f); err != nil {
		return err
	}
	if err := a.approvePolicies(p, s.site, f); err != nil {
		return err
	}
	dir := f.journal
	if dir == "" {
		dir = a.stateDir()
	}
	return a.execute(ctx, p, s, f, dir)
}

// applyFile applies a reviewed plan: exactly its steps or fewer.
func (a *app) applyFile(ctx context.Context, f applyFlags, path string) error {
	if len(f.targets) > 0 {
		return usageError{errors.New("a plan file is applied as it was reviewed; give --target to enroll plan")}
	}
	p, err := readPlan(path)
	if err != nil {
		return err
	}
	if err := a.checkPlan(p); err != nil {
		return err
	}
	dir := f.journal
	if dir == "" {
		dir = filepath.Dir(path)
	}
	if done, err := apply.ReadJournal(dir, p.PlanID); err != nil {
		return err
	} else if done.Ended {
		return plan.NewFault(plan.CodePlanApplied, "plan %s was applied before", p.PlanID).With("journal", filepath.Join(dir, p.PlanID+".jsonl"))
	}
	siteDir := p.SiteDir
	if f.siteGiven {
		siteDir = a.siteDir
	}
	if err := a.print(p, f.shape); err != nil {
		return err
	}
	if err := a.approve(p, f); err != nil {
		return err
	}
	s, err := a.open(ctx, siteDir, selection{names: p.Scope.Devices}, p.PlanID)
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return err
	}
	if err := sameSite(p, s.site); err != nil {
		return err
	}
	s.holdMoved(p)
	if err := a.judgeAgain(p, s); err != nil {
		return err
	}
	if err := a.approvePolicies(p, s.site, f); err != nil {
		return err
	}
	return a.execute(ctx, p, s, f, dir)
}

// checkPlan refuses plans that may not be applied at all.
func (a *app) checkPlan(p *plan.Plan) error {
	if p.Tool.Version != version {
		return plan.NewFault(plan.CodePlanStale, "the plan was made by enroll %s, this is %s", p.Tool.Version, version)
	}
	if now := a.sys.now(); now.After(p.Expires) {
		return plan.NewFault(plan.CodePlanExpired, "the plan was valid until %s", p.Expires.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return nil
}

// sameSite refuses a plan whose site files have changed since.
func sameSite(p *plan.Plan, site *plan.Site) error {
	if p.Scope.Site != site.Name {
		return plan.NewFault(plan.CodePlanStale, "the plan is for site %s, the files are of site %s", p.Scope.Site, site.Name)
	}
	then, now := map[string]string{}, map[string]string{}
	for _, f := range p.Inputs.Files {
		then[f.Name] = f.SHA256
	}
	for _, f := range site.Files {
		now[f.Name] = f.SHA256
	}
	var moved []string
	for name, hash := range then {
		if now[name] != hash {
			moved = append(moved, name)
		}
	}
	for name := range now {
		if then[name] == "" {
			moved = append(moved, name)
		}
	}
	if len(moved) > 0 {
		sort.Strings(moved)
		return plan.NewFault(plan.CodePlanStale, "site files changed since the plan: %s", strings.Join(moved, ", "))
	}
	return nil
}

// holdMoved blocks the steps of devices whose record in NetBox moved since the
// plan, or which NetBox no longer shows as plannable.
func (s *session) holdMoved(p *plan.Plan) {
	for _, name := range p.Scope.Devices {
		t := s.scope.Target(name)
		var why string
		switch {
		case t == nil:
			why = "NetBox does not show the device any more"
		case len(t.Intent.Faults) > 0:
			why = t.Intent.Faults[0].Error()
		case t.Intent.Hash != p.Inputs.Intents[name]:
			why = "the device's record in NetBox changed since the plan"
		default:
			continue
		}
		for _, step := range p.Steps {
			if step.Address.Device == name && step.Blocked == nil {
				step.Blocked = &plan.Block{Rule: plan.RuleStale, Text: why}
			}
		}
	}
}

// approve asks the person at the terminal. The words to type grow with what is
// at stake.
func (a *app) approve(p *plan.Plan, f applyFlags) error {
	if !p.HasWork() {
		return nil
	}
	if f.autoApprove {
		fmt.Fprintf(a.sys.stdout, "Approved by --auto-approve: %s\n", stakes(p))
		return nil
	}
	if !a.sys.terminal {
		return usageError{errors.New("nobody can be asked here: stdin or stdout is no terminal; review the plan and say --auto-approve")}
	}
	want := "yes"
	if p.Summary.HostReboots > 0 {
		want = strconv.Itoa(p.Summary.HostReboots)
		fmt.Fprintf(a.sys.stdout, "%s\nType the number of hosts that will reboot to apply this plan: ", stakes(p))
	} else {
		fmt.Fprintf(a.sys.stdout, "%s\nType yes to apply this plan: ", stakes(p))
	}
	return a.answered(want)
}

// answered reads a line of the person at the terminal.
func (a *app) answered(want string) error {
	if a.answers == nil {
		a.answers = bufio.NewReader(a.sys.stdin) // one for all questions: it reads ahead
	}
	answer, err := a.answers.ReadString('\n')
	if err != nil && answer == "" {
		return plan.NewFault(plan.CodeInterrupted, "the question was not answered")
	}
	if strings.TrimSpace(answer) != want {
		return plan.NewFault(plan.CodeInterrupted, "not approved; nothing was done")
	}
	return nil
}

// stakes names what a plan costs.
func stakes(p *plan.Plan) string {
	s := p.Summary
	return fmt.Sprintf("%d hosts reboot, %d hosts lose the content of their disks, %d shared services restart or reload.", s.HostReboots, s.DiskErases, s.ServiceRestarts)
}

// stateDir is where journals of plans without a file stand.
func (a *app) stateDir() string {
	if dir, ok := a.sys.lookupEnv("XDG_STATE_HOME"); ok && dir != "" {
		return filepath.Join(dir, "enroll", "journal")
	}
	home, ok := a.sys.lookupEnv("HOME")
	if !ok || home == "" {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "enroll", "journal")
}

// execute runs the plan's steps and reports.
func (a *app) execute(ctx context.Context, p *plan.Plan, s *session, f applyFlags, journalDir string) error {
	journal, err := apply.OpenJournal(journalDir, p.PlanID, a.sys.now)
	if err != nil {
		return err
	}
	defer func() { a.warn(journal.Close()) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, quiet := a.interrupts(cancel)
	defer quiet()
	progress := view.NewProgress(a.sys.stdout, p, a.sys.color())
	past, err := apply.ReadJournal(journalDir, p.PlanID)
	if err != nil {
		return err
	}
	report, err := apply.Run(ctx, apply.Input{Scope: s.scope, Steps: p.Steps, PlanID: p.PlanID, Begun: past.Begun}, apply.Deps{
		Reader: s.router, Runner: s.router, Owner: s.router,
		Clock: apply.RealClock{}, Journal: journal, Events: progress.Event, Stop: stop,
	}, s.options(f))
	if report == nil {
		return err
	}
	if viewErr := view.Report(a.sys.stdout, report, a.sys.color()); viewErr != nil {
		return errors.Join(err, viewErr)
	}
	fmt.Fprintf(a.sys.stdout, "Journal %s\n", journal.Path())
	if err != nil {
		return err
	}
	if code := worst(reportExit(report), planExit(p, false)); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

// worst joins what applying came to with what the plan could not even try.
func worst(applied, planned int) int {
	if applied != exitDone {
		return applied
	}
	return planned
}

// options takes the limits from the site.
func (s *session) options(f applyFlags) apply.Options {
	o := apply.DefaultOptions()
	o.Devices = f.devices
	if len(s.site.Ironics) > 0 {
		i := s.site.Ironics[0]
		o.BusyMin, o.BusyMax, o.BusyBudget = i.LockBackoffMin, i.LockBackoffMax, i.LockMaxWait
	}
	return o
}

// interrupts turns the first signal into "start nothing new" and the second
// into "cancel". quiet ends the listening.
func (a *app) interrupts(cancel context.CancelFunc) (stop <-chan struct{}, quiet func()) {
	signals, end := a.sys.signals()
	stopping, over := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-over:
			return
		}
		fmt.Fprintln(a.sys.stderr, "Interrupted: starting nothing new, finishing what is in flight. Interrupt again to cancel.")
		close(stopping)
		select {
		case <-signals:
			cancel()
		case <-over:
		}
	}()
	return stopping, func() { end(); close(over) }
}
