package ironic

import (
	"context"
	"net/http"
	"sort"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
)

// Probe logs in to every Ironic of the site and lists one node, port and
// portgroup each. It sends GET only, and a login to Keystone. Ironic has no way
// to ask what a credential may change.
func (c *Client) Probe(ctx context.Context, _ *plan.Site) []providers.Finding {
	names := make([]string, 0, len(c.services))
	for name := range c.services {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []providers.Finding
	for _, name := range names {
		out = append(out, c.services[name].probe(ctx)...)
	}
	return out
}

func (s *service) probe(ctx context.Context) []providers.Finding {
	answers := providers.Finding{What: "Ironic " + s.where() + " answers"}
	if _, answers.Fault = s.connect(ctx); answers.Fault != nil {
		return []providers.Finding{answers}
	}
	var out []providers.Finding
	for _, list := range []string{"nodes", "ports", "portgroups"} {
		_, f := s.call(ctx, http.MethodGet, list+"?limit=1&fields=uuid", nil, nil)
		if f != nil && f.Code == plan.CodeIronicUnreachable || f != nil && f.Code == plan.CodeInterrupted {
			answers.Fault = f
			return []providers.Finding{answers}
		}
		out = append(out, providers.Finding{What: "Ironic " + s.settings.Name + ": list " + list, Fault: f})
	}
	answers.Note = "API " + apiVersion(s.minor())
	if f := s.tooOldForInventory(); f != nil {
		answers.Note += ", too old for inspection and verification (" + apiVersion(inventoryMinor) + ")"
	}
	if s.settings.Endpoint != "" {
		answers.Note += ", without a login: whoever reaches it may do everything"
	} else {
		answers.Note += "; whether the credential may create and change nodes shows only when it does"
	}
	return append([]providers.Finding{answers}, out...)
}
