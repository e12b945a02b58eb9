package ironic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/enroll-dev/enroll/plan"
)

// inventoriesAtOnce bounds the requests in flight to one Ironic.
const inventoriesAtOnce = 8

// inventory is the part of GET /v1/nodes/X/inventory that the checks rest on.
// gophercloud's types are not used: their has_carrier cannot tell absent from
// false, and they lack LLDP.
type inventory struct {
	Inventory struct {
		Interfaces []struct {
			Name       string          `json:"name"`
			MAC        string          `json:"mac_address"`
			HasCarrier *bool           `json:"has_carrier"`
			LLDP       json.RawMessage `json:"lldp"`
		} `json:"interfaces"`
	} `json:"inventory"`
	Plugin struct {
		LLDPRaw       map[string]json.RawMessage `json:"lldp_raw"`
		ParsedLLDP    map[string]map[string]any  `json:"parsed_lldp"`
		AllInterfaces map[string]struct {
			Processed map[string]any `json:"lldp_processed"`
		} `json:"all_interfaces"`
	} `json:"plugin_data"`
}

// link is what the ramdisk saw of one interface.
type link struct {
	name    string
	carrier *bool
	far     neighbour // empty when no frame was reported
}

// link finds an interface by its MAC address, never by the ramdisk's name for
// it. False when the inventory has no such interface.
func (i *inventory) link(mac plan.MAC) (link, bool) {
	for _, n := range i.Inventory.Interfaces {
		m, err := plan.ParseMAC(n.MAC)
		if err != nil || m != mac {
			continue
		}
		return link{name: n.Name, carrier: n.HasCarrier, far: i.far(n.Name, n.LLDP)}, true
	}
	return link{}, false
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
	return parsedLLDP(i.Plugin.AllInterfaces[name].Processed)
}

// inventory reads the node's inventory; false when there is none that speaks for
// the node. Ironic sets inspection_finished_at to null when an inspection
// begins and fills it in when one succeeds; an inventory without it is what an
// earlier inspection left before one that failed or still runs.
func (s *service) inventory(ctx context.Context, n *node) (*inventory, bool, *plan.Fault) {
	if n.InspectionFinishedAt == "" {
		return nil, false, nil
	}
	var i inventory
	status, f := s.call(ctx, http.MethodGet, "nodes/"+url.PathEscape(n.UUID)+"/inventory", nil, &i)
	if status == http.StatusNotFound {
		return nil, false, nil
	}
	if f != nil {
		return nil, false, f
	}
	return &i, true, nil
}
