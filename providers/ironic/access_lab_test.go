//go:build lab

package ironic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic"
)

// identity is the lab's Keystone with a session of its administrator.
type identity struct {
	t             *testing.T
	url           string
	client        *gophercloud.ServiceClient
	user, project string
	ironic        caller // the Ironic of the catalogue
}

func realIdentity(t *testing.T) *identity {
	t.Helper()
	k := &identity{t: t, url: os.Getenv("ENROLL_LAB_KEYSTONE_URL")}
	if k.url == "" {
		t.Fatal("ENROLL_LAB_KEYSTONE_URL is not set: start the lab with make lab-up")
	}
	provider, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: k.url, Username: "admin", Password: os.Getenv("ENROLL_LAB_KEYSTONE_PASSWORD"), DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: "admin", DomainName: "Default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if k.client, err = openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{}); err != nil {
		t.Fatal(err)
	}
	session := tokens.Get(t.Context(), k.client, provider.Token())
	user, err := session.ExtractUser()
	if err != nil {
		t.Fatal(err)
	}
	project, err := session.ExtractProject()
	if err != nil {
		t.Fatal(err)
	}
	k.user, k.project = user.ID, project.ID
	baremetal, err := openstack.NewBareMetalV1(provider, gophercloud.EndpointOpts{})
	if err != nil {
		t.Fatal(err)
	}
	k.ironic = caller{endpoint: strings.TrimSuffix(strings.TrimSuffix(baremetal.Endpoint, "/"), "/v1"), token: provider.Token()}
	return k
}

// credential makes an application credential with access rules.
func (k *identity) credential(rules []ironic.AccessRule) *applicationcredentials.ApplicationCredential {
	k.t.Helper()
	opts := applicationcredentials.CreateOpts{Name: fmt.Sprintf("conf-%016x", rand.Uint64())}
	for _, r := range rules {
		opts.AccessRules = append(opts.AccessRules, applicationcredentials.AccessRule{Service: r.Service, Method: r.Method, Path: r.Path})
	}
	made, err := applicationcredentials.Create(k.t.Context(), k.client, k.user, opts).Extract()
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		if err := applicationcredentials.Delete(context.Background(), k.client, k.user, made.ID).ExtractErr(); err != nil {
			k.t.Error(err)
		}
	})
	return made
}

// cloud is a clouds.yaml that logs in with the rules.
func (k *identity) cloud(rules []ironic.AccessRule) (file string) {
	k.t.Helper()
	made := k.credential(rules)
	file = filepath.Join(k.t.TempDir(), "clouds.yaml")
	text := fmt.Sprintf("clouds:\n  lab:\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: %s\n      application_credential_id: %s\n      application_credential_secret: %s\n    region_name: RegionOne\n    interface: public\n", k.url, made.ID, made.Secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return file
}

// login is somebody with the rules who asks the Ironic without the client under test.
func (k *identity) login(rules []ironic.AccessRule) caller {
	k.t.Helper()
	made := k.credential(rules)
	provider, err := openstack.AuthenticatedClient(k.t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: k.url, ApplicationCredentialID: made.ID, ApplicationCredentialSecret: made.Secret,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return caller{endpoint: k.ironic.endpoint, token: provider.Token()}
}

// connect gives the lab a client that logs in with the rules.
func (k *identity) connect(l *lab, rules []ironic.AccessRule) {
	k.t.Helper()
	c, err := ironic.New(l.scope.Site.Ironics, credentials{}, ironic.Options{CloudsFile: k.cloud(rules)})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = c.Close(context.Background()) })
	l.client = c
}

// device is a device that needs every rule there is, its ramdisk included.
func (k *identity) device() *lab {
	k.t.Helper()
	l, view := realScope(k.t, "fake-hardware", plan.IronicSettings{Cloud: "lab", EnrolProject: k.project, SchedulerTrait: "HW_ARCH_X86_64"})
	i := &l.scope.Targets[0].Intent.Ironic
	i.Interfaces["raid_interface"] = "agent"
	i.TargetRAIDConfig = map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1"}}}
	k.t.Cleanup(func() { l.remove(k.ironic, l.name()) })
	inventory, _ := l.inventory(view)
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.ramdisk(ctx, k.ironic, l.name(), inventory)
	}()
	k.t.Cleanup(func() { cancel(); <-done })
	return l
}

// change is what the administrator does to the device's node.
func (k *identity) change(method, path string, body any) map[string]any {
	k.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		k.t.Fatal(err)
	}
	for range 50 {
		status, answer, err := k.ironic.send(k.t.Context(), "1.82", method, path, raw)
		if err == nil && status < http.StatusMultipleChoices {
			out := map[string]any{}
			_ = json.Unmarshal(answer, &out) // empty answers
			return out
		}
		if status != http.StatusConflict {
			k.t.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
		}
	}
	k.t.Fatalf("%s %s: locked for ever", method, path)
	return nil
}

// With exactly the rules that enroll doctor --access-rules prints a device goes from
// nothing to available, and those with GET are enough to plan.
func TestAccessRulesSufficeLab(t *testing.T) {
	k := realIdentity(t)
	l := k.device()
	k.connect(l, ironic.AccessRules())
	p := l.plan()
	if errs := p.Errors(); len(errs) > 0 {
		t.Fatal(errs[0].Fault, errs[0].Fault.EvidenceLines())
	}
	if f, _ := l.walk(p); f != nil {
		t.Fatal(f, f.EvidenceLines())
	}
	var reading []ironic.AccessRule
	for _, r := range ironic.AccessRules() {
		if r.Method == http.MethodGet {
			reading = append(reading, r)
		}
	}
	k.connect(l, reading)
	if p := l.plan(); len(p.Errors()) > 0 || len(p.Steps) > 0 {
		t.Errorf("then: %v, %v", shown(p), p.Diagnostics)
	}
	if n := l.client.Ownership(t.Context(), l.scope)[l.name()]; n.State != plan.StateAvailable {
		t.Errorf("%+v", n)
	}
}

// A credential that lacks one rule goes as far as it gets and fails with the name of
// that rule; the next credential goes on from there. The rows stand in the order in
// which a walk needs them.
func TestOneAccessRuleIsMissingLab(t *testing.T) {
	k := realIdentity(t)
	l := k.device()
	l.scope.Parameters.ClearMaintenance = true
	l.scope.Parameters.MaxAttempts = 1
	node := "/v1/nodes/" + l.name()
	without := func(missing string) (out []ironic.AccessRule) {
		for _, r := range ironic.AccessRules() {
			if r.Method+" "+r.Path != missing {
				out = append(out, r)
			}
		}
		return out
	}
	// goOn plans and applies, and gives the first fault.
	goOn := func() *plan.Fault {
		p := l.plan()
		if errs := p.Errors(); len(errs) > 0 {
			return errs[0].Fault
		}
		f, _ := l.walk(p)
		return f
	}
	tested := map[string]bool{}
	for _, row := range []struct {
		missing string
		before  func() // what somebody does to the node first
		ask     func() *plan.Fault
	}{
		{missing: "GET /v1/nodes/*"},
		{missing: "GET /v1/nodes"},
		{missing: "GET /v1/ports"},
		{missing: "GET /v1/portgroups"},
		{missing: "POST /v1/nodes"},
		{missing: "POST /v1/portgroups"},
		{missing: "POST /v1/ports"},
		{missing: "PATCH /v1/ports/*", before: func() {
			k.connect(l, ironic.AccessRules())
			for _, s := range l.plan().Steps {
				if s.Address.Kind == "port" {
					if f, _ := l.patient(s); f != nil {
						t.Fatal(f)
					}
				}
			}
			ports, _ := k.change(http.MethodGet, "/v1/ports?node="+l.name(), nil)["ports"].([]any)
			port, _ := ports[0].(map[string]any)
			k.change(http.MethodPatch, fmt.Sprint("/v1/ports/", port["uuid"]), []map[string]any{{"op": "replace", "path": "/local_link_connection", "value": map[string]any{}}})
		}},
		{missing: "PATCH /v1/nodes/*", before: func() {
			k.change(http.MethodPatch, node, []map[string]any{{"op": "remove", "path": "/extra/enroll"}})
		}},
		{missing: "PUT /v1/nodes/*/states/provision"},
		{missing: "PUT /v1/nodes/*/traits/*"},
		{missing: "PUT /v1/nodes/*/maintenance", before: func() {
			// A step that nobody knows fails at once, without a ramdisk.
			clean := map[string]any{"target": "clean", "clean_steps": []any{map[string]any{"interface": "bios", "step": "nosuch"}}}
			k.change(http.MethodPut, node+"/states/provision", clean)
			for range 300 {
				n := k.change(http.MethodGet, node+"?fields=provision_state,reservation", nil)
				if n["provision_state"] == "clean failed" && n["reservation"] == nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Fatal("cleaning did not fail")
		}, ask: func() *plan.Fault {
			address := l.scope.Targets[0].Address("ironic", "provision", "manage")
			return l.client.Restore(t.Context(), l.scope, plan.Obligation{Address: address, Memo: map[string]string{"reason": "a test"}}).Fault
		}},
		{missing: "PUT /v1/nodes/*/states/raid"},
		{missing: "DELETE /v1/nodes/*/maintenance", before: func() {
			k.change(http.MethodPut, node+"/maintenance", map[string]any{"reason": "a test"})
		}},
		{missing: "GET /v1/nodes/*/inventory"},
		{missing: "PUT /v1/nodes/*/states/power", before: func() {
			k.change(http.MethodPut, node+"/states/power", map[string]any{"target": "power off"})
		}},
	} {
		tested[row.missing] = true
		if row.before != nil {
			row.before()
		}
		k.connect(l, without(row.missing))
		if row.ask == nil {
			row.ask = goOn
		}
		f := row.ask()
		if f == nil || f.Code != plan.CodeIronicDenied || f.Evidence["access rule"] != row.missing || !strings.Contains(f.WayOut(), "--access-rules") {
			t.Fatalf("without %s: %v", row.missing, f)
		}
	}
	k.connect(l, ironic.AccessRules())
	if f := goOn(); f != nil {
		t.Error(f)
	}
	// It is asked only to add to another fault, which stays the one that is told.
	const history = "GET /v1/nodes/*/history"
	tested[history] = true
	for missing, want := range map[string]int{history: http.StatusUnauthorized, "": http.StatusOK} {
		if status, answer, err := k.login(without(missing)).send(t.Context(), "1.82", http.MethodGet, node+"/history", nil); err != nil || status != want {
			t.Errorf("without %q: %d %s %v", missing, status, answer, err)
		}
	}
	for _, r := range ironic.AccessRules() {
		if !tested[r.Method+" "+r.Path] {
			t.Errorf("no row for %s %s", r.Method, r.Path)
		}
	}
}
