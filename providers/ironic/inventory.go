package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/enroll-dev/enroll/plan"
)

const defaultAtOnce = 8

// inventory is the part of GET /v1/nodes/X/inventory that the checks rest on, as
// the ramdisk or Ironic's redfish interface wrote it. Every field may be absent.
// gophercloud's types are not used: their has_carrier cannot tell absent from
// false, and they lack LLDP, sockets, PCI devices and DMI.
type inventory struct {
	Hardware hardware   `json:"inventory"`
	Plugin   pluginData `json:"plugin_data"`

	byMAC map[plan.MAC][]int // places in Hardware.Interfaces
	pxe   []string           // MAC addresses of the node's ports with PXE; nil: not asked
}

type hardware struct {
	Interfaces []nic `json:"interfaces"` // nil: not reported
	CPU        struct {
		Sockets      maybe[int] `json:"socket_count"`
		Architecture string     `json:"architecture"`
	} `json:"cpu"`
	Memory struct {
		PhysicalMB maybe[int64] `json:"physical_mb"`
	} `json:"memory"`
	Disks  []disk `json:"disks"` // nil: not reported
	Vendor struct {
		Firmware struct {
			Version string `json:"version"`
		} `json:"firmware"`
	} `json:"system_vendor"`
	PCI []pciDevice `json:"pci_devices"` // Ironic's redfish interface puts them here
}

// maybe is a value that may be absent, null or of another type, which are the same
// here. A pointer would not do: encoding/json makes one to the zero value when the
// type is wrong, and that would read as a link that is down.
type maybe[T any] struct {
	known bool
	value T
}

// UnmarshalJSON never fails.
func (m *maybe[T]) UnmarshalJSON(b []byte) error {
	var v T
	if string(b) != "null" && json.Unmarshal(b, &v) == nil {
		*m = maybe[T]{true, v}
	}
	return nil
}

type nic struct {
	Name       string          `json:"name"`
	MAC        string          `json:"mac_address"`
	HasCarrier maybe[bool]     `json:"has_carrier"`
	Vendor     string          `json:"vendor"` // "0x15b3"
	LLDP       json.RawMessage `json:"lldp"`
}

type disk struct {
	Name  string `json:"name"`
	Model string `json:"model"`
}

// pciDevice has hexadecimal texts without 0x.
type pciDevice struct {
	Vendor  string `json:"vendor_id"`
	Product string `json:"product_id"`
	Class   string `json:"class"`
	Bus     string `json:"bus"`
}

type pluginData struct {
	// The frames of an interface, as far as they are looked at: most are not.
	LLDPRaw       map[string]json.RawMessage `json:"lldp_raw"`
	ParsedLLDP    map[string]json.RawMessage `json:"parsed_lldp"`
	AllInterfaces map[string]json.RawMessage `json:"all_interfaces"`
	PCI           []pciDevice                `json:"pci_devices"` // nil: the collector did not run
	DMI           struct {
		BIOS   map[string]any   `json:"bios"`
		CPU    []map[string]any `json:"cpu"`
		Memory struct {
			Devices []map[string]any `json:"devices"`
		} `json:"memory"`
	} `json:"dmi"`
}

// decodeInventory reads an inventory as far as it can be read: a value of
// another type than expected counts as not reported, and the rest stands. An
// error means that the text is no JSON.
func decodeInventory(raw []byte) (*inventory, error) {
	var i inventory
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, &i); err != nil && !errors.As(err, &wrongType) {
		return nil, err
	}
	i.byMAC = make(map[plan.MAC][]int, len(i.Hardware.Interfaces))
	for n, nic := range i.Hardware.Interfaces {
		// InfiniBand and Fibre Channel show 20 and 8 bytes; such are no Ethernet NICs.
		if mac, err := plan.ParseMAC(nic.MAC); err == nil {
			i.byMAC[mac] = append(i.byMAC[mac], n)
		}
	}
	return &i, nil
}

// link is what the ramdisk saw of one MAC address. A VLAN or bridge on a NIC has
// its address too, so there may be several interfaces and several far ends.
type link struct {
	names   []string
	carrier maybe[bool] // false when any of the interfaces says so
	far     []neighbour // all different frames; none: no frame was reported
}

// link finds an interface by its MAC address, never by the ramdisk's name for
// it. False when the inventory has no such interface.
func (i *inventory) link(mac plan.MAC) (link, bool) {
	var l link
	for _, n := range i.byMAC[mac] {
		nic := &i.Hardware.Interfaces[n]
		l.names = append(l.names, nic.Name)
		if c := nic.HasCarrier; c.known && (!l.carrier.known || !c.value) {
			l.carrier = c
		}
		l.add(i.far(nic.Name, nic.LLDP))
	}
	return l, len(l.names) > 0
}

func (l *link) add(n neighbour) {
	if n.empty() {
		return
	}
	for _, known := range l.far {
		if known == n {
			return
		}
	}
	l.far = append(l.far, n)
}

// far looks for the frame of an interface: the raw forms first, because they
// are decoded here; else what Ironic decoded.
func (i *inventory) far(name string, own json.RawMessage) neighbour {
	for _, raw := range []json.RawMessage{i.Plugin.LLDPRaw[name], own} {
		if n := decodeLLDP(decodeTLVs(raw)); !n.empty() {
			return n
		}
	}
	if n := parsedLLDP(i.Plugin.ParsedLLDP[name]); !n.empty() {
		return n
	}
	var whole struct {
		Processed json.RawMessage `json:"lldp_processed"`
	}
	if json.Unmarshal(i.Plugin.AllInterfaces[name], &whole) != nil {
		return neighbour{}
	}
	return parsedLLDP(whole.Processed)
}

// inventory reads the node's inventory; nil when there is none that speaks for
// the node. Ironic sets inspection_finished_at to null when an inspection
// begins and fills it in when one succeeds; an inventory without it is what an
// earlier inspection left before one that failed or still runs.
func (s *service) inventory(ctx context.Context, n *node) (*inventory, *plan.Fault) {
	if f := s.tooOldForInventory(); f != nil {
		return nil, f // the 404 to come would not mean that there is none
	}
	if n.InspectionFinishedAt == "" {
		return nil, nil
	}
	path := "nodes/" + url.PathEscape(n.UUID) + "/inventory"
	var raw json.RawMessage
	status, f := s.call(ctx, http.MethodGet, path, nil, &raw)
	if status == http.StatusNotFound {
		return nil, nil
	}
	if f != nil {
		return nil, f
	}
	i, err := decodeInventory(raw)
	if err != nil {
		return nil, s.senseless(http.MethodGet, path, status, raw, "an inventory that cannot be decoded").Because(err)
	}
	return i, nil
}

// recent is inventory for the checks of a run: many ask for one inventory, which
// stays what it is until another inspection finishes.
func (s *service) recent(ctx context.Context, n *node) (*inventory, *plan.Fault) {
	at := n.UUID + " " + n.InspectionFinishedAt
	s.mu.Lock()
	known, ok := s.inventories[at]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	inv, f := s.inventory(ctx, n)
	if f != nil || inv == nil {
		return nil, f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inventories == nil {
		s.inventories = map[string]*inventory{}
	}
	s.inventories[at] = inv
	return inv, nil
}
