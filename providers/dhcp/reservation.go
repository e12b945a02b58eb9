package dhcp

import (
	"context"
	"errors"
	"net/netip"
	"path"

	"github.com/enroll-dev/enroll/plan"
)

// Kinds are the kinds of resources that a DHCP server has.
func Kinds() []plan.Kind { return []plan.Kind{reservationKind(), indexKind(), serviceKind()} }

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
		case entryName(t.Site.DHCP, o.Name) == e.Name:
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

// runReservation uploads a device's file. The marker comes first: whatever
// happens from here on, somebody will reload.
func (p *Provider) runReservation(ctx context.Context, l *link, step *plan.Step) *plan.Fault {
	at, content := plan.Text(step.After, "path"), plan.Text(step.After, "content")
	entry, err := p.flavour.parse(content, p.settings.Options)
	if err != nil || path.Join(p.settings.Directory, entry.Name+p.flavour.extension) != at {
		return plan.NewFault(plan.CodePlanInvalid, "%s: the planned file %q is not one that enroll makes for %s", step.Address, at, p.settings.Directory).Because(err)
	}
	former := plan.Text(step.Before, "path")
	if former != "" && path.Dir(former) != p.settings.Directory {
		return plan.NewFault(plan.CodePlanInvalid, "%s: the former file %q is not in %s", step.Address, former, p.settings.Directory)
	}
	old, f := p.before(ctx, l, at)
	if f == nil {
		f = p.mayReplace(step, entry, at, content, old)
	}
	if f == nil {
		f = p.mark(ctx, l)
	}
	if f == nil && old.content != content {
		f = p.upload(ctx, l, at, content, old)
	}
	// A file under a former name goes only after the new one stands; one that an
	// index lists, only after the index.
	if f == nil && former != "" && former != at && p.flavour.index == "" {
		f = p.remove(ctx, l, former, plan.Text(step.Before, "content"))
	}
	if f == nil { // another run may have reloaded, and removed the first marker, before the file was there
		f = p.mark(ctx, l)
	}
	return f
}

// mayReplace looks once more at what stands at the path, in the moment before
// it is replaced. The wanted content may stand there already: an answer was
// lost, or a former file was left to be removed.
func (p *Provider) mayReplace(step *plan.Step, entry Entry, at, content string, old previous) *plan.Fault {
	planned := plan.Text(step.Before, "path") == at
	id, ours := p.flavour.owner(old.content)
	switch {
	case old.existed && old.content == content:
		return nil
	case planned && (!old.existed || old.content != plan.Text(step.Before, "content")):
		return plan.NewFault(plan.CodePlanStale, "%s on %s was changed since it was read", at, p.address).
			With("planned", plan.Text(step.Before, "content")).With("found", excerpt(old.content))
	case !planned && old.existed && (!ours || id != entry.DeviceID):
		return plan.NewFault(plan.CodeDHCPForeignFile, "%s appeared on %s since the folder was read, and is not the file of NetBox device %d", at, p.address, entry.DeviceID).
			With("content", excerpt(old.content))
	}
	return nil
}

// entriesOf derives the entries of devices by name, for the judgement of logs.
// Devices whose entry has a fault have none.
func entriesOf(sc *plan.Scope, devices []string) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	for _, name := range devices {
		if t := sc.Target(name); t != nil {
			if entry, at, f := entryFor(t); f == nil {
				out[at] = entry.Address
			}
		}
	}
	return out
}
