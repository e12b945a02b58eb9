package bmc_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
)

// tree serves made-up resources without a login and points the world at them.
// A PATCH gets the status of the given function, 404 without one.
func tree(t *testing.T, w *world, resources map[string]string, patch ...func(*http.Request) int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, ok := resources[strings.TrimSuffix(r.URL.Path, "/")]
		switch {
		case r.Method == http.MethodPatch && len(patch) == 1:
			rw.WriteHeader(patch[0](r))
		case !ok || r.Method != http.MethodGet:
			rw.WriteHeader(http.StatusNotFound)
		case strings.HasPrefix(body, "->"):
			http.Redirect(rw, r, strings.TrimPrefix(body, "->"), http.StatusTemporaryRedirect)
		case strings.HasPrefix(body, "["):
			var members []map[string]string
			for _, id := range strings.Fields(strings.Trim(body, "[]")) {
				members = append(members, map[string]string{"@odata.id": id})
			}
			_ = json.NewEncoder(rw).Encode(map[string]any{"Members": members})
		default:
			_, _ = rw.Write([]byte(body))
		}
	}))
	t.Cleanup(server.Close)
	w.scope.Targets = []*plan.Target{{
		Site: w.scope.Site, Intent: &plan.Intent{Name: "gpu-001", Serial: "S1", OOB: netip.MustParseAddr("192.0.2.9"), Ironic: plan.IronicContext{RedfishAddress: server.URL}},
		Settings: plan.Settings{Hostname: "x", NTPServers: []string{"y"}},
	}}
	w.connect()
}

const root = `{"RedfishVersion":"1.6.0","Systems":{"@odata.id":"/redfish/v1/Systems"},"Managers":{"@odata.id":"/redfish/v1/Managers"}}`

func TestChoosesSystemAndManager(t *testing.T) {
	const (
		systems  = "/redfish/v1/Systems"
		managers = "/redfish/v1/Managers"
	)
	for _, tc := range []struct {
		name      string
		resources map[string]string
		want      string // of the login: a code, or ""
		hostname  string // code or value
	}{
		{"several systems, one with the serial number", map[string]string{
			systems:          "[/redfish/v1/Systems/HGX_Baseboard_0 /redfish/v1/Systems/bogus /redfish/v1/Systems/DGX /redfish/v1/Systems/2]",
			systems + "/DGX": `{"SerialNumber":"S1","Boot":{}}`, systems + "/2": `{"SerialNumber":"S2","Boot":{}}`,
		}, "", "BMC_UNSUPPORTED"},
		{"several systems, one is a host", map[string]string{
			systems: "[/redfish/v1/Systems/a /redfish/v1/Systems/b]", systems + "/a": `{"Bios":{"@odata.id":"/x"}}`, systems + "/b": `{}`,
		}, "", "BMC_UNSUPPORTED"},
		{"several hosts", map[string]string{
			systems: "[/redfish/v1/Systems/a /redfish/v1/Systems/b]", systems + "/a": `{"Boot":{}}`, systems + "/b": `{"Boot":{}}`,
		}, "BMC_AMBIGUOUS", "BMC_AMBIGUOUS"},
		{"no system", map[string]string{systems: "[]"}, "BMC_AMBIGUOUS", "BMC_AMBIGUOUS"},
		{"no systems", map[string]string{}, "BMC_PROTOCOL", "BMC_PROTOCOL"},
		{"a redirect", map[string]string{systems: "[/redfish/v1/Systems/name]", systems + "/name": "->/redfish/v1/Systems/1", systems + "/1": `{"SerialNumber":"S1"}`}, "", "BMC_UNSUPPORTED"},
		{"a redirect elsewhere", map[string]string{systems: "[/redfish/v1/Systems/name]", systems + "/name": "->https://example.org/x"}, "BMC_PROTOCOL", "BMC_PROTOCOL"},
		{"several managers", map[string]string{
			systems: "[/redfish/v1/Systems/1]", systems + "/1": `{"SerialNumber":"S1"}`, managers: "[/redfish/v1/Managers/1 /redfish/v1/Managers/2]",
		}, "", "BMC_AMBIGUOUS"},
		{"the interface with the address", map[string]string{
			systems: "[/redfish/v1/Systems/1]", systems + "/1": `{"SerialNumber":"S1","Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]}}`,
			managers + "/1":                      `{"EthernetInterfaces":{"@odata.id":"/redfish/v1/Managers/1/EthernetInterfaces"}}`,
			managers + "/1/EthernetInterfaces":   "[/redfish/v1/Managers/1/EthernetInterfaces/0 /redfish/v1/Managers/1/EthernetInterfaces/1]",
			managers + "/1/EthernetInterfaces/0": `{"HostName":"wrong"}`,
			managers + "/1/EthernetInterfaces/1": `{"HostName":"right","IPv4Addresses":[null,{"Address":"192.0.2.9"}]}`,
		}, "", "right"},
		{"several interfaces, a name at the protocol", map[string]string{
			systems: "[/redfish/v1/Systems/1]", systems + "/1": `{"SerialNumber":"S1","Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]}}`,
			managers + "/1":                      `{"EthernetInterfaces":{"@odata.id":"/redfish/v1/Managers/1/EthernetInterfaces"},"NetworkProtocol":{"@odata.id":"/redfish/v1/Managers/1/NP"}}`,
			managers + "/1/EthernetInterfaces":   "[/redfish/v1/Managers/1/EthernetInterfaces/0 /redfish/v1/Managers/1/EthernetInterfaces/1]",
			managers + "/1/EthernetInterfaces/0": `{"HostName":"one"}`, managers + "/1/EthernetInterfaces/1": `{"HostName":"two"}`,
			managers + "/1/NP": `{"HostName":"there"}`,
		}, "", "there"},
		{"several interfaces and nothing else", map[string]string{
			systems: "[/redfish/v1/Systems/1]", systems + "/1": `{"SerialNumber":"S1","Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]}}`,
			managers + "/1":                      `{"EthernetInterfaces":{"@odata.id":"/redfish/v1/Managers/1/EthernetInterfaces"}}`,
			managers + "/1/EthernetInterfaces":   "[/redfish/v1/Managers/1/EthernetInterfaces/0 /redfish/v1/Managers/1/EthernetInterfaces/1]",
			managers + "/1/EthernetInterfaces/0": `{"HostName":"one"}`, managers + "/1/EthernetInterfaces/1": `{"HostName":"two"}`,
		}, "", "BMC_AMBIGUOUS"},
		{"a null host name", map[string]string{
			systems: "[/redfish/v1/Systems/1]", systems + "/1": `{"SerialNumber":" s1 ","Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]}}`,
			managers + "/1":                      `{"EthernetInterfaces":{"@odata.id":"/redfish/v1/Managers/1/EthernetInterfaces"},"NetworkProtocol":{"@odata.id":"/redfish/v1/Managers/1/NP"}}`,
			managers + "/1/EthernetInterfaces":   "[/redfish/v1/Managers/1/EthernetInterfaces/0]",
			managers + "/1/EthernetInterfaces/0": `{"HostName":null}`, managers + "/1/NP": `{"HostName":"there"}`,
		}, "", "there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.resources["/redfish/v1"] = root
			tree(t, w, tc.resources)
			snap := w.client.Read(t.Context(), w.scope, plan.Desired(w.scope, bmc.Kinds()))
			for kind, want := range map[string]string{"credential": tc.want, "hostname": tc.hostname} {
				live := w.live(snap, kind)
				got := plan.Text(live.Value, "HostName")
				if live.Fault != nil {
					got = string(live.Fault.Code)
				}
				if got != want {
					t.Errorf("%s: %q, want %q: %s", kind, got, want, faultText(live.Fault))
				}
			}
		})
	}
}

// What is no Redfish service is said to be none, whatever it answers.
func TestNoRedfish(t *testing.T) {
	for _, body := range []string{"{}", "<html></html>", "[]", `{"hello":"world"}`, ""} {
		w := newWorld(t)
		tree(t, w, map[string]string{"/redfish/v1": body})
		if body == "" {
			tree(t, w, map[string]string{})
		}
		live := w.live(w.client.Read(t.Context(), w.scope, plan.Desired(w.scope, bmc.Kinds())), "credential")
		if live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeBMCProtocol || live.Fault.Evidence["path"] != "/redfish/v1/" {
			t.Errorf("%q: %s %s", body, live.Presence, faultText(live.Fault))
		}
	}
}

// An entry of the boot order that has no option is shown by its reference.
func TestBootEntryWithoutOption(t *testing.T) {
	w := newWorld(t)
	tree(t, w, map[string]string{
		"/redfish/v1": root, "/redfish/v1/Systems": "[/redfish/v1/Systems/1]",
		"/redfish/v1/Systems/1":             `{"SerialNumber":"S1","Boot":{"BootOrder":["Boot0019: Ubuntu"],"BootOptions":{"@odata.id":"/redfish/v1/Systems/1/BootOptions"}}}`,
		"/redfish/v1/Systems/1/BootOptions": "[/redfish/v1/Systems/1/BootOptions/1]", "/redfish/v1/Systems/1/BootOptions/1": `{"BootOptionReference":"Boot0001"}`,
	})
	w.scope.Targets[0].Intent.Frontend = []plan.FrontendNIC{{Name: "eth0", MAC: provisioningMAC}}
	p := w.build(w.read())
	for _, d := range p.Diagnostics {
		if d.Fault.Code == plan.CodeBMCBootNIC && strings.Contains(d.Fault.Evidence["options"], "Boot0001") {
			return
		}
	}
	t.Errorf("%s %+v", steps(p), p.Diagnostics)
}
