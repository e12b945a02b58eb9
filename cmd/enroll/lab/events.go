package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// change is the host's BMC settings changed by hand.
func (l *Lab) change(h Host) {
	b := l.bmcs[h.Name]
	b.SetHostname("by-hand")
	b.SetNTP(true, "time.example.com")
}

// own is what Nova leaves when it puts an instance on a node.
func (l *Lab) own() error {
	h := l.Hosts[0]
	l.Ironic.Set(h.Name, "instance_uuid", "5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f01")
	l.Ironic.Set(h.Name, "provision_state", "active")
	l.change(h)
	return nil
}

// drift is what an evening of work at one machine leaves.
func (l *Lab) drift() error {
	l.driftOf(l.Hosts[0])
	return nil
}

func (l *Lab) driftOf(h Host) {
	l.change(h)
	for _, name := range l.DHCP.Files() {
		if deviceOf(name) == h.Name {
			content, _ := l.DHCP.ReadFile(name)
			l.DHCP.PutFile(name, strings.ReplaceAll(content, h.OOB.String(), h.OOB.Next().Next().String()), 0o644)
		}
	}
}

// retire is what a machine leaves that is gone from NetBox.
func (l *Lab) retire() error {
	l.DHCP.PutFile("gpu-900-bmc", "# managed by enroll: device 9900 gpu-900\n02:00:5e:09:00:00,198.18.250.9,gpu-900-bmc\n", 0o644)
	return nil
}

// FactoryPassword is what all BMCs have that come from the factory.
const FactoryPassword = "Factory-2-Password"

// deliver is machines whose BMCs nobody has given a password.
func (l *Lab) deliver() error {
	for _, b := range l.bmcs {
		b.Change(func(m *bmctest.Machine) { m.Password = FactoryPassword })
	}
	l.Vault.Put("bmc-factory", map[string]string{"password": FactoryPassword})
	const credential = "    credential  = secret(\"bmc-${device.name}\", \"password\")\n"
	file := filepath.Join(l.dir, "site", "site.hcl")
	raw, err := os.ReadFile(file) //nolint:gosec // the lab's own
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(raw), credential)
	if !found {
		return errors.New("the lab's site names no credential")
	}
	return os.WriteFile(file, []byte(before+credential+"    factory_credential = secret(\"bmc-factory\", \"password\")\n"+after), 0o600) //nolint:gosec // the lab's own
}

// spoil is what goes wrong in a rack.
func (l *Lab) spoil() error {
	a, b := &l.Hosts[0].NICs[0], &l.Hosts[0].NICs[1]
	a.Switch, a.Port, b.Switch, b.Port = b.Switch, b.Port, a.Switch, a.Port
	if len(l.Hosts) > 1 {
		l.bmcs[l.Hosts[1].Name].Change(func(m *bmctest.Machine) { m.Password = "set-by-somebody-else" })
	}
	return nil
}

// tolerate is drift that the site has accepted in part.
func (l *Lab) tolerate() error {
	l.driftOf(l.Hosts[0])
	return l.writeSite(`
  tolerate "bmc_name" {
    address = "*/bmc.hostname"
    path    = "HostName"
    reason  = "the name is set by the asset system until it is retired"
    until   = "2099-12-31"
  }
`)
}

// deny is a site that does not want its disks erased today.
func (l *Lab) deny() error {
	return l.writeSite(`
  policy "no_erase_today" {
    deny    = step.kind == "ironic.provision" && has_effect("erase")
    owner   = "INFRA_ENG"
    message = "Storage is being moved; disks are erased again from Monday on."
  }

  policy "reboots_are_approved" {
    require_approval = has_effect("reboot")
    owner            = "FLEET_MANAGER"
  }

  policy "first_rack" {
    warn    = device.rack == "r01"
    owner   = "ONSITE"
    message = "Rack r01 is on the old power feed."
  }
`)
}

// unplug is a BMC that had its address and went away.
func (l *Lab) unplug() error {
	l.bmcs[l.Hosts[0].Name].SetReachable(false)
	return nil
}

// forget is a record that nobody has finished.
func (l *Lab) forget() error {
	l.forgetOf(l.Hosts[0])
	return nil
}

func (l *Lab) forgetOf(h Host) {
	l.NetBox.Update(h.Name, func(d *netboxtest.Device) { d.Position = 0 })
	l.NetBox.SetOOB(h.Name, netboxtest.OOB{})
	l.NetBox.SetPeer(h.Name, h.NICs[len(h.NICs)-1].Name)
}

// mix is what a fleet looks like on an ordinary day.
func (l *Lab) mix() error {
	for i, do := range []func(Host) error{
		func(Host) error { return l.own() },
		func(h Host) error { l.driftOf(h); return nil },
		func(h Host) error { l.bmcs[h.Name].SetReachable(false); return nil },
		func(h Host) error { l.forgetOf(h); return nil },
	} {
		if i < len(l.Hosts) {
			if err := do(l.Hosts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
