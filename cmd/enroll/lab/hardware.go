package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/ironic/ironictest"
)

// lease lets exactly those BMCs be reached that DHCP gives their address to.
// One that had its address keeps it, as a lease lasts longer than a mistake.
func (l *Lab) lease() {
	for _, h := range l.Hosts {
		if addr, ok := l.DHCP.Lease(h.BMCMAC); ok && addr == h.OOB {
			l.bmcs[h.Name].SetReachable(true)
		}
	}
}

// verify is what Ironic's power interface finds out when a node becomes
// manageable: is there a BMC at the address, and does it take the login.
func (l *Lab) verify(info map[string]any) error {
	address, _ := info["redfish_address"].(string)
	user, _ := info["redfish_username"].(string)
	password, _ := info["redfish_password"].(string)
	for _, h := range l.Hosts {
		b := l.bmcs[h.Name]
		if strings.TrimSuffix(address, "/") != b.URL {
			continue
		}
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", strings.TrimPrefix(b.URL, "https://"))
		if err != nil {
			return fmt.Errorf("unable to connect to %s: %w", address, err)
		}
		_ = conn.Close() // it only had to open
		accepted := false
		b.Change(func(m *bmctest.Machine) { accepted = m.User == user && m.Password == password })
		if !accepted {
			return errors.New("access error: invalid username or password")
		}
		return nil
	}
	return fmt.Errorf("unable to connect to %s", address)
}

// inventory is what the ramdisk of the node's host posts. A host that boots
// over a NIC for which Ironic has no port never calls back.
func (l *Lab) inventory(n ironictest.NodeView) (json.RawMessage, bool) {
	for _, h := range l.Hosts {
		for _, mac := range n.MACs {
			if strings.EqualFold(mac, h.NICs[0].MAC.String()) {
				raw, err := json.Marshal(h.Inventory())
				return raw, err == nil
			}
		}
	}
	return nil, false
}

// deviceOf names the device that a file of the hostsdir belongs to.
func deviceOf(path string) string {
	name := strings.TrimPrefix(path[strings.LastIndexByte(path, '/')+1:], ".")
	if device, _, ok := strings.Cut(name, "-bmc"); ok {
		return device
	}
	return ""
}
