package bmc_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
)

// samples is where captured answers of real BMCs lie beside the repository.
// They may be read here and not be copied.
var samples = filepath.Join("..", "..", "..", "shared", "samples", "redfish")

// replay serves the files of a folder under their own @odata.id, collections
// with the members that there are, and 404 for the rest. It has no sessions:
// POST is 404, so that Basic is used.
func replay(t *testing.T, folder string, without ...string) *httptest.Server {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samples, folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no samples of real BMCs at %s", filepath.Join(samples, folder))
	}
	sort.Strings(files)
	resources := map[string][]byte{}
	for _, file := range files {
		skip := false
		for _, name := range without {
			skip = skip || filepath.Base(file) == name+".json"
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			ID string `json:"@odata.id"`
		}
		if skip || json.Unmarshal(raw, &head) != nil || head.ID == "" {
			continue
		}
		resources[strings.TrimSuffix(head.ID, "/")] = raw
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		if raw, ok := resources[path]; ok && r.Method == http.MethodGet {
			_, _ = w.Write(raw)
			return
		}
		var members []map[string]string
		for id := range resources {
			if filepath.Dir(id) == path {
				members = append(members, map[string]string{"@odata.id": id})
			}
		}
		if len(members) == 0 || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"@odata.id": path, "Members": members})
	}))
	t.Cleanup(server.Close)
	return server
}

func TestRealSamples(t *testing.T) {
	const unsupported, present = plan.Unsupported, plan.Present
	for _, tc := range []struct {
		folder  string
		without []string // files of the same resource by other firmware
		serial  string
		// what is read; Unsupported where the samples lack the resource
		hostname, ntp plan.Presence
		name          string
		servers       int
	}{
		{"dell-idrac", []string{"system-fw6"}, "SVCTAG1", present, present, "bmc-host-01", 0},
		{"dell-idrac", []string{"system-fw7"}, "SN00000001", present, present, "bmc-host-01", 0},
		{"lenovo-xcc", nil, "SN00000001", present, present, "bmc-host-01", 0},
		{"ami-megarac", nil, "SN00000001", present, present, "", -1},
		{"openbmc", nil, "", unsupported, unsupported, "", 0},
	} {
		t.Run(tc.folder+" without "+strings.Join(tc.without, " "), func(t *testing.T) {
			server := replay(t, tc.folder, tc.without...)
			w := newWorld(t)
			site := w.scope.Site
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			site.BMC.CAFile, site.BMC.Timeout = ca, 10*time.Second
			w.scope.Targets = []*plan.Target{{
				Site: site, Intent: &plan.Intent{Name: "gpu-001", Serial: tc.serial, Ironic: plan.IronicContext{RedfishAddress: server.URL}},
				Settings: plan.Settings{Hostname: "x", NTPServers: []string{"y"}},
			}}
			w.connect()
			snap := w.client.Read(t.Context(), w.scope, plan.Desired(w.scope, bmc.Kinds()))
			for kind, want := range map[string]plan.Presence{"credential": present, "hostname": tc.hostname, "ntp": tc.ntp} {
				if live := w.live(snap, kind); live.Presence != want {
					t.Errorf("%s: %s %s", kind, live.Presence, faultText(live.Fault))
				}
			}
			if live := w.live(snap, "hostname"); tc.name != "" && plan.Text(live.Value, "HostName") != tc.name {
				t.Errorf("host name %s", plan.ToJSON(live.Value))
			}
			if live := w.live(snap, "ntp"); live.Presence == present {
				text := string(plan.ToJSON(live.Value))
				if tc.servers == 0 && !strings.Contains(text, `"NTPServers":[]`) || strings.Contains(text, `" `) || strings.Contains(text, `""`) {
					t.Errorf("NTP %s", text)
				}
			}
			// The same BMC under a record of another machine.
			if tc.serial != "" {
				w.scope.Targets[0].Intent.Serial = "OTHER"
				w.connect()
				if live := w.live(w.client.Read(t.Context(), w.scope, plan.Desired(w.scope, bmc.Kinds())), "credential"); live.Fault == nil || live.Fault.Code != plan.CodeBMCIdentity {
					t.Errorf("another serial: %s %s", live.Presence, faultText(live.Fault))
				}
			}
			w.close()
		})
	}
}
