package ironic

import (
	"fmt"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

const fromLLDP = "LLDP frame (plugin_data.lldp_raw, inventory.interfaces[].lldp or as Ironic parsed it)"

// cable compares a frontend NIC's far end as LLDP saw it with NetBox's: the
// switch's LLDP system name must be the NetBox name of the far end's device, and
// the far end's port name must be the LLDP port id or the port description,
// because switches differ in which of the two carries it (reference, phase 5).
// Where two frames came in, both must say so.
func cable(nic plan.FrontendNIC, e expectations, inv *inventory) finding {
	l, ok := inv.link(nic.MAC)
	switch {
	case !ok:
		return finding{verdict: plan.CheckUnknown, observed: "no such interface", text: "the inventory has no interface with MAC address " + nic.MAC.String(), from: []string{fromInterfaces}}
	case len(l.far) == 0:
		return finding{verdict: plan.CheckUnknown, observed: "no LLDP", text: "no LLDP frame was reported for " + nic.Name + ": the switch sends none, the NIC's firmware keeps it, or the ramdisk does not collect it", from: []string{fromLLDP}}
	}
	want := ""
	if nic.Peer != nil {
		want = nic.Peer.Port
	}
	var ends []string
	for _, n := range l.far {
		ends = append(ends, n.end(want))
	}
	f := finding{verdict: plan.CheckPass, observed: named(ends), from: []string{fromLLDP}}
	if nic.Peer == nil {
		f.verdict, f.text = plan.CheckUnknown, "NetBox records no cable for "+nic.Name
		return f
	}
	if len(l.far) > 1 {
		f.text = fmt.Sprintf("%d different neighbours answer on %s", len(l.far), nic.Name)
	}
	for _, n := range l.far {
		wrong, ignored := compareEnd(nic, n, e)
		if wrong != "" {
			f.verdict, f.text = plan.CheckFail, joined(f.text, wrong)
			return f
		}
		if ignored != "" {
			f.text = joined(f.text, ignored)
		}
	}
	return f
}

func joined(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case strings.HasSuffix(a, "; "+b):
		return a
	}
	return a + "; " + b
}

// compareEnd says what is wrong with one far end, or what was ignored to find it
// right.
func compareEnd(nic plan.FrontendNIC, n neighbour, e expectations) (wrong, ignored string) {
	same, usedName := sameName(nic.Peer.Device, n.SystemName, e.switchNames[nic.Peer.Platform])
	if !same {
		return nic.Name + " is cabled to another switch than NetBox records", ""
	}
	ignore := e.portNames[nic.Peer.Platform]
	same, usedPort := sameName(nic.Peer.Port, n.PortID, ignore)
	if !same {
		same, usedPort = sameName(nic.Peer.Port, n.PortDescription, ignore)
	}
	if !same {
		return nic.Name + " is cabled to another port than NetBox records", ""
	}
	var parts []string
	if len(usedName) > 0 {
		parts = append(parts, "switch name equal without "+strings.Join(usedName, ", ")+" (verification.switch_names "+nic.Peer.Platform+")")
	}
	if len(usedPort) > 0 {
		parts = append(parts, "port name equal without "+strings.Join(usedPort, ", ")+" (verification.port_names "+nic.Peer.Platform+")")
	}
	return "", strings.Join(parts, "; ")
}

// end writes a far end as "switch port". Where the port's name stands in the
// description, as on switches that send a MAC address as port id, that is shown.
func (n neighbour) end(want string) string {
	system := said(n.SystemName)
	if system == "" {
		system = "chassis " + said(n.ChassisID)
	}
	port, description := said(n.PortID), said(n.PortDescription)
	switch {
	case n.PortID == want || description == "" || description == port:
		return system + " " + port
	case n.PortDescription == want || port == "":
		return system + " " + description
	}
	return system + " " + port + " (" + description + ")"
}
