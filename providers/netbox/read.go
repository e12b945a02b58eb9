package netbox

import (
	"context"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/enroll-dev/enroll/plan"
)

// Where there are two ways to the same rows, one by ids and one by what the
// objects have in common, the second is tried when the first would take more
// than this many requests.
const fewRequests = 2

// read fills the world in rounds: the devices; what they name; and what the
// far ends of their cables say. Nothing is asked about what is not enrolled.
func (w *world) read(ctx context.Context, names []string) error {
	if err := w.readDevices(ctx, names); err != nil {
		return err
	}
	w.byID = map[int64]device{}
	for _, rows := range w.devices {
		for _, row := range rows {
			w.byID[row.ID] = row
		}
	}
	enrolled := w.enrolled(names)
	w.contexts = map[int64]*rendered{}
	for _, d := range enrolled {
		w.contexts[d.ID] = render(d.ConfigContext)
	}
	g, inner := errgroup.WithContext(ctx)
	g.Go(func() error { return w.readTypes(inner, names) })
	g.Go(func() error { return w.readInterfaces(inner, enrolled) })
	g.Go(func() error { return w.readAddresses(inner, enrolled) })
	if err := g.Wait(); err != nil {
		return err
	}
	return w.readFar(ctx, enrolled)
}

// readDevices takes the devices that Names has just read, and reads the others
// by name.
func (w *world) readDevices(ctx context.Context, names []string) error {
	c := w.client
	var err error
	if w.siteObject, err = c.readSite(ctx, w.slug); err != nil {
		return err
	}
	w.devices = map[string][]device{}
	listed := c.takeListed(w.slug)
	var unknown, known []string
	for _, name := range names {
		if rows := listed[name]; len(rows) > 0 {
			w.devices[name] = rows
			known = append(known, name)
		} else {
			unknown = append(unknown, name)
		}
	}
	rows, err := byTexts[device](ctx, c, "name", deviceFields, unknown, func(ctx context.Context, part []string, offset int32) error {
		return c.api.devicesByName(ctx, w.slug, part, offset)
	})
	if err != nil {
		return err
	}
	for _, d := range rows {
		if d.Name != nil && d.Site.Slug == w.slug {
			w.devices[*d.Name] = append(w.devices[*d.Name], d)
		}
	}
	if len(w.devices) == 0 && len(names) > 1 {
		// One that is missing is told as one; all of them missing is an answer that
		// nothing may be built on.
		return plan.NewFault(plan.CodeDeviceNotFound, "NetBox shows none of the %d devices asked for in site %s: they do not exist, or the token may not see them", len(names), w.slug).
			With("url", c.base+"/dcim/devices/")
	}
	return w.readTwins(ctx, known)
}

// readTwins looks for devices that have the name of one that Names has listed
// and another role or status, so that a name stands for one device.
func (w *world) readTwins(ctx context.Context, names []string) error {
	c := w.client
	byName := func(ctx context.Context) ([]twin, error) {
		return byTexts[twin](ctx, c, "name", twinFields, names, func(ctx context.Context, part []string, offset int32) error {
			return c.api.devicesByName(ctx, w.slug, part, offset)
		})
	}
	rows, err := cheaper(ctx, c.textRequests("name", twinFields, names), byName, func(ctx context.Context, most int) ([]twin, bool, error) {
		return listUpTo[twin](ctx, c, most, twinFields, func(ctx context.Context, offset int32) error { return c.api.devicesOfSite(ctx, w.slug, offset) })
	})
	if err != nil {
		return err
	}
	for _, t := range rows {
		if t.Name == nil || t.Site.Slug != w.slug || len(w.devices[*t.Name]) == 0 {
			continue
		}
		if !slices.ContainsFunc(w.devices[*t.Name], func(d device) bool { return d.ID == t.ID }) {
			w.devices[*t.Name] = append(w.devices[*t.Name], device{ID: t.ID, Name: t.Name})
		}
	}
	return nil
}

// enrolled are the devices that there is exactly one of and that an Ironic of
// the site manages.
func (w *world) enrolled(names []string) []device {
	var out []device
	for _, name := range names {
		if found := w.devices[name]; len(found) == 1 && managed(w.site, w.class(found[0]).Name) {
			out = append(out, found[0])
		}
	}
	return out
}

func (w *world) readTypes(ctx context.Context, names []string) error {
	var ids []int64
	for _, d := range w.enrolled(names) {
		ids = append(ids, d.DeviceType.ID)
	}
	rows, err := byIDs[deviceType](ctx, w.client, "id", typeFields, ids, w.client.api.deviceTypes)
	if err != nil {
		return err
	}
	w.types = map[int64]deviceType{}
	for _, t := range rows {
		t.CustomFields = unwrapFields(t.CustomFields)
		w.types[t.ID] = t
	}
	return nil
}

// readInterfaces reads the interfaces of the devices: device by device, as many
// in a request as fill a page; or those of all devices of their roles, when that
// is cheaper together with the search for their MACs, which then need not be
// asked for one by one.
func (w *world) readInterfaces(ctx context.Context, enrolled []device) error {
	c := w.client
	counts := map[int32]int{}
	var ids []int64
	var roles []int64
	ports := 0
	for _, d := range enrolled {
		ids, roles = append(ids, d.ID), append(roles, d.Role.ID)
		counts[int32(d.ID)] = d.Interfaces //nolint:gosec // narrow checks it below
		ports += d.Interfaces
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	small, err := narrow(ids)
	if err != nil {
		return err
	}
	smallRoles, err := narrow(roles)
	if err != nil {
		return err
	}
	parts := cutPages(small, c.room(interfaceFields), len("device_id")+2, counts)
	one := func(ctx context.Context) ([]netInterface, error) {
		return inParts(ctx, parts, func(ctx context.Context, part []int32) ([]netInterface, error) {
			return listAll[netInterface](ctx, c, interfaceFields, func(ctx context.Context, offset int32) error { return c.api.interfacesOf(ctx, part, offset) })
		})
	}
	macRequests := (ports*len("mac_address=02:00:00:00:00:00&") + urlLimit - 1) / urlLimit
	rows, err := cheaper(ctx, len(parts)+max(0, macRequests-1), one, func(ctx context.Context, most int) ([]netInterface, bool, error) {
		rows, ok, err := listUpTo[netInterface](ctx, c, most, interfaceFields, func(ctx context.Context, offset int32) error {
			return c.api.interfacesOfRoles(ctx, w.slug, smallRoles, offset)
		})
		if ok {
			w.wholeRoles = roles
		}
		return rows, ok, err
	})
	if err != nil {
		return err
	}
	w.interfaces = map[int64][]netInterface{}
	for _, i := range rows {
		w.interfaces[i.Device.ID] = append(w.interfaces[i.Device.ID], i)
	}
	return nil
}

// readAddresses reads the out-of-band addresses and every address object with
// the same host: by host, or all of their networks when that is cheaper. What
// is translated (NAT) is followed once.
func (w *world) readAddresses(ctx context.Context, enrolled []device) error {
	c := w.client
	var ids []int64
	var hosts, networks []string
	for _, d := range enrolled {
		if d.OOB == nil {
			continue
		}
		ids = append(ids, d.OOB.ID)
		if p, err := netip.ParsePrefix(d.OOB.Address); err == nil {
			hosts, networks = append(hosts, p.Addr().String()), append(networks, p.Masked().String())
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	slices.Sort(networks)
	networks = slices.Compact(networks)
	byHost := func(ctx context.Context) ([]ipAddress, error) {
		return byTexts[ipAddress](ctx, c, "address", addressFields, hosts, c.api.addressesByHost)
	}
	requests := c.textRequests("address", addressFields, hosts)
	if c.textRequests("parent", addressFields, networks) > 1 {
		requests = min(requests, fewRequests) // as many networks as hosts: the other way is none
	}
	rows, err := cheaper(ctx, requests, byHost, func(ctx context.Context, most int) ([]ipAddress, bool, error) {
		return listUpTo[ipAddress](ctx, c, most, addressFields, func(ctx context.Context, offset int32) error { return c.api.addressesIn(ctx, networks, offset) })
	})
	if err != nil {
		return err
	}
	w.twins, w.addresses = rows, map[int64]ipAddress{}
	for _, a := range rows {
		w.addresses[a.ID] = a
	}
	var more []int64
	for _, id := range ids {
		if _, known := w.addresses[id]; !known {
			more = append(more, id)
		}
	}
	if err := w.moreAddresses(ctx, more); err != nil {
		return err
	}
	more = nil
	for _, id := range ids {
		if a, known := w.addresses[id]; known && a.NATInside != nil && !onInterface(a) {
			more = append(more, a.NATInside.ID)
		}
	}
	return w.moreAddresses(ctx, more)
}

func (w *world) moreAddresses(ctx context.Context, ids []int64) error {
	rows, err := byIDs[ipAddress](ctx, w.client, "id", addressFields, ids, w.client.api.addressesByID)
	for _, a := range rows {
		w.addresses[a.ID] = a
	}
	return err
}

// readFar reads the LAGs of the switch ports that the members of LACP bonds are
// cabled to: all else about a far end stands in the list of interfaces. Many
// ports are read switch by switch.
func (w *world) readFar(ctx context.Context, enrolled []device) error {
	c := w.client
	var ports, switches []int64
	for _, d := range enrolled {
		members := w.contexts[d.ID].ironic.lacpMembers()
		for _, i := range w.interfaces[d.ID] {
			if i.EndpointsType == nil || *i.EndpointsType != interfaceType || !members(i) {
				continue
			}
			for _, e := range i.Endpoints {
				ports = append(ports, e.ID)
				if id := e.Device.id(); id > 0 {
					switches = append(switches, id)
				}
			}
		}
	}
	byID := func(ctx context.Context) ([]port, error) {
		return byIDs[port](ctx, c, "id", portFields, ports, c.api.interfacesByID)
	}
	small, err := narrow(distinct(switches))
	if err != nil {
		return err
	}
	rows, err := cheaper(ctx, c.idRequests("id", portFields, ports), byID, func(ctx context.Context, most int) ([]port, bool, error) {
		var out []port
		for _, part := range cutPages(small, c.room(portFields), len("device_id")+2, nil) {
			rows, ok, err := listUpTo[port](ctx, c, most, portFields, func(ctx context.Context, offset int32) error { return c.api.cabledOf(ctx, part, offset) })
			most -= max(1, (len(rows)+pageSize-1)/pageSize)
			if err != nil || !ok || most <= 0 {
				return nil, false, err
			}
			out = append(out, rows...)
		}
		return out, true, nil
	})
	if err != nil {
		return err
	}
	w.ports = map[int64]port{}
	for _, p := range rows {
		w.ports[p.ID] = p
	}
	return w.readPlatforms(ctx)
}

// readPlatforms asks for the platforms of the switches, where the site compares
// names by them.
func (w *world) readPlatforms(ctx context.Context) error {
	v := w.site.Verification
	if len(v.PortNames)+len(v.SwitchNames) == 0 {
		return nil
	}
	var ids []int64
	for _, list := range w.interfaces {
		for _, i := range list {
			if *i.MgmtOnly || i.EndpointsType == nil || *i.EndpointsType != interfaceType {
				continue
			}
			for _, e := range i.Endpoints {
				if id := e.Device.id(); id > 0 {
					ids = append(ids, id)
				}
			}
		}
	}
	switches, err := byIDs[farDevice](ctx, w.client, "id", switchFields, ids, w.client.api.devicesByID)
	if err != nil {
		return err
	}
	w.platforms = map[int64]string{}
	for _, d := range switches {
		if d.Platform != nil {
			w.platforms[d.ID] = d.Platform.Slug
		}
	}
	return nil
}

// readHolders looks for the devices' MACs elsewhere in the site, so that two
// machines are not given one identity. A MAC is known to the DHCP server and the
// Ironic of its site only; what another site records does not matter here.
func (w *world) readHolders(ctx context.Context, intents []*plan.Intent) error {
	c := w.client
	macs, vendors := map[plan.MAC]bool{}, map[string]bool{}
	for _, in := range intents {
		for _, mac := range identity(in) {
			macs[mac] = true
			vendors[mac.String()[:len("02:00:00")]] = true
		}
	}
	var texts, prefixes []string
	for _, mac := range sortedMACs(macs) {
		texts = append(texts, mac.String())
	}
	for p := range vendors {
		prefixes = append(prefixes, p)
	}
	slices.Sort(prefixes)
	exact := func(ctx context.Context) ([]macHolder, error) {
		return byTexts[macHolder](ctx, c, "mac_address", holderFields, texts, func(ctx context.Context, part []string, offset int32) error {
			return c.api.interfacesByMAC(ctx, w.slug, part, offset)
		})
	}
	requests := c.textRequests("mac_address", holderFields, texts)
	others, err := narrow(w.wholeRoles)
	if err != nil || len(others) == 0 || c.textRequests("mac_address__isw", holderFields, prefixes) > 1 {
		requests = min(requests, fewRequests)
	}
	w.holders, err = cheaper(ctx, requests, exact, func(ctx context.Context, most int) ([]macHolder, bool, error) {
		rows, ok, err := listUpTo[macHolder](ctx, c, most, holderFields, func(ctx context.Context, offset int32) error {
			return c.api.interfacesOfOthers(ctx, w.slug, others, prefixes, offset)
		})
		for _, list := range w.interfaces {
			for _, i := range list {
				rows = append(rows, macHolder{ID: i.ID, Name: i.Name, Type: i.Type, Device: i.Device, MAC: i.MAC, MACs: i.MACs})
			}
		}
		return rows, ok, err
	})
	slices.SortFunc(w.holders, func(a, b macHolder) int { return compareIDs(a.ID, b.ID) })
	return err
}
