package ironic

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

const fromInterfaces = "inventory.interfaces"

func expectCarrier(e expectations) string {
	var names []string
	for _, n := range e.nics {
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "link on " + named(names)
}

// carrier checks that no frontend link is down: has_carrier explicitly false
// fails, carrier that was not reported passes and is named (reference, phase 5).
func carrier(nics []plan.FrontendNIC, inv *inventory) finding {
	const from = fromInterfaces + "[].has_carrier"
	var up, down, silent []string
	for _, nic := range nics {
		switch l, _ := inv.link(nic.MAC); {
		case !l.carrier.known:
			silent = append(silent, nic.Name)
		case l.carrier.value:
			up = append(up, nic.Name)
		default:
			down = append(down, nic.Name)
		}
	}
	observed := observedLinks(up, down, silent)
	if len(down) > 0 {
		return mismatch(from, observed, "no link on "+named(down)+": check cable, optics and switch port")
	}
	f := matched(from, observed)
	if len(silent) > 0 {
		f.text = "the inspection did not report the carrier of " + named(silent) + "; only a link that is reported down fails"
	}
	return f
}

func observedLinks(up, down, silent []string) string {
	var parts []string
	for _, p := range []struct {
		what string
		nics []string
	}{{"link on ", up}, {"no link on ", down}, {"not reported for ", silent}} {
		if len(p.nics) > 0 {
			sort.Strings(p.nics)
			parts = append(parts, p.what+named(p.nics))
		}
	}
	return strings.Join(parts, "; ")
}

// ethernet are the interfaces with a MAC address of their own: a VLAN on a NIC is
// no further NIC, and InfiniBand is not counted.
func (i *inventory) ethernet() []*nic {
	var out []*nic
	seen := map[plan.MAC]bool{}
	for n := range i.Hardware.Interfaces {
		mac, err := plan.ParseMAC(i.Hardware.Interfaces[n].MAC)
		if err == nil && !seen[mac] {
			seen[mac] = true
			out = append(out, &i.Hardware.Interfaces[n])
		}
	}
	return out
}

func nicCount(want int, inv *inventory) finding {
	if inv.Hardware.Interfaces == nil {
		return unreported(fromInterfaces, "interfaces")
	}
	return equal(fromInterfaces, "network interfaces", want, len(inv.ethernet()))
}

// nicVendors compares PCI vendor ids as numbers: 0x15b3 is 15B3.
func nicVendors(want []string, inv *inventory) finding {
	const from = fromInterfaces + "[].vendor"
	if inv.Hardware.Interfaces == nil {
		return unreported(fromInterfaces, "interfaces")
	}
	allowed := map[uint64]bool{}
	for _, v := range want {
		if id, err := hexID(v); err == nil {
			allowed[id] = true
		}
	}
	found := tally{}
	var wrong, silent []string
	for _, n := range inv.ethernet() {
		id, err := hexID(n.Vendor)
		switch {
		case err != nil:
			found[""]++
			silent = append(silent, said(n.Name))
			continue
		case !allowed[id]:
			wrong = append(wrong, said(n.Name))
		}
		found[fmt.Sprintf("0x%04x", id)]++
	}
	switch {
	case len(wrong) > 0:
		return mismatch(from, found.String(), "another vendor: "+named(wrong))
	case len(silent) > 0:
		return finding{verdict: plan.CheckUnknown, observed: found.String(), text: "no vendor was reported for " + named(silent), from: []string{from}}
	}
	return matched(from, found.String())
}

func hexID(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "0x"), 16, 16)
}

// nicLink wants a carrier on every interface, where carrier checks those of the
// frontend only and lets pass what is not reported.
func nicLink(inv *inventory) finding {
	const from = fromInterfaces + "[].has_carrier"
	if inv.Hardware.Interfaces == nil {
		return unreported(fromInterfaces, "interfaces")
	}
	var up, down, silent []string
	for _, n := range inv.ethernet() {
		switch name := said(n.Name); {
		case !n.HasCarrier.known:
			silent = append(silent, name)
		case n.HasCarrier.value:
			up = append(up, name)
		default:
			down = append(down, name)
		}
	}
	f := finding{verdict: plan.CheckPass, observed: observedLinks(up, down, silent), from: []string{from}}
	switch {
	case len(down) > 0:
		f.verdict, f.text = plan.CheckFail, "no link on "+named(down)
	case len(silent) > 0:
		f.verdict, f.text = plan.CheckUnknown, "no carrier was reported for "+named(silent)
	case len(up) == 0:
		f.observed = "no interfaces"
	}
	return f
}
