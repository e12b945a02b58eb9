package netbox

import (
	"context"
	"slices"

	"github.com/enroll-dev/enroll/plan"
)

// world is everything that was read for a set of devices.
type world struct {
	client     *Client
	site       *plan.Site
	slug       string // of the NetBox site
	siteObject fielded
	devices    map[string][]device // by exact name, in this site
	byID       map[int64]device    // the same by id
	types      map[int64]deviceType
	contexts   map[int64]*rendered // by the id of a device
	interfaces map[int64][]netInterface
	addresses  map[int64]ipAddress
	ports      map[int64]port
	platforms  map[int64]string // slug, by the id of a switch
	// wholeRoles are the roles all whose devices of the site have their interfaces
	// here; none when interfaces were read device by device.
	wholeRoles []int64
	// holders are interfaces of the site, and twins addresses anywhere in NetBox,
	// that have a MAC or the out-of-band address of one of the devices.
	holders []macHolder
	twins   []ipAddress
}

// Intents reads the devices of a site by name, in one bulk read whose number of
// requests does not depend on the number of devices but on the length of URLs
// and pages. Devices that Names has just listed are not read again. What is wrong with the record of a device stands in its intent. A
// diagnostic stands for each device without an intent (not found, ambiguous),
// and for a warning about NetBox itself. An error is a *plan.Fault and means
// that NetBox could not be read, or that it shows not one of several devices: an
// empty answer is never taken for an empty site.
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
	c.keep(w)
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
	if err := w.readHolders(ctx, intents); err != nil {
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
	if s, known := c.knownSite(slug); known {
		return s, nil
	}
	rows, err := listAll[fielded](ctx, c, siteFields, func(ctx context.Context, offset int32) error {
		return c.api.sites(ctx, slug, offset)
	})
	if err != nil {
		return fielded{}, err
	}
	for _, s := range rows {
		if s.Slug == slug {
			s.CustomFields = unwrapFields(s.CustomFields)
			c.rememberSite(s)
			return s, nil
		}
	}
	return fielded{}, plan.NewFault(plan.CodeConfigInvalid, "NetBox shows no site with the slug %q", slug).With("url", c.base+"/dcim/sites/").
		WithHint("Set site in the netbox block to the slug of the NetBox site; the token needs the permission dcim.view_site.")
}
