package lab

import (
	"fmt"
	"strings"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// frontendType is NetBox's type value of the frontend interfaces.
const frontendType = "200gbase-x-qsfp56"

// seed records the hosts in NetBox, puts their BMCs into the rack and the
// secrets into the vault.
func (l *Lab) seed(machine func(*bmctest.Machine)) {
	l.NetBox.AddTag("ironic")
	l.NetBox.AddTag("ipmi_exporter")
	l.Vault.Put("netbox-enroll", map[string]string{"credential": l.NetBox.Token})
	l.Vault.Put("ssh-config-dhcp", map[string]string{"private_key": string(l.DHCP.IdentityPEM), "known_hosts": string(l.DHCP.KnownHosts)})
	for _, h := range l.Hosts {
		m := h.machine()
		if machine != nil {
			machine(&m)
		}
		b := l.BMC.Add(m)
		if machine == nil {
			b.RestrictTo(1) // as the integrator has set it
		}
		l.bmcs[h.Name] = b
		l.Vault.Put("bmc-"+h.Name, map[string]string{"username": "root", "password": h.Password})
		l.NetBox.AddDevice(h.record(b.URL))
	}
}

// machine is the hardware: a factory-new BMC without an address, and a boot
// order that the integrator has set.
func (h Host) machine() bmctest.Machine {
	m := bmctest.Machine{
		Name: h.Name, Vendor: h.Family, Serial: h.Serial, Model: h.model(), User: "root", Password: h.Password,
		FirstNIC: 1, Unreachable: true, Recording: h.Recording,
	}
	for _, n := range h.NICs {
		m.NICs = append(m.NICs, bmctest.NIC{MAC: n.MAC})
	}
	return m
}

// play makes the host that of a recording: NetBox records what the recorded BMC
// says of it, so that what enroll finds is about the BMC.
func (h *Host) play(rec *recording.Recording) error {
	h.Recording, h.Family, h.Serial = rec, rec.Family, rec.Serial()
	if h.Family == "" {
		h.Family = bmctest.Generic
	}
	if _, known := products()[h.Family]; !known {
		return fmt.Errorf("the recording is of a BMC of family %q, which this version does not know", h.Family)
	}
	for i, text := range rec.MACs() {
		mac, err := plan.ParseMAC(text)
		if err != nil {
			return fmt.Errorf("the recording has %q as an address of a NIC: %w", text, err)
		}
		if i < len(h.NICs) {
			h.NICs[i].MAC = mac
		}
	}
	return nil
}

// record is what NetBox says about the host. Its BMC is simulated on loopback;
// the out-of-band address is the one that DHCP will give it.
func (h Host) record(bmcURL string) netboxtest.Device {
	d := netboxtest.Device{
		Name: h.Name, Serial: h.Serial, Role: "gpu-compute", Rack: h.Rack, Position: h.Position, Status: "staged",
		Type: netboxtest.Type{Manufacturer: h.manufacturer(), Model: h.model(), CustomFields: map[string]any{"gpu_type": "H200"}},
		Context: map[string]any{"ironic_settings": map[string]any{
			"driver": "redfish", "raid_interface": "no-raid", "interface_type": frontendType, "resource_class": "gpu." + h.Family,
			"redfish_address_override": bmcURL,
		}},
		OOB:        netboxtest.OOB{Address: h.OOB.String() + "/15", Interface: "bmc"},
		Interfaces: []netboxtest.Interface{{Name: "bmc", MAC: h.BMCMAC.String(), MgmtOnly: true}},
	}
	for _, n := range h.NICs {
		d.Interfaces = append(d.Interfaces, netboxtest.Interface{
			Name: n.Name, Type: frontendType, MAC: n.MAC.String(), Peer: netboxtest.Peer{Device: n.Switch, Port: n.Port},
		})
	}
	return d
}

// Secrets are all secret values of the lab, for tests that look for them where
// they must not be. A key counts by its lines.
func (l *Lab) Secrets() []string {
	out := []string{l.NetBox.Token, l.Vault.Token, FactoryPassword}
	for _, h := range l.Hosts {
		out = append(out, h.Password)
	}
	for _, line := range strings.Split(string(l.DHCP.IdentityPEM), "\n") {
		if len(line) > 20 && !strings.HasPrefix(line, "-----") {
			out = append(out, line)
		}
	}
	return out
}
