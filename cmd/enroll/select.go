package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
)

// deviceFlags say which devices a command is about, beside names as arguments.
type deviceFlags struct {
	all    bool
	filter netbox.Filter
}

func (f *deviceFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "all devices of the site's device classes that NetBox has as staged or active")
	cmd.Flags().StringSliceVar(&f.filter.Roles, "role", nil, "all devices with one of these roles (slugs)")
	cmd.Flags().StringSliceVar(&f.filter.Racks, "rack", nil, "all devices in one of these racks")
	cmd.Flags().StringSliceVar(&f.filter.Tags, "tag", nil, "all devices with all of these tags (slugs)")
	cmd.Flags().StringSliceVar(&f.filter.Statuses, "status", nil, "all devices with one of these statuses, in place of staged and active")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{"staged", "active", "planned", "offline", "failed", "inventory", "decommissioning"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	for _, name := range []string{"role", "rack", "tag"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // as above
	}
}

// filtered reports whether a flag narrows the devices.
func (f *deviceFlags) filtered() bool {
	return len(f.filter.Roles)+len(f.filter.Racks)+len(f.filter.Tags)+len(f.filter.Statuses) > 0
}

// check wants devices to be named in exactly one way.
func (f *deviceFlags) check(names []string) error {
	if slices.ContainsFunc(names, func(n string) bool { return strings.TrimSpace(n) == "" }) {
		return usageError{errors.New("the name of a device is empty")}
	}
	for _, name := range names {
		if err := noFile(name); err != nil {
			return err
		}
	}
	if (f.all || f.filtered()) == (len(names) > 0) {
		return usageError{errors.New("name the devices, or say --all, --role, --rack, --tag or --status; not both, not neither")}
	}
	return nil
}

// noFile refuses what can only mean a plan file where devices are named: NetBox would
// be asked for a device of that name.
func noFile(name string) error {
	switch {
	case !strings.ContainsRune(name, '/') && !strings.HasSuffix(name, ".plan"):
		return nil
	case isFile(name):
		return usageError{fmt.Errorf("%q is a file, and devices are wanted here; enroll show PLANFILE prints a plan file, enroll apply PLANFILE executes it, one at a time", name)}
	}
	return usageError{fmt.Errorf("there is no plan file of that name: %q, and no device is named so", name)}
}

func (f *deviceFlags) of(names []string) selection {
	return selection{names: names, all: len(names) == 0, filter: f.filter}
}

// selectFlags narrow a plan to a part of its steps.
type selectFlags struct {
	target   string // the name of the first flag in the command's help
	targets  []string
	excludes []string
}

// register makes the flags. The first is target where a plan is made and select
// where a plan file is cut down; each command takes both names for it.
func (f *selectFlags) register(cmd *cobra.Command, target string) {
	f.target = target
	other := map[string]string{"target": "select", "select": "target"}[target]
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == other {
			name = target
		}
		return pflag.NormalizedName(name)
	})
	cmd.Flags().StringArrayVar(&f.targets, target, nil, "only the steps that fit, and what they need: a glob over addresses (gpu-017/bmc.*, dhcp.reservation), kind:GLOB, action:GLOB or effect:GLOB; --"+other+" is the same")
	cmd.Flags().StringArrayVar(&f.excludes, "exclude", nil, "without the steps that fit, and what comes after them; globs as for --"+target)
	for _, name := range []string{target, "exclude"} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeSelection) // the flag exists
	}
}

func (f *selectFlags) selection() plan.Selection {
	return plan.Selection{Targets: f.targets, Excludes: f.excludes}
}

func (f *selectFlags) check() error {
	if err := f.selection().Check(); err != nil {
		return usageError{err}
	}
	return nil
}

// fit refuses a glob over addresses that fits nothing: a mistyped target would
// read as "nothing to do", a mistyped exclude would leave nothing out.
func (f *selectFlags) fit(addresses []plan.Address) error {
	if err := f.fitFlag(f.target, f.targets, addresses); err != nil {
		return err
	}
	return f.fitFlag("exclude", f.excludes, addresses)
}

// fitDesired is fit over what is looked at.
func (f *selectFlags) fitDesired(desired []plan.Resource) error {
	addresses := make([]plan.Address, 0, len(desired))
	for _, r := range desired {
		addresses = append(addresses, r.Address)
	}
	return f.fit(addresses)
}

// fitDevices refuses a glob over addresses that can mean none of the devices. It is
// what can be said while a fault hides a device's addresses.
func (f *selectFlags) fitDevices(s *session) error {
	var names []string
	for _, t := range s.scope.Targets {
		names = append(names, t.Name())
	}
	for _, d := range s.failed {
		names = append(names, d.Device)
	}
	for _, p := range append(slices.Clone(f.targets), f.excludes...) {
		if !slices.ContainsFunc(names, func(name string) bool { return plan.MayMean(p, s.site.Name, name) }) {
			return usageError{fmt.Errorf("%q means none of these devices: %s", p, strings.Join(names[:min(4, len(names))], ", "))}
		}
	}
	return nil
}

func (f *selectFlags) fitFlag(flag string, patterns []string, addresses []plan.Address) error {
	for _, p := range patterns {
		if !plan.IsAddressPattern(p) || slices.ContainsFunc(addresses, func(a plan.Address) bool {
			ok, err := a.Match(p)
			return err == nil && ok
		}) {
			continue
		}
		examples := make([]string, 0, 4)
		for _, a := range addresses[:min(4, len(addresses))] {
			examples = append(examples, a.String())
		}
		return usageError{fmt.Errorf("--%s %q fits no address of these devices; addresses look like %s", flag, p, strings.Join(examples, ", "))}
	}
	return nil
}
