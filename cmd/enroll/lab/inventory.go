package lab

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// Inventory is what the ramdisk of a host reports at inspection: the interfaces
// with their carrier and the LLDP frames that their switch ports send, in the
// form of Ironic's GET /v1/nodes/{id}/inventory.
func (h Host) Inventory() map[string]any {
	var interfaces []any
	raw := map[string]any{}
	for _, n := range h.NICs {
		lldp := n.lldp()
		raw[n.Name] = lldp
		interfaces = append(interfaces, map[string]any{
			"name": n.Name, "mac_address": n.MAC.String(), "has_carrier": true, "lldp": lldp,
			"ipv4_address": nil, "ipv6_address": nil, "vendor": "0x15b3", "product": "0x1021",
			"speed_mbps": 200000, "driver": "mlx5_core", "client_id": nil, "biosdevname": nil,
		})
	}
	return map[string]any{
		"inventory": map[string]any{
			"interfaces": interfaces,
			"cpu":        map[string]any{"architecture": "x86_64", "count": 192, "socket_count": 2},
			"memory":     map[string]any{"physical_mb": 2097152, "total": 2199023255552},
			"disks":      []any{map[string]any{"name": "/dev/nvme0n1", "size": 3840755982336, "rotational": false}},
			"boot":       map[string]any{"current_boot_mode": "uefi", "pxe_interface": h.NICs[0].MAC.String()},
			"bmc_mac":    h.BMCMAC.String(), "bmc_address": h.OOB.String(), "hostname": "localhost",
			"system_vendor": map[string]any{"serial_number": h.Serial, "manufacturer": h.manufacturer(), "product_name": h.model()},
		},
		"plugin_data": map[string]any{"lldp_raw": raw, "boot_interface": h.NICs[0].MAC.String()},
	}
}

// lldp is the frame that the switch port sends, as [type, hex] pairs: chassis id
// (the switch's MAC), port id (interface name), time to live, port description,
// system name, end (IEEE 802.1AB).
func (n NIC) lldp() []any {
	sum := sha256.Sum256([]byte(n.Switch))
	chassis := append([]byte{4, 0x02}, sum[:5]...)
	return []any{
		[]any{1, hex.EncodeToString(chassis)},
		[]any{2, hex.EncodeToString(append([]byte{5}, n.Port...))},
		[]any{3, "0078"},
		[]any{4, hex.EncodeToString([]byte("to a server"))},
		[]any{5, hex.EncodeToString([]byte(n.Switch))},
		[]any{0, ""},
	}
}

func (h Host) manufacturer() string {
	if h.Recording != nil {
		if maker, _ := h.Recording.Maker(); maker != "" {
			return maker
		}
	}
	return products()[h.Family][0]
}

func (h Host) model() string {
	if h.Recording != nil {
		if _, model := h.Recording.Maker(); model != "" {
			return model
		}
	}
	return products()[h.Family][1]
}

// products are a maker and a model for each family of BMCs.
func products() map[string][2]string {
	return map[string][2]string{
		bmctest.IDRAC:      {"Dell", "PowerEdge XE9680"},
		bmctest.Generic:    {"Gigabyte", "G593-SD0"},
		bmctest.XCC:        {"Lenovo", "ThinkSystem SR680a V3"},
		bmctest.AMI:        {"ASRock Rack", "8U8X-GNR2"},
		bmctest.Supermicro: {"Supermicro", "AS-8125GS-TNHR"},
	}
}
