package bmctest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// service is a Redfish service under the table, simulated or real.
type service struct {
	base, user, password string
	caFile               string   // "" where the service has no TLS
	system, manager      string   // paths
	parts                []string // what the service has: sessions, settings, boot; writes: a PATCH without conditions; if-match: none without
	paths                map[string]string
	foreignOrder         bool // it has boot options, and the provider does not keep their order
}

// rows are exchanges and what must be observed. A row runs where the service
// has the part that it needs.
var rows = []struct {
	name, needs  string
	method, path string
	login        string // "", basic, wrong, session, ended, bad token
	header       map[string]string
	body         string
	status       []int
	message      string // short id of a message that must be there
	with         string // property that must be there, NAME/NAME
}{
	{name: "the root is open", method: "GET", path: "/redfish/v1/", status: []int{200}, with: "RedfishVersion"},
	{name: "the root without a slash", method: "GET", path: "/redfish/v1", status: []int{200}, with: "Systems/@odata.id"},
	{name: "systems want a login", method: "GET", path: "/redfish/v1/Systems", status: []int{401}},
	{name: "a wrong password", method: "GET", path: "/redfish/v1/Systems", login: "wrong", status: []int{401}},
	{name: "systems", method: "GET", path: "/redfish/v1/Systems", login: "basic", status: []int{200}, with: "Members"},
	{name: "the system", method: "GET", path: "{system}", login: "basic", status: []int{200}, with: "PowerState"},
	{name: "the system leads to its manager", method: "GET", path: "{system}", login: "basic", status: []int{200}, with: "Links/ManagedBy"},
	{name: "the manager", method: "GET", path: "{manager}", login: "basic", status: []int{200}, with: "ManagerType"},
	{name: "nothing there", method: "GET", path: "{system}/Nothing", login: "basic", status: []int{404}},
	{name: "no such system", method: "GET", path: "/redfish/v1/Systems/nothing", login: "basic", status: []int{404}},
	{name: "a method that is none", method: "DELETE", path: "/redfish/v1/Systems", login: "basic", status: []int{405}},
	{name: "reset of an unknown type", method: "POST", path: "{system}/Actions/ComputerSystem.Reset", login: "basic", body: `{"ResetType":"Explode"}`, status: []int{400, 501}}, // sushy-tools: 501
	{name: "the host's NICs", method: "GET", path: "{system}/EthernetInterfaces", login: "basic", status: []int{200}, with: "Members"},

	{name: "no boot options", needs: "no boot", method: "GET", path: "{system}/BootOptions", login: "basic", status: []int{404}},
	{name: "no network protocol", needs: "no settings", method: "GET", path: "{manager}/NetworkProtocol", login: "basic", status: []int{404}},
	{name: "no sessions", needs: "no sessions", method: "POST", path: "/redfish/v1/SessionService/Sessions", login: "basic", body: `{"UserName":"{user}","Password":"{password}"}`, status: []int{404}},

	{name: "a session", needs: "sessions", method: "GET", path: "{system}", login: "session", status: []int{200}},
	{name: "an ended session", needs: "sessions", method: "GET", path: "{system}", login: "ended", status: []int{401}, message: "NoValidSession"},
	{name: "a token that is none", needs: "sessions", method: "GET", path: "{system}", login: "bad token", status: []int{401}, message: "NoValidSession"},
	{name: "a login with a wrong password", needs: "sessions", method: "POST", path: "/redfish/v1/SessionService/Sessions", body: `{"UserName":"{user}","Password":"wrong"}`, status: []int{401}},
	{name: "a login without a password", needs: "sessions", method: "POST", path: "/redfish/v1/SessionService/Sessions", body: `{"UserName":"{user}"}`, status: []int{400}, message: "PropertyMissing"},
	{name: "a login with an unknown property", needs: "sessions", method: "POST", path: "/redfish/v1/SessionService/Sessions", body: `{"UserName":"{user}","Password":"{password}","X":1}`, status: []int{400}, message: "PropertyUnknown"},

	{name: "the boot options", needs: "boot", method: "GET", path: "{system}/BootOptions", login: "session", status: []int{200}, with: "Members"},
	{name: "a host name", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", body: `{hostname body}`, status: []int{200, 204}},
	{name: "a host name that is none", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", body: `{bad hostname body}`, status: []int{400}, message: "PropertyValueFormatError"},
	{name: "an unknown property", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", body: `{"Surprise":1}`, status: []int{400}, message: "PropertyUnknown"},
	{name: "a read-only property", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", body: `{"Id":"x"}`, status: []int{400}, message: "PropertyNotWritable"},
	{name: "a body that is no JSON", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", body: `{"HostName":`, status: []int{400}, message: "MalformedJSON"},
	{name: "an empty body", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", body: `{}`, status: []int{400}, message: "EmptyJSON"},
	{name: "an old ETag", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", header: map[string]string{"If-Match": `"0"`}, body: `{hostname body}`, status: []int{412}, message: "PreconditionFailed"},
	{name: "any ETag", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", header: map[string]string{"If-Match": "*"}, body: `{hostname body}`, status: []int{200, 204}},
	{name: "another content type", needs: "writes", method: "PATCH", path: "{hostname}", login: "session", header: map[string]string{"Content-Type": "text/plain"}, body: `{hostname body}`, status: []int{415}},
	{name: "a PATCH of what takes none", needs: "writes", method: "PATCH", path: "/redfish/v1/Managers", login: "session", body: `{"Id":"x"}`, status: []int{405}},
	{name: "a PATCH without the wanted ETag", needs: "if-match", method: "PATCH", path: "{hostname}", login: "session", body: `{hostname body}`, status: []int{428}},
}

func (s service) has(part string) bool {
	if absent, ok := strings.CutPrefix(part, "no "); ok {
		return !slices.Contains(s.parts, absent)
	}
	return part == "" || slices.Contains(s.parts, part)
}

func (s service) fill(text string) string {
	pairs := []string{"{system}", s.system, "{manager}", s.manager, "{user}", s.user, "{password}", s.password}
	for k, v := range s.paths {
		pairs = append(pairs, "{"+k+"}", v)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func conform(t *testing.T, s service) {
	client := s.client(t)
	for _, row := range rows {
		if !s.has(row.needs) {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			req := s.request(t, row.method, s.fill(row.path), s.fill(row.body))
			end := s.login(t, client, req, row.login)
			defer end()
			for k, v := range row.header {
				req.Header.Set(k, v)
			}
			status, body := do(t, client, req)
			if !slices.Contains(row.status, status) {
				t.Fatalf("status %d, want %v: %s", status, row.status, body)
			}
			if row.message != "" && !strings.Contains(string(body), "."+row.message+`"`) {
				t.Errorf("no message %s: %s", row.message, body)
			}
			if row.with != "" && !hasProperty(body, strings.Split(row.with, "/")) {
				t.Errorf("no %s: %s", row.with, body)
			}
		})
	}
	t.Run("what the provider reads", func(t *testing.T) { s.provider(t) })
}

func (s service) client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	if s.caFile != "" {
		pem, err := os.ReadFile(s.caFile)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func (s service) request(t *testing.T, method, path, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, s.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// login puts the wanted kind of login on a request and gives how it ends.
func (s service) login(t *testing.T, client *http.Client, req *http.Request, kind string) func() {
	t.Helper()
	switch kind {
	case "basic":
		req.SetBasicAuth(s.user, s.password)
	case "wrong":
		req.SetBasicAuth(s.user, "wrong")
	case "bad token":
		req.Header.Set("X-Auth-Token", "0")
	case "session", "ended":
		post := s.request(t, "POST", "/redfish/v1/SessionService/Sessions", s.fill(`{"UserName":"{user}","Password":"{password}"}`))
		resp, err := client.Do(post)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		token, location := resp.Header.Get("X-Auth-Token"), resp.Header.Get("Location")
		if resp.StatusCode != http.StatusCreated || token == "" || location == "" {
			t.Fatalf("login: status %d, Location %q", resp.StatusCode, location)
		}
		end := func() {
			del := s.request(t, "DELETE", location, "")
			del.Header.Set("X-Auth-Token", token)
			if status, body := do(t, client, del); status != http.StatusOK && status != http.StatusNoContent {
				t.Errorf("logout: status %d %s", status, body)
			}
		}
		req.Header.Set("X-Auth-Token", token)
		if kind == "ended" {
			end()
			return func() {}
		}
		return end
	}
	return func() {}
}

func do(t *testing.T, client *http.Client, req *http.Request) (int, []byte) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func hasProperty(body []byte, keys []string) bool {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		if v, ok = m[k]; !ok {
			return false
		}
	}
	return true
}

type fixed struct{ user, password string }

func (f fixed) Credential(context.Context, string) (string, plan.Secret, error) {
	return f.user, plan.NewSecret(f.password, ""), nil
}
func (fixed) Ref(string) plan.SecretRef { return plan.SecretRef{Item: "bmc", Field: "password"} }

// provider reads with the real provider: what the service has is Present, what
// it lacks Unsupported, and a wrong password is refused as such.
func (s service) provider(t *testing.T) {
	site := &plan.Site{Name: "lab", ConfigureBMC: true, BMC: &plan.BMCSettings{CAFile: s.caFile, Timeout: 10 * time.Second, RestrictBoot: true}}
	scope := &plan.Scope{Site: site, Targets: []*plan.Target{{
		Site: site,
		Intent: &plan.Intent{
			Name: "machine", OOB: netip.MustParseAddr("127.0.0.1"), Ironic: plan.IronicContext{RedfishAddress: s.base + s.system},
			Frontend: []plan.FrontendNIC{{Name: "eth0", MAC: plan.MAC{2, 0, 0x5e, 0, 1, 1}}},
		},
		Settings: plan.Settings{Hostname: "machine-bmc", NTPServers: []string{"ntp1.example.org"}},
	}}}
	wanted := map[string]bool{"credential": true, "hostname": s.has("settings"), "ntp": s.has("settings"), "boot_order": s.has("boot") && !s.foreignOrder, "link": true, "reset": true}
	for _, password := range []string{s.password, "wrong"} {
		client, err := bmc.New(*site.BMC, fixed{s.user, password}, bmc.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		for a, live := range client.Read(t.Context(), scope, plan.Desired(scope, bmc.Kinds())) {
			want := plan.Unsupported
			switch {
			case password == "wrong":
				want = plan.Unreadable
				if live.Fault == nil || live.Fault.Code != plan.CodeBMCCredential {
					t.Errorf("%s with a wrong password: %v", a, live.Fault)
				}
			case wanted[a.Kind]:
				want = plan.Present
			}
			if live.Presence != want {
				t.Errorf("%s: %s %v, want %s", a, live.Presence, live.Fault, want)
			}
		}
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestConformance(t *testing.T) {
	for name, tc := range map[string]struct {
		vendor  string
		profile bmctest.Profile
		parts   []string
	}{
		"generic":          {bmctest.Generic, bmctest.Profile{LockAfter: -1}, []string{"sessions", "settings", "writes", "boot"}},
		"generic, 428":     {bmctest.Generic, bmctest.Profile{LockAfter: -1, RequireIfMatch: true}, []string{"sessions", "settings", "if-match", "boot"}},
		"idrac":            {bmctest.IDRAC, bmctest.Profile{LockAfter: -1}, []string{"sessions", "settings", "writes", "boot"}},
		"xcc":              {bmctest.XCC, bmctest.Profile{LockAfter: -1}, []string{"sessions", "settings", "boot"}},
		"ami":              {bmctest.AMI, bmctest.Profile{LockAfter: -1}, []string{"sessions", "settings", "if-match", "boot"}},
		"supermicro":       {bmctest.Supermicro, bmctest.Profile{LockAfter: -1}, []string{"sessions", "settings", "boot"}},
		"like sushy-tools": {bmctest.Generic, bmctest.Profile{LockAfter: -1, NoSessions: true, NoBootOptions: true, NoHostname: true, NoNetworkProtocol: true, NoVendor: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := bmctest.New(bmctest.Options{})
			defer fleet.Close()
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, fleet.CA(), 0o600); err != nil {
				t.Fatal(err)
			}
			b := fleet.Add(bmctest.Machine{Name: "m", Vendor: tc.vendor, Serial: "S1", User: "root", Password: "calvin", NICs: []bmctest.NIC{{MAC: plan.MAC{2, 0, 0x5e, 0, 1, 1}}}, Profile: tc.profile})
			s := service{base: b.URL, user: "root", password: "calvin", caFile: ca, parts: tc.parts,
				system: "/redfish/v1/Systems/system", manager: "/redfish/v1/Managers/bmc",
				paths: map[string]string{
					"hostname": "/redfish/v1/Managers/bmc/EthernetInterfaces/eth0", "hostname body": `{"HostName":"name-1"}`, "bad hostname body": `{"HostName":"not a name"}`,
				}}
			if id, ok := map[string]string{bmctest.XCC: "1", bmctest.AMI: "Self", bmctest.Supermicro: "1"}[tc.vendor]; ok {
				s.system, s.manager = "/redfish/v1/Systems/"+id, "/redfish/v1/Managers/"+id
				s.paths["hostname"] = s.manager + "/EthernetInterfaces/eth0"
			}
			s.foreignOrder = tc.vendor == bmctest.Supermicro
			if tc.vendor == bmctest.IDRAC {
				s.system, s.manager = "/redfish/v1/Systems/System.Embedded.1", "/redfish/v1/Managers/iDRAC.Embedded.1"
				s.paths = map[string]string{
					"hostname":          "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1",
					"hostname body":     `{"Attributes":{"NIC.1.DNSRacName":"name-1"}}`,
					"bad hostname body": `{"Attributes":{"NIC.1.DNSRacName":"not a name"}}`,
				}
			}
			conform(t, s)
			if slices.Contains(tc.parts, "writes") && b.Hostname() != "name-1" {
				t.Errorf("host name %q", b.Hostname())
			}
			if n := b.Sessions(); n != 0 {
				t.Errorf("%d sessions left", n)
			}
		})
	}
}

// Behaviour that the table cannot show on a service of others: limits, ends and
// lockouts with a clock of the test's own.
func TestLimits(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fleet := bmctest.New(bmctest.Options{Now: func() time.Time { return now }})
	defer fleet.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, fleet.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	b := fleet.Add(bmctest.Machine{Name: "m", Serial: "S1", User: "root", Password: "calvin", Profile: bmctest.Profile{MaxSessions: 2}})
	s := service{base: b.URL, user: "root", password: "calvin", caFile: ca}
	client := s.client(t)
	login := func(password string) int {
		status, _ := do(t, client, s.request(t, "POST", "/redfish/v1/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`))
		return status
	}
	for i, want := range []int{201, 201, 503} {
		if got := login("calvin"); got != want {
			t.Errorf("login %d: %d, want %d", i+1, got, want)
		}
	}
	now = now.Add(6 * time.Minute) // both ended by themselves
	if n := b.Sessions(); n != 0 {
		t.Errorf("%d sessions after their idle timeout", n)
	}
	for range 5 {
		if got := login("wrong"); got != 401 {
			t.Errorf("wrong: %d", got)
		}
	}
	if got := login("calvin"); got != 401 {
		t.Errorf("locked: %d", got)
	}
	now = now.Add(2 * time.Minute)
	if got := login("calvin"); got != 201 {
		t.Errorf("after the lockout: %d", got)
	}
}

// Five hundred BMCs start and end, each at an address of its own.
func TestManyBMCs(t *testing.T) {
	fleet := bmctest.New(bmctest.Options{})
	urls := map[string]bool{}
	for i := range 500 {
		b := fleet.Add(bmctest.Machine{Name: fmt.Sprintf("m%d", i), User: "root", Password: "calvin", Unreachable: i%5 == 0})
		urls[b.URL] = true
	}
	fleet.Close()
	if len(urls) != 500 {
		t.Errorf("%d addresses", len(urls))
	}
}
