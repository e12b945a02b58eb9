// Package lab is the embedded lab: simulators of NetBox, Ironic, BMCs, a DHCP
// machine and a vault in one process, seeded with one made-up site. The
// simulators live beside their providers; here they are wired to each other
// and to a site folder that the program can be pointed at.
package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
)

// SiteName is the name of the made-up site, in HCL and in NetBox.
const SiteName = "demo"

// Host is one server of the lab: what NetBox records and what the hardware is.
type Host struct {
	Index    int
	Name     string
	Serial   string
	Rack     string
	Position float64
	Family   string // of its BMC
	OOB      netip.Addr
	BMCMAC   plan.MAC
	Password string
	NICs     []NIC
	// Recording is served as the host's BMC in the place of a simulated one.
	Recording *recording.Recording
}

// NIC is a frontend interface and the switch port it is cabled to.
type NIC struct {
	Name   string
	MAC    plan.MAC
	Switch string
	Port   string
}

// hostsPerRack bounds how many of the 8-unit servers stand in one rack.
const hostsPerRack = 5

// Families are all that a host's BMC may be of.
func Families() []string {
	return []string{bmctest.IDRAC, bmctest.XCC, bmctest.AMI, bmctest.Supermicro, bmctest.Generic}
}

// Fleet makes n hosts. The same n and seed give the same hosts; the first k of
// a larger fleet are those of a smaller one.
func Fleet(n int, seed int64) []Host {
	hosts := make([]Host, n)
	for i := range hosts {
		index := i + 1
		rack := (i / hostsPerRack) + 1
		h := Host{
			Index: index, Name: fmt.Sprintf("gpu-%03d", index),
			Serial: fmt.Sprintf("SVC%04d", index),
			Rack:   fmt.Sprintf("r%02d", rack), Position: float64(1 + 8*(i%hostsPerRack)),
			Family: "idrac",
			// 198.18.0.0/15 is set aside for benchmarks (RFC 2544).
			OOB:    netip.AddrFrom4([4]byte{198, 18, byte(index / 250), byte(index%250 + 1)}),
			BMCMAC: mac(index, 0),
			// A password as vaults make them: derived from the seed, so that it is
			// nowhere in the repository, with characters that need care in URLs,
			// shells and JSON.
			Password: password(seed, index),
		}
		if index%2 == 0 {
			h.Family = "generic"
		}
		for port, name := range []string{"eth0", "eth1"} {
			h.NICs = append(h.NICs, NIC{
				Name: name, MAC: mac(index, port+1),
				Switch: fmt.Sprintf("leaf-%s-%d", h.Rack, port+1), Port: fmt.Sprintf("Ethernet1/%d", i%hostsPerRack+1),
			})
		}
		hosts[i] = h
	}
	return hosts
}

func mac(index, port int) plan.MAC {
	return plan.MAC{0x02, 0x00, 0x5e, byte(index >> 8), byte(index), byte(port)}
}

func password(seed int64, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "enroll lab %d %d", seed, index))
	return "p&" + hex.EncodeToString(sum[:6]) + `"'`
}
