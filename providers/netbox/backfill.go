package netbox

import (
	"context"
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// ClassRecord is what NetBox records and what its data comes to for one device.
type ClassRecord struct {
	Device   string
	ID       int64
	URL      string
	TypeURL  string
	Type     string  // manufacturer and model
	GPU      bool    // the device's class has GPUs
	GPUType  string  // of the device type; "" when there is none, NOGPU where none is needed
	Recorded *string // nil: no such field; "": not set
	Computed string  // "" when there is a fault
	// Faults are why there is no class; then nothing is written.
	Faults []*plan.Fault
}

// The verdicts of a ClassRecord.
const (
	ClassSet          = "set"            // empty: the computed one is (to be) written
	ClassEqual        = "kept equal"     // recorded as computed
	ClassDifferent    = "kept different" // another one is recorded, and stays
	ClassUnresolvable = "unresolvable"
)

// Verdict is what the write policy of phase 0b makes of the record.
func (r ClassRecord) Verdict() string {
	switch {
	case len(r.Faults) > 0 || r.Recorded == nil:
		return ClassUnresolvable
	case *r.Recorded == "":
		return ClassSet
	case *r.Recorded == r.Computed:
		return ClassEqual
	}
	return ClassDifferent
}

// PlatformClasses resolves the platform class of devices by the same rules as
// Intents, from the devices and their types alone: whether the site records
// platform classes does not matter, because this is how a site gets ready to.
func (c *Client) PlatformClasses(ctx context.Context, site *plan.Site, names []string) ([]ClassRecord, []plan.Diagnostic, error) {
	names = slices.Clone(names)
	slices.SortFunc(names, compareNatural)
	names = slices.Compact(names)
	recording := *site
	recording.RecordPlatformClass = true
	w := &world{client: c, site: &recording, slug: siteSlug(site)}
	if len(names) == 0 {
		return nil, nil, nil
	}
	if err := w.readDevices(ctx, names); err != nil {
		return nil, nil, err
	}
	if err := w.readTypes(ctx, names); err != nil {
		return nil, nil, err
	}
	var out []ClassRecord
	var failed []plan.Diagnostic
	for _, name := range names {
		raw, f := w.find(name)
		if f != nil {
			failed = append(failed, plan.Diagnostic{Severity: plan.SeverityError, Device: name, Fault: f})
			continue
		}
		out = append(out, w.classRecord(raw))
	}
	return out, failed, nil
}

func (w *world) classRecord(raw device) ClassRecord {
	d := &draft{Intent: &plan.Intent{Site: w.slug, Name: *raw.Name}, world: w, device: raw}
	d.basics()
	r := ClassRecord{
		Device: d.Name, ID: d.ID, URL: d.URL, TypeURL: w.client.page("dcim/device-types", raw.DeviceType.ID),
		Type: clean(d.Manufacturer+" "+d.Model, 80), GPU: d.GPU,
	}
	if d.routed() {
		if context, err := decodeContext(raw.ConfigContext); err != nil {
			d.gap(plan.CodePlatformUnresolvable, d.URL+"config-context/", "%s has no platform class: its config context cannot be read", d.Name).because(err)
		} else {
			d.ConfigContext = context
			d.platform()
		}
		if kind, ok := w.types[raw.DeviceType.ID]; ok {
			r.GPUType, _ = classInput{gpu: d.GPU, kind: kind}.gpuType()
		}
	}
	r.Recorded, r.Computed, r.Faults = d.PlatformClass, d.ComputedClass, d.Faults
	return r
}

// RecordClass writes the computed class of a record whose verdict is ClassSet,
// as the step netbox.platform_class does, and waits between its exchanges.
func (c *Client) RecordClass(ctx context.Context, site *plan.Site, r ClassRecord) *plan.Fault {
	t := &plan.Target{Site: site, Intent: &plan.Intent{Name: r.Device, ID: r.ID, URL: r.URL, ComputedClass: r.Computed}}
	res := platformClassResource(t)
	step := &plan.Step{Address: res.Address, Action: plan.ActionUpdate, After: res.Want}
	scope := &plan.Scope{Site: site, Targets: []*plan.Target{t}}
	result := plan.Wait(0, "", nil)
	for result.Outcome == plan.OutcomeWait {
		if result.After > 0 {
			if err := c.opt.Sleep(ctx, result.After); err != nil {
				return plan.NewFault(plan.CodeInterrupted, "interrupted while %s was written; the value may be recorded already", r.Device).Because(err)
			}
		}
		result = c.Run(ctx, scope, step, result.Memo)
	}
	return result.Fault
}
