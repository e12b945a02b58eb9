package netbox

import (
	"context"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// Filter narrows a site's devices. What is empty does not narrow.
type Filter struct {
	Roles    []string // slugs of device roles; any of them
	Racks    []string // names, exactly as NetBox has them; any of them
	Tags     []string // slugs; a device must have all of them, as in NetBox
	Statuses []string // values (staged, active, planned, …); any of them
}

// Names lists the devices of the site, sorted naturally, that have a role of
// one of the site's device classes and what the filter asks for. Without
// statuses in the filter those are meant that enrolment takes (staged and
// active): the zero Filter is what --all means. A role, rack, tag or status
// that NetBox or the site does not have is an error, never an empty list.
//
// The devices are read whole, and the next call of Intents for this site takes
// them from here.
func (c *Client) Names(ctx context.Context, site *plan.Site, filter Filter) ([]string, error) {
	slug := siteSlug(site)
	if _, err := c.readSite(ctx, slug); err != nil {
		return nil, err
	}
	roles, err := filter.roles(site)
	if err != nil || len(roles) == 0 {
		return nil, err
	}
	sel := selector{site: slug, statuses: filter.Statuses, tags: filter.Tags}
	if err := checkStatuses(filter.Statuses); err != nil {
		return nil, err
	}
	if len(sel.statuses) == 0 {
		sel.statuses = []string{statusActive, statusStaged}
	}
	if sel.roleIDs, err = c.roleIDs(ctx, roles); err != nil {
		return nil, err
	}
	if sel.rackIDs, err = c.rackIDs(ctx, slug, filter.Racks); err != nil {
		return nil, err
	}
	if err := c.checkTags(ctx, filter.Tags); err != nil {
		return nil, err
	}
	rows, err := listAll[device](ctx, c, deviceFields, func(ctx context.Context, offset int32) error {
		return c.api.devicesBy(ctx, sel, offset)
	})
	if err != nil {
		return nil, err
	}
	var names []string
	kept := map[string][]device{}
	for _, d := range rows {
		// NetBox also gives devices of child roles, and everything when it does
		// not know a filter.
		if d.Name != nil && *d.Name != "" && d.Site.Slug == slug && slices.Contains(roles, d.Role.Slug) &&
			slices.Contains(sel.statuses, string(d.Status)) && d.fits(filter) {
			names = append(names, *d.Name)
			kept[*d.Name] = append(kept[*d.Name], d)
		}
	}
	c.giveListed(slug, kept)
	slices.SortFunc(names, compareNatural)
	return slices.Compact(names), nil
}

// fits looks at racks and tags.
func (d *device) fits(f Filter) bool {
	if len(f.Racks) > 0 && (d.Rack == nil || !slices.Contains(f.Racks, d.Rack.Name)) {
		return false
	}
	for _, slug := range f.Tags {
		if !slices.ContainsFunc(d.Tags, func(t tag) bool { return t.Slug == slug }) {
			return false
		}
	}
	return true
}

// roles are the roles that the site enrols, or those of them that the filter names.
func (f Filter) roles(site *plan.Site) ([]string, error) {
	var enrolled, classless []string
	for _, class := range site.Classes {
		if managed(site, class.Name) {
			enrolled = append(enrolled, class.Roles...)
		} else {
			classless = append(classless, class.Roles...)
		}
	}
	slices.Sort(enrolled)
	enrolled = slices.Compact(enrolled)
	if len(f.Roles) == 0 {
		return enrolled, nil
	}
	for _, role := range f.Roles {
		switch {
		case slices.Contains(enrolled, role):
		case slices.Contains(classless, role):
			return nil, plan.NewFault(plan.CodeConfigInvalid, "no ironic block of site %s manages the class of the role %q", site.Name, clean(role, 80)).
				WithHint("The roles that the site enrols are %s.", strings.Join(enrolled, ", "))
		default:
			return nil, unknown("no device_class of site "+site.Name+" has the role", role, enrolled)
		}
	}
	return f.Roles, nil
}

// statuses are those that NetBox comes with. A site may add its own, and a
// device that has one is never enrolled.
func statuses() []string {
	return []string{statusActive, statusStaged, "planned", "offline", "failed", "inventory", "decommissioning"}
}

func checkStatuses(wanted []string) error {
	for _, s := range wanted {
		if !slices.Contains(statuses(), s) {
			return unknown("NetBox has no device status", s, statuses())
		}
	}
	return nil
}

// roleIDs gives ids, because a filter by a slug that NetBox does not have is a 400.
func (c *Client) roleIDs(ctx context.Context, slugs []string) ([]string, error) {
	rows, err := listAll[fielded](ctx, c, slugFields, func(ctx context.Context, offset int32) error {
		return c.api.rolesBySlug(ctx, slugs, offset)
	})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range rows {
		if slices.Contains(slugs, r.Slug) {
			ids = append(ids, itoa(r.ID))
		}
	}
	if len(ids) == 0 {
		return nil, plan.NewFault(plan.CodeConfigInvalid, "NetBox shows none of the device roles %s that the device_class blocks list", strings.Join(slugs, ", ")).
			With("url", c.base+"/dcim/device-roles/").WithHint("Write the slugs of NetBox's device roles in the device_class blocks; the token needs the permission dcim.view_devicerole.")
	}
	return ids, nil
}

// rackIDs finds racks of the site by name. Racks of different locations may
// share a name: then all of them are meant.
func (c *Client) rackIDs(ctx context.Context, site string, names []string) ([]int32, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := listAll[rack](ctx, c, rackFields, func(ctx context.Context, offset int32) error {
		return c.api.racks(ctx, site, offset)
	})
	if err != nil {
		return nil, err
	}
	var ids []int64
	var known []string
	for _, r := range rows {
		if r.Site.Slug != site {
			continue
		}
		known = append(known, r.Name)
		if slices.Contains(names, r.Name) {
			ids = append(ids, r.ID)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, unknown("site "+site+" has no rack", name, known).With("url", c.base+"/dcim/racks/")
		}
	}
	return narrow(ids)
}

// checkTags wants every tag to exist.
func (c *Client) checkTags(ctx context.Context, slugs []string) error {
	if len(slugs) == 0 {
		return nil
	}
	rows, err := listAll[fielded](ctx, c, slugFields, func(ctx context.Context, offset int32) error {
		return c.api.tags(ctx, offset)
	})
	if err != nil {
		return err
	}
	known := make([]string, len(rows))
	for i, t := range rows {
		known[i] = t.Slug
	}
	for _, slug := range slugs {
		if !slices.Contains(known, slug) {
			return unknown("NetBox has no tag with the slug", slug, known).With("url", c.base+"/extras/tags/")
		}
	}
	return nil
}

// shownNames is how many names an error lists that has no better suggestion.
const shownNames = 8

// unknown is the fault about a name that does not exist, with the one that was
// probably meant.
func unknown(what, given string, known []string) *plan.Fault {
	f := plan.NewFault(plan.CodeConfigInvalid, "%s %q", what, clean(given, 80))
	known = slices.Clone(known)
	slices.SortFunc(known, compareNatural)
	known = slices.Compact(known)
	if near := plan.Suggest(given, known); near != "" {
		return f.WithHint("Did you mean %s?", clean(near, 80))
	}
	more := ""
	if len(known) > shownNames {
		known, more = known[:shownNames], ", …"
	}
	for i := range known {
		known[i] = clean(known[i], 80)
	}
	switch len(known) {
	case 0:
		return f.WithHint("NetBox shows none at all; the token may lack the right to see them.")
	case 1:
		return f.WithHint("There is only %s.", known[0])
	default:
		return f.WithHint("There are %s%s.", strings.Join(known, ", "), more)
	}
}
