package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
	"github.com/enroll-dev/enroll/providers/netbox"
)

type backfillFlags struct {
	format   string
	devices  []string
	apply    bool
	detailed bool
}

func (a *app) backfillCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backfill", Short: "Fill in NetBox fields of devices that were enrolled before enroll knew them", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f backfillFlags
	class := &cobra.Command{
		Use: "platform-class [DEVICE…]", Short: "Record the platform class of devices that have none, all of a site or some",
		Long: "Computes the platform class of every staged or active device of the site's device classes, by the rules of\n" +
			"netbox.platform_class, and shows what would be recorded. Nothing is written without --apply, and a recorded\n" +
			"value is never overwritten: to correct one, clear it in NetBox and run this for the device by name. Only NetBox\n" +
			"is read and written, so devices that Nova owns are filled in too.",
		Example: "  enroll backfill platform-class --site sites/lon14\n  enroll backfill platform-class gpu-017 gpu-018 --apply",
		RunE: func(cmd *cobra.Command, names []string) error {
			f.devices = append(f.devices, names...)
			return a.backfillClasses(cmd.Context(), f)
		},
		ValidArgsFunction: a.completeDevices,
	}
	class.Flags().StringVar(&f.format, "format", "text", "text or json")
	class.Flags().StringArrayVar(&f.devices, "device", nil, "only this device, whatever its status; the same as naming it as an argument")
	class.Flags().BoolVar(&f.apply, "apply", false, "record what is to be set")
	class.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit 2 when there is something to set")
	_ = class.RegisterFlagCompletionFunc("device", a.completeDevices) // the flag exists
	_ = class.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(class)
	return cmd
}

// backfill is what was found and done, as --format json prints it.
type backfill struct {
	Site     string          `json:"site"`
	Applied  bool            `json:"applied"`
	Devices  []backfillRow   `json:"devices"`
	Coverage []coverage      `json:"gpu_type"`
	Summary  backfillSummary `json:"summary"`
}

type backfillRow struct {
	Device   string        `json:"device"`
	Verdict  string        `json:"verdict"` // set, kept equal, kept different, unresolvable
	Recorded string        `json:"recorded,omitempty"`
	Computed string        `json:"computed,omitempty"`
	URL      string        `json:"url,omitempty"`
	Written  bool          `json:"written"`
	Faults   []*plan.Fault `json:"faults,omitempty"` // why there is no class, or why it was not written
}

// coverage is one device type of devices with GPUs.
type coverage struct {
	Type    string `json:"device_type"`
	URL     string `json:"url"`
	Devices int    `json:"devices"`
	GPUType string `json:"gpu_type"` // "" is what is missing
}

type backfillSummary struct {
	Devices       int `json:"devices"`
	Set           int `json:"set"`
	KeptEqual     int `json:"kept_equal"`
	KeptDifferent int `json:"kept_different"`
	Unresolvable  int `json:"unresolvable"`
	Failed        int `json:"failed"`
}

func (a *app) backfillClasses(ctx context.Context, f backfillFlags) error {
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("--format is text or json, not %q", f.format)}
	}
	for _, name := range f.devices {
		if strings.TrimSpace(name) == "" {
			return usageError{fmt.Errorf("the name of a device is empty")}
		}
		if err := noFile(name); err != nil {
			return err
		}
	}
	id, err := newID()
	if err != nil {
		return err
	}
	s, err := a.openNetBox(ctx, "backfill "+id)
	if err != nil {
		return err
	}
	records, failed, err := s.classRecords(ctx, f.devices)
	if err != nil {
		return err
	}
	out, err := s.fill(ctx, id, f, records, failed)
	if err != nil {
		return err
	}
	if err := a.printBackfill(out, f.format); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return exitStatus(exitInterrupted)
	}
	if code := out.exit(f); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

func (s *session) classRecords(ctx context.Context, names []string) ([]netbox.ClassRecord, []plan.Diagnostic, error) {
	if len(names) == 0 {
		var err error
		if names, err = s.netbox.Names(ctx, s.site, netbox.Filter{}); err != nil {
			return nil, nil, err
		}
		if len(names) == 0 {
			return nil, nil, plan.NewFault(plan.CodeDeviceNotFound, "NetBox shows no device of the site's device classes in site %q", s.site.NetBox.Site)
		}
	}
	return s.netbox.PlatformClasses(ctx, s.site, unique(names))
}

// fill judges every record and writes, when it may, one device after the other.
func (s *session) fill(ctx context.Context, id string, f backfillFlags, records []netbox.ClassRecord, failed []plan.Diagnostic) (*backfill, error) {
	out := &backfill{Site: s.site.Name, Applied: f.apply, Devices: []backfillRow{}, Coverage: coverageOf(records)}
	alive := func(time.Time) {}
	if f.apply {
		var names []string
		for _, r := range records {
			if r.Verdict() == netbox.ClassSet {
				names = append(names, r.Device)
			}
		}
		locks, err := apply.LockDevices(s.app.lockDir(), s.site.Name, names, s.app.holder("backfill "+id))
		if err != nil {
			return nil, err
		}
		defer func() { s.app.warn(locks.Release()) }()
		alive = locks.Alive
	}
	for _, r := range records {
		alive(s.app.sys.now())
		row := backfillRow{Device: r.Device, Verdict: r.Verdict(), Computed: r.Computed, URL: r.URL, Faults: r.Faults}
		if r.Recorded != nil {
			row.Recorded = *r.Recorded
		}
		if f.apply && row.Verdict == netbox.ClassSet {
			if ctx.Err() != nil {
				row.Faults = append(row.Faults, plan.NewFault(plan.CodeInterrupted, "interrupted before %s was written", r.Device))
			} else if fault := s.netbox.RecordClass(ctx, s.site, r); fault != nil {
				row.Faults = append(row.Faults, fault)
			} else {
				row.Written = true
			}
		}
		for i := range row.Faults {
			row.Faults[i] = cleanFault(s.app.redactor, row.Faults[i])
		}
		out.add(row)
	}
	for _, d := range failed {
		if d.Severity == plan.SeverityError {
			out.add(backfillRow{Device: d.Device, Verdict: netbox.ClassUnresolvable, Faults: []*plan.Fault{cleanFault(s.app.redactor, d.Fault)}})
		}
	}
	return out, nil
}

func (b *backfill) add(row backfillRow) {
	b.Devices = append(b.Devices, row)
	b.Summary.Devices++
	switch row.Verdict {
	case netbox.ClassSet:
		b.Summary.Set++
		if len(row.Faults) > 0 {
			b.Summary.Failed++
		}
	case netbox.ClassEqual:
		b.Summary.KeptEqual++
	case netbox.ClassDifferent:
		b.Summary.KeptDifferent++
	default:
		b.Summary.Unresolvable++
	}
}

// coverageOf lists the device types of devices with GPUs, in the order of their
// first device.
func coverageOf(records []netbox.ClassRecord) []coverage {
	out := []coverage{}
	at := map[string]int{}
	for _, r := range records {
		if !r.GPU {
			continue
		}
		n, known := at[r.TypeURL]
		if !known {
			n = len(out)
			at[r.TypeURL] = n
			out = append(out, coverage{Type: r.Type, URL: r.TypeURL, GPUType: r.GPUType})
		}
		out[n].Devices++
	}
	return out
}

// exit is the code that a plan of the same outcome has.
func (b *backfill) exit(f backfillFlags) int {
	bad := b.Summary.Unresolvable + b.Summary.Failed
	switch {
	case bad > 0 && bad < b.Summary.Devices:
		return exitPartial
	case bad > 0:
		return exitError
	case f.detailed && !f.apply && b.Summary.Set > 0:
		return exitChanges
	}
	return exitDone
}

func (a *app) printBackfill(b *backfill, format string) error {
	if format == "json" {
		return view.JSON(a.sys.stdout, b)
	}
	w := tabwriter.NewWriter(a.sys.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Platform classes of site %s\n\n", view.Clean(b.Site))
	for _, row := range b.Devices {
		fmt.Fprintf(w, "%s %s\t%s\t%s\n", backfillMark(row), view.Clean(row.Device), row.Verdict, view.Clean(backfillText(row)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, row := range b.Devices {
		for _, fault := range row.Faults {
			fmt.Fprintln(a.sys.stdout)
			view.Fault(a.sys.stdout, fault, "", a.sys.color())
		}
	}
	covered, types := 0, 0
	for _, c := range b.Coverage {
		if c.GPUType != "" {
			covered++
		}
		types++
	}
	fmt.Fprintf(a.sys.stdout, "\ngpu_type is filled in for %d of %s with GPUs.\n", covered, counted(types, "device type", "device types"))
	for _, c := range b.Coverage {
		if c.GPUType == "" {
			fmt.Fprintf(a.sys.stdout, "  missing: %s, %s, %s\n", view.Clean(c.Type), counted(c.Devices, "device", "devices"), view.Clean(c.URL))
		}
	}
	verb := "to set"
	if b.Applied {
		verb = "set"
	}
	s := b.Summary
	if !b.Applied && s.Set > 0 {
		fmt.Fprintln(a.sys.stdout, "Nothing was written; --apply records what is to be set.")
	}
	_, err := fmt.Fprintf(a.sys.stdout, "Backfill: %s, %d %s, %d kept equal, %d kept different, %d unresolvable, %d failed.\n",
		counted(s.Devices, "device", "devices"), s.Set-s.Failed, verb, s.KeptEqual, s.KeptDifferent, s.Unresolvable, s.Failed)
	return err
}

func backfillMark(row backfillRow) string {
	switch {
	case len(row.Faults) > 0:
		return "✗"
	case row.Written:
		return "✓"
	case row.Verdict == netbox.ClassSet:
		return "+"
	case row.Verdict == netbox.ClassDifferent:
		return "!"
	}
	return " "
}

func backfillText(row backfillRow) string {
	switch {
	case row.Verdict == netbox.ClassDifferent:
		return row.Recorded + " (warning: its data comes to " + row.Computed + ")"
	case row.Verdict == netbox.ClassUnresolvable && len(row.Faults) > 0:
		return row.Faults[0].Summary
	case row.Verdict == netbox.ClassEqual:
		return row.Recorded
	}
	return row.Computed
}
