package netbox

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/enroll-dev/enroll/plan"
)

// world is everything that was read for a set of devices.
type world struct {
	client     *Client
	site       *plan.Site
	slug       string // of the NetBox site
	siteObject fielded
	devices    map[string][]device // by exact name, in this site
	types      map[int64]deviceType
	interfaces map[int64][]netInterface
	addresses  map[int64]ipAddress
	ports      map[int64]port
	platforms  map[int64]string // slug, by the id of a switch
	// holders are interfaces, and twins addresses, anywhere in NetBox that have a
	// MAC or the out-of-band address of one of the devices.
	holders []macHolder
	twins   []ipAddress
}

// Intents reads the devices of a site by name, in one bulk read whose number of
// requests does not depend on the number of devices but on the length of URLs
// and pages. What is wrong with the record of a device stands in its intent. A
// diagnostic stands for each device without an intent (not found, ambiguous),
// and for a warning about NetBox itself. An error is a *plan.Fault and means
// that NetBox could not be read.
func (c *Client) Intents(ctx context.Context, site *plan.Site, names []string) ([]*plan.Intent, []plan.Diagnostic, error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, nil, nil
	}
	w := &world{client: c, site: site, slug: siteSlug(site)}
	if err := w.read(ctx, names); err != nil {
		return nil, nil, err
	}
	var intents []*plan.Intent
	var failed []plan.Diagnostic
	for _, name := range names {
		d, f := w.find(name)
		if f != nil {
			failed = append(failed, plan.Diagnostic{Severity: plan.SeverityError, Device: name, Fault: f})
			continue
		}
		intents = append(intents, w.intent(d))
	}
	if err := w.readRivals(ctx, intents); err != nil {
		return nil, nil, err
	}
	w.across(intents)
	for _, in := range intents {
		in.Hash = w.hash(in)
	}
	if f := c.versionWarning(); f != nil {
		failed = append(failed, plan.Diagnostic{Severity: plan.SeverityWarning, Fault: f})
	}
	return intents, failed, nil
}

func siteSlug(site *plan.Site) string {
	if site.NetBox.Site != "" {
		return site.NetBox.Site
	}
	return site.Name
}

func managed(site *plan.Site, class string) bool {
	for _, ironic := range site.Ironics {
		if slices.Contains(ironic.DeviceClasses, class) {
			return true
		}
	}
	return false
}

func (c *Client) readSite(ctx context.Context, slug string) (fielded, error) {
	rows, err := listAll[fielded](ctx, c, siteFields, func(ctx context.Context, offset int32) error {
		return c.api.sites(ctx, slug, offset)
	})
	if err != nil {
		return fielded{}, err
	}
	for _, s := range rows {
		if s.Slug == slug {
			s.CustomFields = unwrapFields(s.CustomFields)
			return s, nil
		}
	}
	return fielded{}, plan.NewFault(plan.CodeConfigInvalid, "NetBox shows no site with the slug %q", slug).With("url", c.base+"/dcim/sites/").
		WithHint("Set site in the netbox block to the slug of the NetBox site; the token needs the permission dcim.view_site.")
}

// read fills the world in rounds: what is known by name, by the devices' ids,
// and from their interfaces and addresses.
func (w *world) read(ctx context.Context, names []string) error {
	c := w.client
	var err error
	if w.siteObject, err = c.readSite(ctx, w.slug); err != nil {
		return err
	}
	room := urlLimit - c.fixedLength(deviceFields) - escapedSize("site", w.slug)
	rows, err := chunked(ctx, names, room, func(n string) int { return escapedSize("name", n) }, func(ctx context.Context, part []string) ([]device, error) {
		return listAll[device](ctx, c, deviceFields, func(ctx context.Context, offset int32) error {
			return c.api.devicesByName(ctx, w.slug, part, offset)
		})
	})
	if err != nil {
		return err
	}
	w.devices = map[string][]device{}
	for _, d := range rows {
		if d.Name != nil && d.Site.Slug == w.slug {
			w.devices[*d.Name] = append(w.devices[*d.Name], d)
		}
	}
	var ids, oobs, types []int64
	for _, name := range names {
		found := w.devices[name]
		if len(found) != 1 || !managed(w.site, w.class(found[0]).Name) {
			continue // nothing more is asked about what is not enrolled
		}
		ids, types = append(ids, found[0].ID), append(types, found[0].DeviceType.ID)
		if found[0].OOB != nil {
			oobs = append(oobs, found[0].OOB.ID)
		}
	}
	if err := w.readTypes(ctx, types); err != nil {
		return err
	}
	if err := w.readParts(ctx, ids, oobs); err != nil {
		return err
	}
	return w.readFar(ctx)
}

func (w *world) readTypes(ctx context.Context, ids []int64) error {
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

func (w *world) readParts(ctx context.Context, ids, oobs []int64) error {
	c := w.client
	w.interfaces, w.addresses = map[int64][]netInterface{}, map[int64]ipAddress{}
	var interfaces []netInterface
	var addresses []ipAddress
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	g.Go(func() (err error) {
		interfaces, err = byIDs[netInterface](ctx, c, "device_id", interfaceFields, ids, c.api.interfacesOf)
		return err
	})
	g.Go(func() (err error) {
		addresses, err = byIDs[ipAddress](ctx, c, "id", addressFields, oobs, c.api.addressesByID)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for _, i := range interfaces {
		w.interfaces[i.Device.ID] = append(w.interfaces[i.Device.ID], i)
	}
	for _, a := range addresses {
		w.addresses[a.ID] = a
	}
	return nil
}

// readFar reads what the first rounds point at: inner addresses of NAT, and
// the switch ports at the far ends, whose LAG and label the interface list
// does not show.
func (w *world) readFar(ctx context.Context) error {
	c := w.client
	var inside, far []int64
	for _, a := range w.addresses {
		if a.NATInside != nil && !onInterface(a) {
			inside = append(inside, a.NATInside.ID)
		}
	}
	for _, list := range w.interfaces {
		for _, i := range list {
			if *i.MgmtOnly || i.EndpointsType == nil || *i.EndpointsType != interfaceType {
				continue
			}
			for _, e := range i.Endpoints {
				far = append(far, e.ID)
			}
		}
	}
	inner, err := byIDs[ipAddress](ctx, c, "id", addressFields, inside, c.api.addressesByID)
	if err != nil {
		return err
	}
	for _, a := range inner {
		if _, known := w.addresses[a.ID]; !known {
			w.addresses[a.ID] = a
		}
	}
	ports, err := byIDs[port](ctx, c, "id", portFields, far, c.api.interfacesByID)
	if err != nil {
		return err
	}
	w.ports = map[int64]port{}
	for _, p := range ports {
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
	for _, p := range w.ports {
		ids = append(ids, p.Device.id())
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

// readRivals looks for the devices' MACs and out-of-band addresses elsewhere in
// NetBox, so that two machines are not given one identity.
func (w *world) readRivals(ctx context.Context, intents []*plan.Intent) error {
	c := w.client
	macs := map[plan.MAC]bool{}
	var texts, hosts []string
	for _, in := range intents {
		for _, mac := range identity(in) {
			macs[mac] = true
		}
		if in.OOB.IsValid() {
			hosts = append(hosts, in.OOB.String())
		}
	}
	for _, mac := range sortedMACs(macs) {
		texts = append(texts, mac.String())
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	g.Go(func() (err error) {
		w.holders, err = byTexts[macHolder](ctx, c, "mac_address", holderFields, texts, c.api.interfacesByMAC)
		return err
	})
	g.Go(func() (err error) {
		w.twins, err = byTexts[ipAddress](ctx, c, "address", addressFields, hosts, c.api.addressesByHost)
		return err
	})
	return g.Wait()
}
