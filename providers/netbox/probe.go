package netbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
)

// viewed are the models that are read, each with a right of its own.
func viewed() []struct{ right, path string } {
	return []struct{ right, path string }{
		{"dcim.site", "/api/dcim/sites/"}, {"dcim.devicerole", "/api/dcim/device-roles/"}, {"dcim.device", "/api/dcim/devices/"},
		{"dcim.devicetype", "/api/dcim/device-types/"}, {"dcim.interface", "/api/dcim/interfaces/"}, {"ipam.ipaddress", "/api/ipam/ip-addresses/"}, {"extras.tag", "/api/extras/tags/"},
	}
}

// Probe reads one object of every model, asks NetBox what the token may do with
// devices, counts the devices of the site's classes, and looks for their roles and for
// the tags that devices are given. It sends GET and OPTIONS only.
func (c *Client) Probe(ctx context.Context, site *plan.Site) []providers.Finding {
	var out []providers.Finding
	for i, v := range viewed() {
		_, err := c.read(ctx, call{fields: []string{"id"}}, c.plain(http.MethodGet, v.path+"?limit=1"))
		f := plan.AsFault(err)
		if i == 0 {
			if f != nil && f.Code == plan.CodeNetBoxDenied && c.refusesToken(ctx) || f != nil && f.Code != plan.CodeNetBoxDenied {
				return []providers.Finding{{What: "NetBox answers at " + c.base, Fault: f}}
			}
			out = append(out, providers.Finding{What: "NetBox answers at " + c.base, Note: "API version " + c.Version()})
			if w := c.versionWarning(); w != nil {
				out[0].Note = w.Summary
			}
		}
		if f != nil && f.Code == plan.CodeNetBoxDenied {
			f = f.WithHint("Give the token's user the permission to view %s.", v.right)
		}
		out = append(out, providers.Finding{What: "NetBox: view " + v.right, Fault: f})
	}
	out = append(out, c.probeChange(ctx))
	names, err := c.Names(ctx, site, Filter{})
	f := providers.Finding{What: fmt.Sprintf("NetBox: site %s and its device roles", siteSlug(site)), Fault: plan.AsFault(err)}
	if err == nil {
		f.Note = fmt.Sprintf("%d devices of the site's device classes", len(names))
	}
	return slices.Concat(out, []providers.Finding{f}, c.probeTags(ctx, site), c.probeRoles(ctx, site))
}

// probeTags looks for the tags that devices are given at the end: without them the
// last step of every device fails. A list that cannot be read was reported above.
func (c *Client) probeTags(ctx context.Context, site *plan.Site) []providers.Finding {
	rows, err := listAll[fielded](ctx, c, slugFields, func(ctx context.Context, offset int32) error {
		return c.api.tagsBySlug(ctx, tagsOf(site), offset)
	})
	if err != nil {
		return nil
	}
	var out []providers.Finding
	for _, slug := range tagsOf(site) {
		f := providers.Finding{What: "NetBox: tag " + slug}
		if !slices.ContainsFunc(rows, func(t fielded) bool { return t.Slug == slug }) {
			f.Fault = c.noTag(slug)
		}
		out = append(out, f)
	}
	return out
}

// probeRoles finds the roles of device classes that NetBox does not have: no device
// would ever be of such a class. A list that cannot be read was reported above.
func (c *Client) probeRoles(ctx context.Context, site *plan.Site) []providers.Finding {
	rows, err := listAll[fielded](ctx, c, slugFields, func(ctx context.Context, offset int32) error {
		return c.api.rolesBySlug(ctx, nil, offset)
	})
	if err != nil {
		return nil
	}
	known := make([]string, len(rows))
	for i, r := range rows {
		known[i] = r.Slug
	}
	var out []providers.Finding
	for _, class := range site.Classes {
		for _, role := range class.Roles {
			if !slices.Contains(known, role) {
				f := unknown("NetBox has no device role with the slug", role, known).With("url", c.base+"/dcim/device-roles/")
				if at := site.Set["device_class."+class.Name+".roles"]; at != "" {
					f = f.With("from", at)
				}
				out = append(out, providers.Finding{What: "NetBox: roles of device_class " + class.Name, Fault: f})
			}
		}
	}
	return out
}

// refusesToken tells a token that nobody knows from one without a right: the
// status of NetBox itself needs no right.
func (c *Client) refusesToken(ctx context.Context) bool {
	_, err := c.read(ctx, call{}, c.plain(http.MethodGet, "/api/status/"))
	return err != nil
}

// probeChange asks for the description of the list of devices: NetBox lists PUT
// among its actions exactly when the token may write and its user may change
// some device (netbox/api/metadata.py). Whether the right is limited to some of
// them shows only when one is changed.
func (c *Client) probeChange(ctx context.Context) providers.Finding {
	found := providers.Finding{What: "NetBox: change dcim.device"}
	ans, err := c.read(ctx, call{}, c.plain(http.MethodOptions, "/api/dcim/devices/"))
	if err != nil {
		found.Fault = plan.AsFault(err)
		return found
	}
	var described struct {
		Name    string                     `json:"name"`
		Actions map[string]json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal(ans.body, &described); err != nil || described.Name == "" {
		found.Fault = c.about(ans, plan.CodeNetBoxProtocol, "NetBox's description of its devices cannot be read").Because(err)
		return found
	}
	if _, may := described.Actions[http.MethodPut]; !may {
		found.Fault = c.about(ans, plan.CodeNetBoxDenied, "the NetBox token may not change devices").
			WithHint("Give the token's user the permission to change dcim.device, and let the token write (write enabled).")
		return found
	}
	found.Note = "limits of the right to some devices show only when one is changed"
	return found
}

// plain sends a request that go-netbox has no method for.
func (c *Client) plain(method, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, method, c.base+path, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		return finish(resp, err)
	}
}
