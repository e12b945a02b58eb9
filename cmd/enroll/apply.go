package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

type applyFlags struct {
	lockTimeout time.Duration
	planFlags
	autoApprove bool
	approved    []string // classes of effects, and policies
	journal     string
	devices     int
	siteGiven   bool
	limit       time.Duration
	jsonInto    string // file of the event stream
	expect      string // the content hash that was approved
	junit       string
	file        string // the plan file; "" when devices were planned
	resume      bool
	resumed     *apply.Past // what the run that is continued has written
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use: "apply PLANFILE | DEVICE…", Short: "Execute a plan: a reviewed file, or a fresh one for devices",
		Long: "Executes a plan file, or plans devices, shows the plan, asks, and executes it: exactly its steps, or fewer.\n\n" +
			"With --expect nobody is asked: the content hash says what was approved. For devices, the plan that is made now\n" +
			"must have that hash: the same steps with the same values and effects, the same records and site files; else\n" +
			"exit 12, and nothing is done. For a plan file, the file must have that hash, else exit 13; then its devices are\n" +
			"planned again, and a single step that the file does not cover (not in it, another value before or after, an effect more) is\n" +
			"exit 12, and nothing is done. What has become right since is left out. Policies that want approval still\n" +
			"want --approve, a plan file is still applied once and within its life, and each step's guard is read again.\n\n" +
			"With --resume the run of a plan file that was stopped or killed is continued, within the approval that it had:\n" +
			"nobody is asked again, and it need not end within the plan's life, in which it began. Every step reads\n" +
			"live first, also what the journal calls done, and policies that deny are asked again.",
		Example: "  enroll apply gpu-017.plan\n  enroll apply gpu-017 gpu-018\n  enroll apply gpu-017.plan --expect \"$(cat approved.hash)\"\n  enroll apply --resume gpu-017.plan",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, inEnvironment := a.sys.lookupEnv("ENROLL_SITE")
			f.siteGiven = inEnvironment || cmd.Flags().Changed("site")
			if len(args) == 1 && isFile(args[0]) && !f.all && !f.filtered() {
				return a.applyFile(cmd.Context(), f, args[0])
			}
			if f.resume {
				return usageError{errors.New("--resume continues the run of one plan file; what was applied by the devices' names goes on with the same command: it reads live first")}
			}
			return a.applyDevices(cmd.Context(), f, args)
		},
	}
	cmd.ValidArgsFunction = a.completeDevices
	f.forms(cmd, "text or json", "text", "json")
	f.deviceFlags.register(cmd)
	f.selectFlags.register(cmd, "target")
	f.parameterFlags.register(cmd)
	cmd.Flags().BoolVar(&f.autoApprove, "auto-approve", false, "do not ask; for scripts")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "continue the run of a plan file that was stopped or killed, within the approval that it had")
	cmd.Flags().StringVar(&f.expect, "expect", "", "the content hash that was approved; what is not that plan, or not part of it, is refused")
	_ = cmd.RegisterFlagCompletionFunc("expect", cobra.NoFileCompletions) // the flag exists
	cmd.Flags().StringSliceVar(&f.approved, "approve", nil, "do not ask; approve a plan that does no more than this: "+approvable()+"; and the policies of the site that are named")
	_ = cmd.RegisterFlagCompletionFunc("approve", a.completeApprove) // the flag exists
	cmd.Flags().StringVar(&f.journal, "journal", "", "folder of the journals, by which a plan is applied once (default: $XDG_STATE_HOME/enroll/journal)")
	cmd.Flags().IntVar(&f.devices, "devices-at-once", 0, "how many devices have an exchange in flight at once (default: limits.devices of the site)")
	cmd.Flags().DurationVar(&f.lockTimeout, "lock-timeout", 0, "how long to wait for another run's lock on the DHCP server (default 10m)")
	cmd.Flags().DurationVar(&f.limit, "timeout", 0, "stop in good order after this long, as the first interrupt does")
	cmd.Flags().StringVar(&f.jsonInto, "json-into", "", "write the event stream (as --format json prints it) to this file, beside the text")
	cmd.Flags().StringVar(&f.junit, "junit", "", "write the outcome to this file in the form that build servers read")
	f.life = plan.DefaultLife
	return cmd
}

// checkApply refuses what only a plan can be printed as.
func (f *applyFlags) checkApply() error {
	if f.devices < 0 || f.devices == 0 && f.given("devices-at-once") {
		return usageError{fmt.Errorf("--devices-at-once wants at least 1, not %d", f.devices)}
	}
	if f.limit < 0 {
		return usageError{fmt.Errorf("--timeout wants a duration such as 90m, not %s", f.limit)}
	}
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("apply prints text or json, not %q; enroll show --format markdown prints a plan file for a merge request", f.format)}
	}
	if err := f.checkExpect(); err != nil {
		return err
	}
	if f.resume && (f.expect != "" || f.autoApprove || len(f.approved) > 0) {
		return usageError{errors.New("--resume goes on within the approval that the plan was given; --approve, --auto-approve and --expect are for its first run")}
	}
	return nil
}

// applyDevices plans, shows, asks and applies.
func (a *app) applyDevices(ctx context.Context, f applyFlags, names []string) error {
	if err := errors.Join(f.checkApply(), f.check(names)); err != nil {
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
	if err := a.expectPlan(f, p); err != nil {
		return err
	}
	return a.carryOut(ctx, p, s, f, planFaults(p))
}

// applyFile applies a reviewed plan: exactly its steps or fewer.
func (a *app) applyFile(ctx context.Context, f applyFlags, path string) error {
	if err := f.checkApply(); err != nil {
		return err
	}
	if !f.selection().None() {
		return usageError{errors.New("a plan file is applied as it was reviewed; enroll show PLANFILE --select GLOB --out FILE derives a smaller one")}
	}
	f.file = path
	p, err := readPlan(path)
	if err != nil {
		return err
	}
	if err := a.resumes(&f, p); err != nil {
		return err
	}
	if err := a.checkPlan(p, f); err != nil {
		return err
	}
	if err := apply.CheckUnused(a.journalDir(f), p.PlanID, p.ContentHash); err != nil {
		return err
	}
	if !f.none() {
		return usageError{errors.New("a plan file is applied with the parameters that it was planned with; make a new plan to change them")}
	}
	params, err := plan.ParseParameters(p.Scope.Parameters)
	if err != nil {
		return err
	}
	siteDir := p.SiteDir
	if f.siteGiven {
		siteDir = a.siteDir
	}
	file, err := a.read(siteDir)
	if err != nil {
		return err
	}
	if err := sameSite(p, file.Site()); err != nil { // no system is asked about a plan of other files
		return err
	}
	s, err := a.openFile(ctx, file, selection{names: p.Scope.Devices}, p.PlanID)
	if s != nil {
		defer func() { a.warn(s.close(ctx)) }()
	}
	if err != nil {
		return err
	}
	s.scope.Parameters = params
	if err := s.stillStale(ctx, p); err != nil {
		return err
	}
	moved := s.moved(p)
	if err := derived(p, s, moved); err != nil {
		return err
	}
	if err := a.judgeAgain(f.people(a), p, s); err != nil {
		return err
	}
	again, err := a.expectFile(ctx, f, p, s)
	if err != nil {
		return err
	}
	held := planFaults(p)
	for _, faults := range []map[string]*plan.Fault{moved, again} {
		for name, fault := range faults {
			if held[name] == nil {
				held[name] = fault
			}
		}
	}
	return a.carryOut(ctx, p, s, f, held)
}

// people is where people are talked to: stdout may belong to a program.
func (f *applyFlags) people(a *app) io.Writer {
	if f.format == "json" {
		return a.sys.stderr
	}
	return a.sys.stdout
}

// carryOut shows a plan, asks, and executes it. Everything that can forbid the
// run was looked at before, so that nobody approves in vain.
func (a *app) carryOut(ctx context.Context, p *plan.Plan, s *session, f applyFlags, held map[string]*plan.Fault) error {
	people := f.people(a)
	if err := checkApproved(f.approved, s.site); err != nil {
		return err
	}
	out, closeOut, err := a.outputs(f)
	if err != nil {
		return err
	}
	defer func() { a.warn(closeOut()) }()
	if err := out.plan(p); err != nil {
		return err
	}
	if f.format != "json" {
		if err := a.print(p, f.shape); err != nil {
			return err
		}
	}
	owed, err := apply.OpenObligations(a.journalDir(f), p.Scope.Site, p.Scope.Devices)
	if err != nil {
		return err
	}
	for _, o := range owed {
		fmt.Fprintf(people, "An earlier run left open, and this one sees to it: %s\n", view.Clean(o.Text))
	}
	if !p.HasWork() && len(owed) == 0 {
		if err := out.report(p, nil); err != nil {
			return err
		}
		if code := applyExit(nil, p); code != exitDone {
			return exitStatus(code)
		}
		return nil
	}
	locks, err := apply.LockDevices(a.lockDir(), p.Scope.Site, p.Scope.Devices, a.holder(p.PlanID))
	if err != nil {
		return err
	}
	defer func() { a.warn(locks.Release()) }()
	if err := a.approve(ctx, people, p, f); err != nil {
		return err
	}
	if err := a.approvePolicies(ctx, people, p, f); err != nil {
		return err
	}
	if err := a.stillAllowed(people, p, s, f); err != nil {
		return err
	}
	if !p.HasWork() && len(owed) == 0 {
		return exitStatus(applyExit(nil, p))
	}
	return a.execute(ctx, people, p, s, f, held, locks, out)
}

// planFaults are the devices that the plan itself could not plan.
func planFaults(p *plan.Plan) map[string]*plan.Fault {
	out := map[string]*plan.Fault{}
	for _, d := range p.Errors() {
		if d.Device != "" && out[d.Device] == nil {
			out[d.Device] = d.Fault
		}
	}
	return out
}

// checkPlan refuses plans that may not be applied at all.
func (a *app) checkPlan(p *plan.Plan, f applyFlags) error {
	if p.Tool.Version != version {
		return plan.NewFault(plan.CodePlanStale, "the plan was made by enroll %s, this is %s", p.Tool.Version, version)
	}
	return a.checkLife(p, f)
}

// checkLife refuses a plan that is older than its life. A run that is continued
// began within it.
func (a *app) checkLife(p *plan.Plan, f applyFlags) error {
	if f.resumed == nil && a.sys.now().After(p.Expires) {
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
	if site.Hash() != p.Inputs.Site {
		return plan.NewFault(plan.CodePlanStale, "the site's files are those of the plan, but come to another site: a variable has another value").
			WithHint("Give apply the same --var and ENROLL_VAR_… as the plan had, or make a new plan.")
	}
	return nil
}

// derived refuses a plan file with a step that these site files and records do not
// come to: somebody wrote it, or changed one.
func derived(p *plan.Plan, s *session, moved map[string]*plan.Fault) error {
	strays := p.Underived(s.scope, s.kinds, moved)
	if len(strays) == 0 {
		return nil
	}
	fault := plan.NewFault(plan.CodePlanInvalid, "%s of the file are none that enroll would make for this site; nothing was done", counted(len(strays), "step", "steps"))
	for _, stray := range strays {
		fault = fault.With(stray.Step.Address.String(), stray.Why)
	}
	return fault.WithHint("Find out who edited the file, and make a new plan.")
}

// moved are the devices whose record in NetBox moved since the plan, or which
// NetBox no longer shows as plannable.
func (s *session) moved(p *plan.Plan) map[string]*plan.Fault {
	out := map[string]*plan.Fault{}
	for _, name := range p.Scope.Devices {
		t := s.scope.Target(name)
		switch {
		case t == nil:
			out[name] = plan.NewFault(plan.CodePlanStale, "NetBox does not show %s any more", name)
		case len(t.Intent.Faults) > 0:
			out[name] = t.Intent.Faults[0]
		case t.Settings.Hash() != p.Inputs.Settings[name]:
			out[name] = plan.NewFault(plan.CodePlanStale, "the settings of %s are not those of the plan: a variable or NetBox's site changed", name)
		case t.Intent.Hash != p.Inputs.Intents[name]:
			out[name] = plan.NewFault(plan.CodePlanStale, "the record of %s in NetBox changed since the plan", name).With("url", t.Intent.URL)
		}
	}
	return out
}

// stateDir is where enroll keeps what outlives a run: journals, locks, which logins
// were refused and which BMCs are to be restarted.
func (a *app) stateDir() string {
	if dir, ok := a.sys.lookupEnv("XDG_STATE_HOME"); ok && dir != "" {
		return filepath.Join(dir, "enroll")
	}
	home, ok := a.sys.lookupEnv("HOME")
	if !ok || home == "" {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "enroll")
}

func (a *app) lockDir() string { return filepath.Join(a.stateDir(), "locks") }

// holder says who this run is, to those that meet its locks.
func (a *app) holder(planID string) apply.Holder {
	h := apply.Holder{User: "unknown", Host: "unknown", PID: os.Getpid(), Started: a.sys.now(), PlanID: planID}
	if u, err := user.Current(); err == nil {
		h.User = u.Username
	}
	if name, err := os.Hostname(); err == nil {
		h.Host = name
	}
	return h
}

// dhcpOptions say who this run is, to those that meet its lock on the DHCP server.
func (a *app) dhcpOptions() dhcp.Options {
	h := a.holder("")
	return dhcp.Options{Owner: dhcp.Holder{Owner: h.User, Host: h.Host, PID: h.PID}, Now: a.sys.now}
}

// journalDir is one folder for all plans, wherever their files are: a copied
// plan file is still the same plan.
func (a *app) journalDir(f applyFlags) string {
	if f.journal != "" {
		return f.journal
	}
	return filepath.Join(a.stateDir(), "journal")
}

// execute runs the plan's steps and reports.
func (a *app) execute(ctx context.Context, people io.Writer, p *plan.Plan, s *session, f applyFlags, held map[string]*plan.Fault, locks *apply.Locks, out *outputs) error {
	owed, err := apply.OpenObligations(a.journalDir(f), p.Scope.Site, p.Scope.Devices)
	if err != nil {
		return err
	}
	journal, err := apply.OpenJournal(a.journalDir(f), p.PlanID, a.sys.now)
	if err != nil {
		return err
	}
	defer func() { a.warn(journal.Close()) }()

	if s.dhcp != nil {
		s.dhcp.Applying(p.PlanID, f.lockTimeout)
	}
	progress, endProgress := a.progress(people, p)
	stop, end := a.interrupts.applying(func() { progress.Now(a.sys.now()) })
	defer end()
	past := journal.Past()
	report, err := apply.Run(ctx, apply.Input{Scope: s.scope, Steps: p.Steps, PlanID: p.PlanID, ContentHash: p.ContentHash, Begun: past.Begun, Done: past.Done, Ledgers: past.Ledgers, Held: held, Owed: owed, HadNode: hadNode(p), Nodes: nodesOf(p)}, apply.Deps{
		Reader: s.router, Runner: s.router, Owner: s.router, Restorer: s.router, Locked: locks.Lost,
		Clock: a.sys.clock, Journal: journal, Events: func(e plan.Event) { locks.Alive(a.sys.now()); progress.Event(e); out.event(e) }, Stop: stop,
	}, s.options(f))
	endProgress()
	if report == nil {
		return err
	}
	if viewErr := view.Report(people, report, a.sys.color()); viewErr != nil {
		return errors.Join(err, viewErr)
	}
	fmt.Fprintf(people, "Journal %s\n", view.Clean(journal.Path()))
	if next := nextCommand(report, f.file); next != "" {
		fmt.Fprintf(people, "Next    %s\n", view.Clean(next))
	}
	if err := errors.Join(err, out.report(p, report)); err != nil {
		return err
	}
	if code := applyExit(report, p); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

// progress shows what happens: a live block on a terminal that can draw one, else
// lines. The second value ends it.
func (a *app) progress(people io.Writer, p *plan.Plan) (progress, func()) {
	if t, _ := a.sys.lookupEnv("TERM"); a.sys.terminal && people == a.sys.stdout && t != "dumb" {
		l := view.NewLive(people, a.sys.screen, p, a.sys.color(), a.sys.now)
		return l, l.End
	}
	return view.NewProgress(people, p, a.sys.color()), func() {}
}

// progress tells people what happens.
type progress interface {
	Event(e plan.Event)
	Now(at time.Time)
}

// hadNode are the devices that had a node in Ironic when the plan was made.
func hadNode(p *plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, d := range p.Devices {
		out[d.Name] = d.IronicState != ""
	}
	return out
}

// nodesOf are the UUIDs of the nodes that the devices had when the plan was made.
func nodesOf(p *plan.Plan) map[string]string {
	out := map[string]string{}
	for _, d := range p.Devices {
		out[d.Name] = d.IronicNode
	}
	return out
}

// options takes the limits from the site.
func (s *session) options(f applyFlags) apply.Options {
	o := apply.DefaultOptions()
	l := s.site.Limits
	o.Limit = f.limit
	o.Devices, o.Reboots, o.RebootsPerRack = l.Devices, l.Reboots, l.RebootsPerRack
	o.Batches = map[string]int{"dhcp": l.DHCPBatch}
	if f.devices > 0 {
		o.Devices = f.devices
	}
	if len(s.site.Ironics) > 0 {
		i := s.site.Ironics[0]
		o.BusyMin, o.BusyMax, o.BusyBudget = i.LockBackoffMin, i.LockBackoffMax, i.LockMaxWait
	}
	return o
}
