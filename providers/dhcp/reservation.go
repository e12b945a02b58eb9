package dhcp

import (
	"errors"

	"github.com/enroll-dev/enroll/plan"
)

// Kinds are the kinds of resources that a DHCP server has.
func Kinds() []plan.Kind {
	return []plan.Kind{reservationKind(), indexKind(), staleKind(), serviceKind()}
}

// reservationKind is the file with a BMC's reservation. Its value is
// {"path", "content"}: content is the whole file.
func reservationKind() plan.Kind {
	return plan.Kind{
		Name:   "dhcp." + kindReservation,
		Phase:  plan.PhaseDHCP,
		First:  true, // before the index
		Want:   wantReservation,
		Decide: decideReservation,
		Doc:    "the DHCP reservation of the BMC: its MAC, its oob_ip and a name, in one file on the DHCP server",
	}
}

func enabled(s *plan.Site) bool { return s.ConfigureDHCP && s.DHCP != nil }

func wantReservation(t *plan.Target) []plan.Resource {
	if !enabled(t.Site) {
		return nil
	}
	r := plan.Resource{Address: t.Address("dhcp", kindReservation, ""), Want: plan.Null, From: sources(t)}
	if entry, at, f := entryFor(t); f == nil { // a fault is Decide's to tell
		r.Want = plan.Obj(map[string]plan.Value{"path": plan.Str(at), "content": plan.Str(Render(*t.Site.DHCP, entry))})
	}
	return []plan.Resource{r}
}

func sources(t *plan.Target) []string {
	var out []string
	if t.Intent.URL != "" {
		out = append(out, t.Intent.URL)
	}
	if at := t.Site.Set["dhcp.directory"]; at != "" {
		out = append(out, at)
	}
	return out
}

func decideReservation(d plan.Decision) plan.Verdict {
	entry, _, f := entryFor(d.Target)
	if f == nil {
		f = rival(d.Scope, d.Target, entry)
	}
	if f != nil {
		return plan.Verdict{Fault: f}
	}
	if d.Live.Presence == plan.Unreadable && (errors.Is(d.Live.Fault, plan.CodeDHCPConflict) || errors.Is(d.Live.Fault, plan.CodeDHCPForeignFile)) {
		return plan.Verdict{Fault: d.Live.Fault} // it was read, and it says no
	}
	return plan.Compare(d)
}

// rival finds another device of this run that needs the same MAC, address or
// name. The folder does not show it while neither has its file.
func rival(sc *plan.Scope, t *plan.Target, e Entry) *plan.Fault {
	for _, other := range sc.Targets {
		o := other.Intent
		if other == t || o.Name == t.Intent.Name {
			continue
		}
		what := ""
		switch {
		case o.BMCMAC == e.MAC:
			what = "MAC " + e.MAC.String()
		case o.OOB.Unmap() == e.Address:
			what = "address " + e.Address.String()
		case lowerASCII(o.Name) == lowerASCII(t.Intent.Name): // the only way to one file name, see entryName
			what = "name " + e.Name
		default:
			continue
		}
		return plan.NewFault(plan.CodeDHCPConflict, "%s and %s both need %s", t.Intent.Name, o.Name, what).
			With(t.Intent.Name, t.Intent.URL).With(o.Name, o.URL).
			WithHint("Correct one of the two devices in NetBox.")
	}
	return nil
}

// entriesOf derives the entries of devices by the paths of their files, for the
// judgement of the service. Devices whose entry has a fault have none.
func entriesOf(sc *plan.Scope, devices []string) map[string]Entry {
	out := map[string]Entry{}
	for _, name := range devices {
		if t := sc.Target(name); t != nil {
			if entry, at, f := entryFor(t); f == nil {
				out[at] = entry
			}
		}
	}
	return out
}
