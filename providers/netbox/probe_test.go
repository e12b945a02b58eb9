package netbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

var _ providers.Prober = (*netbox.Client)(nil)

// faults lists the findings that are not as they have to be.
func faults(findings []providers.Finding) string {
	var out []string
	for _, f := range findings {
		if f.Fault != nil {
			out = append(out, strings.TrimPrefix(f.What, "NetBox: ")+" "+string(f.Fault.Code))
		}
	}
	return strings.Join(out, ", ")
}

func TestProbe(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1), host(2))
	deny := func(path string) *exchange.Fault {
		return &exchange.Fault{Kind: exchange.Status, Path: path, Status: 403, Header: map[string]string{"Content-Type": "application/json", "API-Version": "4.7"}, Body: `{"detail":"You do not have permission to perform this action."}`}
	}
	for _, c := range []struct {
		name, token string
		deny        string
		want        string
	}{
		{"all rights", s.Token, "", ""},
		{"a token that may not write", s.ReadOnlyToken, "", "change dcim.device NETBOX_DENIED"},
		{"no right on addresses", s.Token, "/api/ipam/ip-addresses/", "view ipam.ipaddress NETBOX_DENIED"},
		{"no right on sites", s.Token, "/api/dcim/sites/", "view dcim.site NETBOX_DENIED, site lab1 and its device roles NETBOX_DENIED"},
		{"a token that nobody knows", "nbt_aaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "", "NetBox answers at " + s.URL + " NETBOX_DENIED"},
	} {
		s.Recorder.Reset()
		if c.deny != "" {
			f := deny(c.deny)
			f.Times = 2
			s.Recorder.Inject(f)
		}
		found := client(t, s.URL, c.token).Probe(context.Background(), site())
		if got := faults(found); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if n := s.Recorder.Count(func(r exchange.Record) bool { return r.Mutating }); n > 0 {
			t.Errorf("%s: %d mutating requests", c.name, n)
		}
	}
	// A role that NetBox does not have.
	wrong := site()
	wrong.Classes[0].Roles = append(slices.Clone(wrong.Classes[0].Roles), "gpu-comptue")
	wrong.Set = map[string]string{"device_class." + wrong.Classes[0].Name + ".roles": "site.hcl:9"}
	found := client(t, s.URL, s.Token).Probe(context.Background(), wrong)
	if got := faults(found); got != "roles of device_class "+wrong.Classes[0].Name+" "+string(plan.CodeConfigInvalid) {
		t.Error(got)
	}
	if f := found[len(found)-1].Fault; f == nil || !strings.Contains(f.Summary, `"gpu-comptue"`) || f.Hint != "Did you mean gpu-compute?" || f.Evidence["from"] != "site.hcl:9" {
		t.Errorf("%+v", f)
	}
	// A tag that NetBox does not have: enroll adds tags to devices and creates none.
	tagging := site()
	tagging.BMC, tagging.ConfigureBMC = &plan.BMCSettings{}, true
	if got := faults(client(t, s.URL, s.Token).Probe(context.Background(), tagging)); got != "tag ipmi_exporter NETBOX_REFUSED" {
		t.Error(got)
	}
	s.AddTag("ipmi_exporter")
	if got := faults(client(t, s.URL, s.Token).Probe(context.Background(), tagging)); got != "" {
		t.Error(got)
	}
	// Nobody answers.
	s.Close()
	if got := faults(client(t, s.URL, s.Token).Probe(context.Background(), site())); got != "NetBox answers at "+s.URL+" "+string(plan.CodeNetBoxUnreachable) {
		t.Error(got)
	}
}
