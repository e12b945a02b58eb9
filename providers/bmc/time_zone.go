package bmc

import (
	"context"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // what a zone means does not depend on the machine

	"github.com/enroll-dev/enroll/plan"
)

func timeZoneFacet() facet {
	return facet{kind: timeZoneKind(), read: readTimeZone, set: setTimeZone}
}

// timeZoneKind keeps the time zone in which the BMC shows times. A BMC that keeps
// an offset from UTC, or names zones in words of its own, can have only some.
func timeZoneKind() plan.Kind {
	return plan.Kind{
		Name: "bmc.time_zone", Phase: plan.PhaseBMC,
		Doc: "The time zone in which the BMC shows times. One that keeps an offset from UTC takes zones without daylight saving only; what it cannot have is shown and left alone.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || t.Site.BMC.TimeZone == "" {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("bmc", "time_zone", ""),
				Want:    plan.Obj(map[string]plan.Value{"TimeZoneName": plan.Str(t.Site.BMC.TimeZone)}),
				From:    from(t.Site.Set["bmc.ntp.time_zone"]),
			}}
		},
		Decide: observeUnsupported,
	}
}

// attrTimeZone is the iDRAC's; it takes the names of the IANA.
const attrTimeZone = "Time.1.Timezone"

// utcWords is how a Supermicro names UTC. Its words for other zones are not known.
const utcWords = "(UTC+00:00) Coordinated Universal Time"

// zone is the time zone of a BMC, held against a wanted one.
type zone struct {
	on    document
	shown string // as the BMC has it
	equal bool
	body  map[string]any // what makes it equal
}

func readTimeZone(ctx context.Context, k *conn, _ *plan.Target, want plan.Value) (plan.Value, evidence, *plan.Fault) {
	z, fault := k.zone(ctx, plan.Text(want, "TimeZoneName"))
	if fault != nil {
		return plan.Null, nil, fault
	}
	if z.equal {
		return want, evidence{"url": k.base + z.on.path, "shown": z.shown}, nil
	}
	return plan.Obj(map[string]plan.Value{"TimeZoneName": plan.Str(z.shown)}), evidence{"url": k.base + z.on.path}, nil
}

func setTimeZone(ctx context.Context, k *conn, _ *plan.Target, step *plan.Step, _ plan.Memo) plan.Result {
	wanted := plan.Text(step.After, "TimeZoneName")
	z, fault := k.zone(ctx, wanted)
	switch {
	case fault != nil:
		return plan.Failed(fault)
	case z.equal:
		return plan.Already()
	}
	return k.write(ctx, change{on: z.on, direct: k.family.attributes, body: z.body, same: func(now document) bool {
		again, fault := k.zoneIn(now, wanted)
		return fault == nil && again.shown == z.shown
	}})
}

// zone reads the place of the time zone.
func (k *conn) zone(ctx context.Context, wanted string) (zone, *plan.Fault) {
	var d document
	var fault *plan.Fault
	if k.family.attributes {
		d, fault = k.attributes(ctx)
	} else {
		d, fault = k.freshManager(ctx)
	}
	if fault != nil {
		return zone{}, fault
	}
	return k.zoneIn(d, wanted)
}

// zoneIn understands what a manager, or an iDRAC's attributes, show: a name of the
// IANA, Supermicro's words, or an offset from UTC alone.
func (k *conn) zoneIn(d document, wanted string) (zone, *plan.Fault) {
	now := k.client.opt.Now()
	offset, fixed := fixedOffset(wanted, now)
	name, hours := d.text("TimeZoneName"), d.text("DateTimeLocalOffset")
	z := zone{on: d}
	switch {
	case k.family.attributes:
		z.shown = d.text("Attributes", attrTimeZone)
		if z.shown == "" {
			return z, k.lacks(d, attrTimeZone)
		}
		z.equal = sameZone(z.shown, wanted, now)
		z.body = map[string]any{"Attributes": map[string]any{attrTimeZone: wanted}}
	case strings.HasPrefix(name, "(UTC"):
		if !fixed || offset != 0 {
			return z, k.lacks(d, "name for the time zone "+wanted+" that enroll knows; it names zones in its own words ("+cut(name, 60)+"), of which only those of UTC are known")
		}
		z.shown, z.equal, z.body = name, name == utcWords, map[string]any{"TimeZoneName": utcWords}
	case name != "":
		z.shown, z.equal, z.body = name, sameZone(name, wanted, now), map[string]any{"TimeZoneName": wanted}
	case hours != "":
		if !fixed {
			return z, k.lacks(d, "time zones but an offset from UTC, and that of "+wanted+" changes with daylight saving")
		}
		text := offsetText(offset)
		z.shown, z.equal, z.body = hours, sameOffset(hours, text), map[string]any{"DateTimeLocalOffset": text}
		if saving, _ := d.yes("AutoDSTEnabled"); saving {
			z.shown, z.equal, z.body["AutoDSTEnabled"] = hours+" with daylight saving", false, false
		}
	default:
		return z, k.lacks(d, "time zone")
	}
	return z, nil
}

// fixedOffset is the offset of a zone from UTC in seconds, where it has one for
// good.
func fixedOffset(name string, now time.Time) (seconds int, fixed bool) {
	at, err := time.LoadLocation(name)
	if name == "" || err != nil {
		return 0, false
	}
	here := now.In(at)
	_, seconds = here.Zone()
	for { // some builds of the database have a change in 2038 that changes nothing
		_, here = here.ZoneBounds()
		if here.IsZero() {
			return seconds, true
		}
		if _, next := here.Zone(); next != seconds {
			return 0, false
		}
	}
}

// sameZone tells that two names of the IANA mean the same, as UTC and Etc/UTC do.
func sameZone(a, b string, now time.Time) bool {
	offsetA, fixedA := fixedOffset(a, now)
	offsetB, fixedB := fixedOffset(b, now)
	return a == b || fixedA && fixedB && offsetA == offsetB
}

// offsetText writes an offset as Redfish does: +05:45.
func offsetText(seconds int) string {
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	return fmt.Sprintf("%s%02d:%02d", sign, seconds/3600, seconds/60%60)
}

// sameOffset compares offsets; UTC has three spellings, and an XCC sends blanks
// inside.
func sameOffset(have, want string) bool {
	have = strings.ReplaceAll(have, " ", "")
	return have == want || want == "+00:00" && (have == "Z" || have == "-00:00")
}
