package lab

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
	"github.com/enroll-dev/enroll/providers/dhcp/dhcptest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

// hostsDir is dnsmasq's dhcp-hostsdir on the lab's DHCP machine.
const hostsDir = "/etc/dnsmasq.d/enroll-hosts"

// dnsmasqConf is that machine's own configuration.
const dnsmasqConf = "port=0\ndhcp-range=198.18.0.0,static,255.254.0.0,1h\ndhcp-hostsdir=" + hostsDir + "\n"

// Options of a lab.
type Options struct {
	Dir      string // gets site/ and env
	Devices  int    // at least 1
	Seed     int64
	Now      func() time.Time
	Requests io.Writer // gets a JSON line for each request; nil for nobody
	// Replay is served as the BMC of the first host, which then has its serial
	// number and NICs; nil: it is simulated like the others.
	Replay *recording.Recording
	// Password gives the password of a BMC; nil for the usual made-up ones.
	Password func(device string) string
	// Families gives the makers of the BMCs, in turn; nil for idrac and generic.
	Families []string
	// Machine changes the hardware of a host before it is racked; nil for the
	// usual one, whose boot order the integrator has set.
	Machine func(*bmctest.Machine)
	// How long Ironic's work takes; zero values are those of fake hardware.
	Durations ironictest.Durations
	// HostKeys of the DHCP machine; nil for fresh ones, whose making takes a while.
	HostKeys []ssh.Signer
	// VaultToken is printable ASCII without blanks; empty for the usual one.
	VaultToken string
}

// Lab is a running lab. Its parts may be reached into, to make things differ.
type Lab struct {
	Hosts    []Host
	NetBox   *netboxtest.Server
	Ironic   *ironictest.Server
	BMC      *bmctest.Server
	DHCP     *dhcptest.Server
	Vault    *secretstest.Server
	Recorder *exchange.Recorder

	dir  string
	bmcs map[string]*bmctest.BMC
}

// Start starts the simulators with racked and recorded hosts that nobody has
// touched yet: staged in NetBox, unknown to DHCP and Ironic, with a BMC that has
// no address.
func Start(o Options) (*Lab, error) {
	if o.Devices < 1 {
		return nil, fmt.Errorf("a lab wants at least one device, not %d", o.Devices)
	}
	l := &Lab{Hosts: Fleet(o.Devices, o.Seed), dir: o.Dir, Recorder: exchange.NewRecorder(o.Now, o.Requests), bmcs: map[string]*bmctest.BMC{}}
	for i := range l.Hosts {
		if len(o.Families) > 0 {
			l.Hosts[i].Family = o.Families[i%len(o.Families)]
		}
		if o.Password != nil {
			l.Hosts[i].Password = o.Password(l.Hosts[i].Name)
		}
	}
	if o.Replay != nil {
		if err := l.Hosts[0].play(o.Replay); err != nil {
			return nil, err
		}
	}
	vault := secretstest.Options{Now: o.Now, Recorder: l.Recorder}
	if o.VaultToken != "" {
		vault.Tokens = []secretstest.Token{{Value: o.VaultToken}}
	}
	l.Vault = secretstest.New(vault)
	l.NetBox = netboxtest.New(netboxtest.Options{Site: SiteName, Now: o.Now, Recorder: l.Recorder})
	l.DHCP = dhcptest.New(dhcptest.Options{Now: o.Now, Recorder: l.Recorder, HostKeys: o.HostKeys, Directory: hostsDir, Main: dnsmasqConf, DeviceOf: deviceOf})
	l.BMC = bmctest.New(bmctest.Options{Now: o.Now, Recorder: l.Recorder})
	l.Ironic = ironictest.New(ironictest.Options{Now: o.Now, Recorder: l.Recorder, Durations: o.Durations, Verify: l.verify, Inventory: l.inventory})
	l.seed(o.Machine)
	l.DHCP.OnChange(l.lease)
	if err := l.write(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// BMCOf is the BMC of a host.
func (l *Lab) BMCOf(host string) *bmctest.BMC { return l.bmcs[host] }

// Close stops all simulators. What they wrote stays.
func (l *Lab) Close() {
	l.Ironic.Close()
	l.BMC.Close()
	_ = l.DHCP.Close() // its listener goes with the process
	l.NetBox.Close()
	l.Vault.Close()
}
