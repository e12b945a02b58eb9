package netbox

import (
	"context"

	"github.com/enroll-dev/enroll/plan"
)

const kindPlatformClass = "netbox.platform_class"

// platformClassKind records the computed platform class where none is recorded.
// A populated field is never overwritten: a different value in it is almost
// always one that the fleet manager wrote from earlier data (reference
// workflow, phase 0b).
func platformClassKind() plan.Kind {
	return plan.Kind{
		Name:  kindPlatformClass,
		Phase: plan.PhaseRecord,
		Doc:   "NetBox custom field platform_class, computed from device type and config context; filled in when empty, never overwritten.",
		Want: func(t *plan.Target) []plan.Resource {
			if !t.Site.RecordPlatformClass || t.Intent.ComputedClass == "" {
				return nil
			}
			return []plan.Resource{platformClassResource(t)}
		},
		Decide: decidePlatformClass,
	}
}

func platformClassResource(t *plan.Target) plan.Resource {
	return plan.Resource{
		Address: t.Address("netbox", "platform_class", ""), Want: platformClassValue(t.Intent.ComputedClass), From: []string{t.Intent.URL},
	}
}

func platformClassValue(class string) plan.Value {
	return plan.Obj(map[string]plan.Value{"platform_class": plan.Str(class)})
}

func decidePlatformClass(d plan.Decision) plan.Verdict {
	if d.Live.Presence == plan.Unsupported {
		return plan.Verdict{Fault: d.Live.Fault}
	}
	if d.Live.Presence != plan.Present {
		return plan.Compare(d)
	}
	recorded, computed := plan.Text(d.Live.Value, "platform_class"), plan.Text(d.Resource.Want, "platform_class")
	switch recorded {
	case "", computed:
		return plan.Compare(d)
	}
	device := d.Resource.Address.Device
	return plan.Verdict{
		Observed: []plan.Observation{{
			Address: d.Resource.Address, Rule: "kept", Text: "NetBox records another platform class than its data comes to; the recorded one is kept and counts",
			Want: d.Resource.Want, Live: d.Live.Value,
		}},
		Warnings: []*plan.Fault{keptClass(device, recorded, computed).With("url", from(d.Resource))},
	}
}

func from(r plan.Resource) string {
	if len(r.From) == 0 {
		return ""
	}
	return r.From[0]
}

func keptClass(device, recorded, computed string) *plan.Fault {
	return plan.NewFault(plan.CodePlatformKept, "%s has the platform class %s in NetBox, whose data comes to %s; the recorded one is kept", device, clean(recorded, 140), computed).
		With("device", device).With("recorded", clean(recorded, 140)).With("computed", computed)
}

func livePlatformClass(_ plan.Resource, d liveDevice) plan.Live {
	recorded, err := recordedClass(unwrapFields(d.CustomFields))
	switch {
	case err != nil:
		return plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeIntentInvalid, "%s: %s", d.name(), err))
	case recorded == nil:
		return plan.LiveFault(plan.Unsupported, noClassField(d.name()))
	}
	return plan.LiveValue(platformClassValue(*recorded))
}

func noClassField(device string) *plan.Fault {
	return plan.NewFault(plan.CodePlatformRecordFailed, "NetBox has no custom field platform_class on devices, so that of %s cannot be recorded", device)
}

func runPlatformClass(ctx context.Context, c *Client, s *subject) plan.Result {
	class := plan.Text(s.step.After, "platform_class")
	r := c.write(ctx, s, edit{
		decide: func(d liveDevice) (change, bool, *plan.Fault) {
			recorded, err := recordedClass(unwrapFields(d.CustomFields))
			switch {
			case err != nil:
				return change{}, false, plan.NewFault(plan.CodePlatformRecordFailed, "%s: %s", s.name, err)
			case recorded == nil:
				// Some releases take an unknown custom field with 200 and drop it.
				return change{}, false, noClassField(s.name)
			case *recorded == class:
				return change{}, true, nil
			case *recorded != "":
				return change{}, false, plan.NewFault(plan.CodePlanStale, "somebody else recorded the platform class %s of %s meanwhile; it is kept", clean(*recorded, 140), s.name)
			}
			return change{fields: map[string]any{"platform_class": class}, message: c.note("platform_class " + class)}, false, nil
		},
		stuck: func(d liveDevice) (string, string) {
			found := "none"
			if recorded, err := recordedClass(unwrapFields(d.CustomFields)); err == nil && recorded != nil && *recorded != "" {
				found = clean(*recorded, 140)
			}
			return "platform class " + class, "platform class " + found
		},
	})
	if r.Outcome == plan.OutcomeFailed && recordFailed(r.Fault) {
		r.Fault = recordFault(s.name, r.Fault)
	}
	return r
}

// recordFailed tells failures of the recording from those that have a rule of
// their own: a plan that is stale, a run that was interrupted.
func recordFailed(f *plan.Fault) bool {
	switch f.Code { //nolint:exhaustive // all others are failures of NetBox
	case plan.CodePlatformRecordFailed, plan.CodePlanStale, plan.CodeInterrupted, plan.CodeDeviceNotFound, plan.CodeNotApplied, plan.CodeInternal:
		return false
	}
	return true
}

// recordFault gives a failure of NetBox the code that the reference workflow
// has for it; what NetBox did stays as its cause, evidence and way out.
func recordFault(device string, f *plan.Fault) *plan.Fault {
	out := plan.NewFault(plan.CodePlatformRecordFailed, "the platform class of %s could not be recorded", device).WithHint("%s", f.WayOut()).Because(f)
	for k, v := range f.Evidence {
		out = out.With(k, v)
	}
	return out.With("device", device)
}
