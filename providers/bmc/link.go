package bmc

import (
	"context"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Link is one NIC with its state and where that was seen.
type Link struct {
	NIC      plan.FrontendNIC
	State    plan.LinkState
	Evidence string
}

func linkFacet() facet { return facet{kind: linkKind(), read: readLink} }

// linkKind shows whether a frontend NIC has a link. All down is no verdict: a
// host that is off or has not loaded a driver shows the same; the watch during
// inspection and cleaning decides.
func linkKind() plan.Kind {
	return plan.Kind{
		Name: "check.link", Phase: plan.PhaseBMC,
		Doc: "A frontend NIC of the host has a link, as far as the BMC knows.",
		Want: func(t *plan.Target) []plan.Resource {
			if !configured(t) || len(t.Intent.Frontend) == 0 {
				return nil
			}
			return []plan.Resource{{
				Address: t.Address("check", "link", ""),
				Want:    plan.Obj(map[string]plan.Value{"Links": plan.Str(string(plan.LinkUp))}),
				From:    from(t.Intent.URL),
			}}
		},
		Decide: decideLink,
	}
}

func decideLink(d plan.Decision) plan.Verdict {
	check := plan.Check{Address: d.Resource.Address, Verdict: plan.CheckUnknown, Expected: "a frontend NIC has a link", From: d.Resource.From}
	switch {
	case d.Live.Presence == plan.Unsupported:
		return unsupported(d)
	case d.Live.Presence != plan.Present:
		// Login and identity are bmc.credential's to report.
		check.Observed, check.Text = "not seen", "The BMC could not be asked for link states."
		return plan.Verdict{Checks: []plan.Check{check}}
	}
	check.Observed = d.Live.Evidence["links"]
	switch plan.LinkState(plan.Text(d.Live.Value, "Links")) {
	case plan.LinkUp:
		check.Verdict = plan.CheckPass
	case plan.LinkDown:
		check.Text = "All frontend links are down now. That counts while the host boots over the network, where they are watched."
	case plan.LinkUnknown:
		check.Text = "The BMC does not tell the link state of these NICs."
	}
	return plan.Verdict{Checks: []plan.Check{check}}
}

func readLink(ctx context.Context, k *conn, t *plan.Target, _ plan.Value) (plan.Value, evidence, *plan.Fault) {
	links, fault := k.links(ctx, t)
	if fault != nil {
		return plan.Null, nil, fault
	}
	seen := evidence{"url": k.base + k.tree.system.path, "links": told(links)}
	return plan.Obj(map[string]plan.Value{"Links": plan.Str(string(Together(links)))}), seen, nil
}

// Together is the state of several links as the guard of inspection takes it: any
// that is up is up, all that are down are down, all else is unknown.
func Together(links []Link) plan.LinkState {
	down := 0
	for _, l := range links {
		switch l.State {
		case plan.LinkUp:
			return plan.LinkUp
		case plan.LinkDown:
			down++
		case plan.LinkUnknown:
		}
	}
	if down == len(links) && down > 0 {
		return plan.LinkDown
	}
	return plan.LinkUnknown
}

// told names each link with its state and where that was seen.
func told(links []Link) string {
	var words []string
	for _, l := range links {
		words = append(words, l.NIC.Name+" "+string(l.State)+" ("+l.Evidence+")")
	}
	return strings.Join(words, ", ")
}

// Link is Links taken together, with what was seen of each in words.
func (c *Client) Link(ctx context.Context, t *plan.Target) (plan.LinkState, string, *plan.Fault) {
	links, fault := c.Links(ctx, t)
	if fault != nil {
		return plan.LinkUnknown, "", fault
	}
	return Together(links), told(links), nil
}

// Links tells the link of every frontend NIC of a device. A BMC that cannot be
// asked, or has no such list, is a fault: silence is not "unknown".
func (c *Client) Links(ctx context.Context, t *plan.Target) ([]Link, *plan.Fault) {
	k, fault := c.conn(t)
	if fault != nil {
		return nil, fault
	}
	var links []Link
	fault = k.use(ctx, t, func() *plan.Fault {
		var fault *plan.Fault
		links, fault = k.links(ctx, t)
		return fault
	}, nil)
	return links, fault
}

// links reads the host's interfaces; one that cannot be read is unknown.
func (k *conn) links(ctx context.Context, t *plan.Target) ([]Link, *plan.Fault) {
	system, fault := k.freshSystem(ctx)
	if fault != nil {
		return nil, fault
	}
	path := system.link("EthernetInterfaces")
	if path == "" {
		return nil, k.lacks(system, "list of the host's interfaces")
	}
	_, members, fault := k.members(ctx, path)
	if fault != nil {
		return nil, fault
	}
	byMAC := map[plan.MAC]int{}
	out := make([]Link, 0, len(t.Intent.Frontend))
	for _, nic := range t.Intent.Frontend {
		if !nic.MAC.IsZero() {
			byMAC[nic.MAC] = len(out)
		}
		out = append(out, Link{NIC: nic, State: plan.LinkUnknown, Evidence: "the BMC does not list it"})
	}
	for _, d := range members {
		if name(d.path) == "ToManager" { // the host's way to the BMC
			continue
		}
		for _, key := range []string{"PermanentMACAddress", "MACAddress"} {
			i, ok := byMAC[parseMAC(d.text(key))]
			if !ok {
				continue
			}
			delete(byMAC, out[i].NIC.MAC)
			out[i].State, out[i].Evidence = stateOfLink(d, system.text("PowerState"))
			break
		}
	}
	return out, nil
}

// stateOfLink reads an interface. Up needs a speed where one is told: old iDRACs
// say plan.LinkUp always. Down counts when the host is on and the port is known and
// in use.
func stateOfLink(d document, power string) (plan.LinkState, string) {
	word := d.text("LinkStatus")
	speed, told := d.number("SpeedMbps")
	said := "LinkStatus " + word
	switch word {
	case "LinkUp", "Up":
		if told && speed == 0 {
			return plan.LinkUnknown, said + ", SpeedMbps 0"
		}
		return plan.LinkUp, said
	case "NoLink", "LinkDown", "Down":
		state, known := d.at("Status", "State")
		switch {
		case power != "On":
			return plan.LinkUnknown, said + ", the host is not on"
		case word == "NoLink", !known && !d.key("Status"), state == "Enabled":
			return plan.LinkDown, said
		}
		return plan.LinkUnknown, said + ", which the BMC has not looked at"
	case "":
		return plan.LinkUnknown, "the BMC does not tell"
	}
	return plan.LinkUnknown, said
}
