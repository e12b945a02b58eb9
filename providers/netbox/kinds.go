package netbox

import (
	"context"

	"github.com/enroll-dev/enroll/plan"
)

// Kinds are the resources that enroll keeps in NetBox: one file each.
func Kinds() []plan.Kind {
	return []plan.Kind{platformClassKind(), statusKind(), bmcTagKind(), tagKind()}
}

// read answers a resource of a kind from a device as NetBox has it.
type readFunc func(res plan.Resource, d liveDevice) plan.Live

// runFunc executes a step of a kind on a device.
type runFunc func(ctx context.Context, c *Client, d *subject) plan.Result

// handling is what the client does for a kind.
type handling struct {
	live readFunc
	run  runFunc
}

func handlingOf(name string) (handling, bool) {
	switch name {
	case kindPlatformClass:
		return handling{live: livePlatformClass, run: runPlatformClass}, true
	case kindStatus:
		return handling{live: liveStatus, run: runStatus}, true
	case kindTag:
		return handling{live: liveTag, run: runTag}, true
	}
	return handling{}, false
}

// Read answers the resources from one bulk list of devices, or in the same
// reading (SameReading) from what Intents has read. They are asked for by the
// ids of the intents, so that a device that was deleted and made again under
// the same name is not taken for the one that was planned.
func (c *Client) Read(ctx context.Context, sc *plan.Scope, resources []plan.Resource) plan.Snapshot {
	out := plan.Snapshot{}
	ids := map[string]int64{}
	for _, r := range resources {
		t := sc.Target(r.Address.Device)
		if _, known := handlingOf(r.Address.KindName()); !known || t == nil || t.Intent.ID <= 0 {
			out[r.Address] = plan.LiveFault(plan.Unreadable, plan.NewFault(plan.CodeInternal, "%s cannot be read: no such kind, or the device is not in scope", r.Address))
			continue
		}
		ids[r.Address.Device] = t.Intent.ID
	}
	list := make([]int64, 0, len(ids))
	for _, id := range ids {
		list = append(list, id)
	}
	found, err := c.remembered(ctx, ids), error(nil)
	if found == nil {
		var rows []liveDevice
		rows, err = byIDs[liveDevice](ctx, c, "id", liveFields, list, c.api.devicesByID)
		found = map[int64]liveDevice{}
		for _, d := range rows {
			found[d.ID] = d
		}
	}
	for _, r := range resources {
		if _, done := out[r.Address]; done {
			continue
		}
		if err != nil {
			out[r.Address] = plan.LiveFault(plan.Unreadable, plan.AsFault(err))
			continue
		}
		id := ids[r.Address.Device]
		d, ok := found[id]
		if fault := c.sameDevice(r.Address.Device, id, d, ok); fault != nil {
			out[r.Address] = plan.LiveFault(plan.Unreadable, fault)
			continue
		}
		kind, _ := handlingOf(r.Address.KindName())
		live := kind.live(r, d)
		live.Evidence = map[string]string{"url": c.page("dcim/devices", id), "last_updated": clean(d.LastUpdated, 40)}
		out[r.Address] = live
	}
	return out
}

func (c *Client) sameDevice(name string, id int64, d liveDevice, found bool) *plan.Fault {
	switch {
	case !found:
		return plan.NewFault(plan.CodeDeviceNotFound, "NetBox does not show %s (device %d) any more: it was deleted, or the token may not see it", name, id).
			With("url", c.page("dcim/devices", id))
	case d.ID != id || d.name() != name:
		return plan.NewFault(plan.CodeDeviceNotFound, "device %d in NetBox is now called %q, not %s", id, clean(d.name(), 80), name).
			With("url", c.page("dcim/devices", id)).WithHint("Plan again with the device's present name.")
	}
	return nil
}
