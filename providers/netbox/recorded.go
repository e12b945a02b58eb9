package netbox

import (
	"context"
	"fmt"
	"math"
	"net/netip"
)

// recordedDevice is what Recorded asks of a device.
type recordedDevice struct {
	ID  int64 `json:"id"`
	OOB *ref  `json:"oob_ip"`
}

func (d *recordedDevice) ident() int64 { return d.ID }

func (d *recordedDevice) check() error {
	if d.ID <= 0 {
		return fmt.Errorf("a device without id")
	}
	return nil
}

// Recorded gives the oob_ips of the devices with these ids, whatever their site,
// role and status. The address is the zero one where a device has none, where it
// cannot be read, and for an id that NetBox cannot be asked about: nothing follows
// from it. A device that NetBox does not show is not in the answer.
func (c *Client) Recorded(ctx context.Context, ids []int64) (map[int64]netip.Addr, error) {
	out := map[int64]netip.Addr{}
	var asked []int64
	for _, id := range ids {
		if id <= 0 || id > math.MaxInt32 {
			out[id] = netip.Addr{}
			continue
		}
		asked = append(asked, id)
	}
	if len(asked) == 0 {
		return out, nil
	}
	rows, err := byIDs[recordedDevice](ctx, c, "id", []string{"id", "oob_ip"}, asked, c.api.devicesByID)
	if err != nil {
		return nil, err
	}
	for _, d := range rows {
		out[d.ID] = netip.Addr{}
		if d.OOB == nil {
			continue
		}
		if prefix, err := netip.ParsePrefix(d.OOB.Address); err == nil {
			out[d.ID] = prefix.Addr().Unmap()
		}
	}
	return out, nil
}
