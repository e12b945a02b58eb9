package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/dhcp"
)

type doctorFlags struct {
	sudoers       bool
	accessRules   bool
	breakDHCPLock bool
	breakLock     string
	dropOpen      string // device
	journal       string
	yes           bool
	format        string
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look over the whole workplace: site files, systems, this machine's folders, locks",
		Long: "Checks what validate --live checks, and what a run needs on this machine: its state folder, who holds\n" +
			"the locks of devices and of the DHCP server, and what runs remember of BMCs: refused logins,\n" +
			"restarts that are due, and what was left open. It changes nothing but what one of its flags names.",
		Example: "  enroll doctor --site sites/lon14\n  enroll doctor --sudoers > enroll.sudoers\n  enroll doctor --break-lock gpu-017",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asked := 0
			for _, one := range []bool{f.sudoers, f.accessRules, f.breakDHCPLock, f.breakLock != "", f.dropOpen != ""} {
				if one {
					asked++
				}
			}
			switch {
			case asked > 1:
				return usageError{errors.New("doctor does one of --sudoers, --access-rules, --break-dhcp-lock, --break-lock and --drop-open at a time")}
			case f.format != "text" && f.format != "json":
				return usageError{fmt.Errorf("--format is text or json, not %q", f.format)}
			case f.sudoers:
				return a.sudoers()
			case f.accessRules:
				return a.accessRules(f.format)
			case f.breakDHCPLock:
				return a.breakDHCPLock(cmd.Context(), f)
			case f.breakLock != "":
				return a.breakLock(cmd.Context(), f)
			case f.dropOpen != "":
				return a.dropOpen(cmd.Context(), f)
			}
			look := func() []providers.Finding { return append(a.workplace(), a.leftOpen(f)...) }
			code, err := a.validate(cmd.Context(), a.siteDir, f.format, true, look)
			if err == nil && code != exitDone {
				err = exitStatus(code)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&f.sudoers, "sudoers", false, "print the file for /etc/sudoers.d of the DHCP server: the commands that enroll runs as root there, and no others")
	cmd.Flags().BoolVar(&f.accessRules, "access-rules", false, "print the access rules that an application credential for Ironic needs")
	cmd.Flags().BoolVar(&f.breakDHCPLock, "break-dhcp-lock", false, "take the lock on the DHCP server from a run that is known to be dead")
	cmd.Flags().StringVar(&f.breakLock, "break-lock", "", "take this machine's lock on `DEVICE` from a run that hangs")
	cmd.Flags().StringVar(&f.dropOpen, "drop-open", "", "forget what runs left open on `DEVICE` and cannot put back: its node is gone, or a person has seen to it")
	cmd.Flags().StringVar(&f.journal, "journal", "", "folder of the journals (default: $XDG_STATE_HOME/enroll/journal)")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask before a lock is broken or something is forgotten; for scripts")
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json, of the checks and the access rules")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	_ = cmd.RegisterFlagCompletionFunc("break-lock", a.completeDevices)
	return cmd
}

// site reads the site's files for a command that needs nothing else of them.
func (a *app) site() (*plan.Site, error) {
	file, diags := a.load(a.siteDir)
	if err := a.printDiagnostics(diags, "text"); err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, exitStatus(exitConfig)
	}
	return file.Site(), nil
}

func (a *app) sudoers() error {
	site, err := a.site()
	if err != nil {
		return err
	}
	if site.DHCP == nil {
		return plan.NewFault(plan.CodeConfigInvalid, "the site %s has no dhcp block", site.Name)
	}
	_, err = fmt.Fprint(a.sys.stdout, dhcp.Sudoers(*site.DHCP))
	return err
}

// workplace looks at what a run needs on this machine, and who holds its locks.
func (a *app) workplace() []providers.Finding {
	dir := a.stateDir()
	found := []providers.Finding{{What: "State folder " + dir, Fault: writable(dir)}}
	locks, err := apply.ListLocks(a.lockDir())
	if err != nil {
		return append(found, providers.Finding{What: "Locks of devices", Fault: plan.AsFault(err)})
	}
	left := 0
	for _, l := range locks {
		if !l.Held {
			left++
			continue
		}
		note := "held by " + l.Holder.String()
		if silent := a.sys.now().Sub(l.Holder.Alive).Round(time.Second); l.Holder.Hangs(a.sys.now()) {
			note += fmt.Sprintf("; it hangs, with no sign of life for %s: end that process, or: enroll doctor --break-lock %s", silent, l.Device)
		} else {
			note += fmt.Sprintf("; last sign of life %s ago", max(silent, 0))
		}
		found = append(found, providers.Finding{What: "Lock on " + l.Site + "/" + l.Device, Note: note})
	}
	note := "nobody holds one"
	if held := len(locks) - left; held > 0 {
		note = counted(held, "is held", "are held")
	}
	if left > 0 {
		note += "; " + counted(left, "file of an ended run holds", "files of ended runs hold") + " nobody back"
	}
	return append(append(found, providers.Finding{What: "Locks of devices", Note: note}), a.remembered()...)
}

// remembered is what earlier runs left for the next ones to know.
func (a *app) remembered() []providers.Finding {
	var found []providers.Finding
	refusals, restarts := a.refusals(), a.restarts("")
	err := refusals.each(func(all []bmc.Refusal, name ...string) {
		for _, r := range all {
			over := ""
			if r.IPMI {
				over = " over IPMI"
			}
			found = append(found, providers.Finding{What: "Refused login at " + strings.Join(name, " "),
				Note: fmt.Sprintf("account %s%s with %s, %s, last at %s; tried again with another secret, or when the BMC no longer counts these; %s",
					r.Account, over, r.Secret, counted(r.Count, "time", "times"), r.At.UTC().Format(time.DateTime+" UTC"), refusals.path(name...))})
		}
	})
	err = errors.Join(err, restarts.each(func(r bmc.Restart, name ...string) {
		note := "its password was changed " + r.Since.UTC().Format(time.DateTime+" UTC") + "; the next apply restarts it"
		if !r.Asked.IsZero() {
			note = "told to restart " + r.Asked.UTC().Format(time.DateTime+" UTC") + "; the next apply waits until it is ready"
		}
		found = append(found, providers.Finding{What: "Restart of the BMC of " + strings.Join(name, "/"), Note: note})
	}))
	if err != nil {
		found = append(found, providers.Finding{What: "What earlier runs remember", Fault: plan.NewFault(plan.CodeConfigInvalid, "a file of the state folder cannot be read").Because(err).
			WithHint("Remove the file: what it held is not known then, as if no run had been before.")})
	}
	return found
}

// writable reports whether files can be made in a folder, or the folder itself.
func writable(dir string) *plan.Fault {
	at := dir
	for {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return plan.NewFault(plan.CodeJournal, "%s is no folder", at)
		case err == nil:
			if err := syscall.Access(at, 0o3); err != nil { // write and search
				return plan.NewFault(plan.CodeJournal, "%s cannot be written to, so no run can begin", at).Because(err).
					WithHint("Give the folder to who runs enroll, or name another one with XDG_STATE_HOME.")
			}
			return nil
		case !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at):
			return plan.NewFault(plan.CodeJournal, "%s cannot be looked at", at).Because(err)
		}
		at = filepath.Dir(at)
	}
}

// sure asks before a lock is broken.
func (a *app) sure(ctx context.Context, f doctorFlags, holder string) error {
	fmt.Fprintf(a.sys.stdout, "Held by %s.\n", view.Clean(holder))
	if f.yes {
		return nil
	}
	if !a.sys.terminal {
		return usageError{errors.New("nobody can be asked here: stdin or stdout is no terminal; make sure that this run is dead and say --yes")}
	}
	fmt.Fprint(a.sys.stdout, "Two runs that write at once can undo each other. Type yes if that run is dead: ")
	return a.answered(ctx, "yes")
}

func (a *app) breakLock(ctx context.Context, f doctorFlags) error {
	site, err := a.site()
	if err != nil {
		return err
	}
	locks, err := apply.ListLocks(a.lockDir())
	if err != nil {
		return err
	}
	for _, l := range locks {
		if l.Site != site.Name || l.Device != f.breakLock || !l.Held {
			continue
		}
		if err := a.sure(ctx, f, l.Holder.String()); err != nil {
			return err
		}
		if err := apply.BreakLock(a.lockDir(), l.Site, l.Device); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.sys.stdout, "The lock on %s/%s is broken. Its run finds out before its next write; end it all the same.\n", l.Site, l.Device)
		return err
	}
	_, err = fmt.Fprintf(a.sys.stdout, "Nobody on this machine holds a lock on %s/%s.\n", site.Name, f.breakLock)
	return err
}

// breakDHCPLock shows who holds the lock on the site's DHCP server, asks, and
// breaks it.
func (a *app) breakDHCPLock(ctx context.Context, f doctorFlags) error {
	file, diags := a.load(a.siteDir)
	if err := a.printDiagnostics(diags, "text"); err != nil {
		return err
	}
	if diags.HasErrors() {
		return exitStatus(exitConfig)
	}
	s := &session{app: a, file: file, site: file.Site(), scope: &plan.Scope{Site: file.Site()}}
	d := s.site.DHCP
	if d == nil {
		return plan.NewFault(plan.CodeConfigInvalid, "the site %s has no dhcp block", s.site.Name)
	}
	backend, err := a.backend(s.site)
	if err != nil {
		return err
	}
	s.vault = newVault(backend, a.redactor)
	s.vault.show(d.KnownHosts)
	if err := s.vault.load(ctx, []plan.SecretRef{d.Identity, d.Passphrase, d.KnownHosts}); err != nil {
		return err
	}
	if err := s.connectDHCP(); err != nil {
		return err
	}
	defer func() { a.warn(s.close(ctx)) }()
	holder, held, fault := s.dhcp.LockHolder(ctx)
	switch {
	case fault != nil:
		return fault
	case !held:
		_, err := fmt.Fprintf(a.sys.stdout, "Nobody holds the lock on %s of %s.\n", d.Directory, d.Host)
		return err
	}
	if err := a.sure(ctx, f, fmt.Sprintf("%s; last sign of life %s ago", holder, holder.Age)); err != nil {
		return err
	}
	if fault := s.dhcp.BreakLock(ctx, holder); fault != nil {
		return fault
	}
	_, err = fmt.Fprintf(a.sys.stdout, "The lock on %s of %s is broken. The next run looks at what was left and continues.\n", d.Directory, d.Host)
	return err
}
