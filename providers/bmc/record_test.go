package bmc_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"encoding/pem"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/bmc/recording"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// record walks the first BMC of a world and gives the file.
func record(t *testing.T, w *world, limits bmc.RecordLimits) (*recording.Recording, []byte) {
	t.Helper()
	rec, fault := w.client.Record(t.Context(), w.scope.Targets[0], limits)
	if fault != nil {
		t.Fatal(faultText(fault))
	}
	raw, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	noSecret(t, "the recording", string(raw))
	return rec, raw
}

// values is what a reading found, in a form to compare.
func values(w *world, snap plan.Snapshot) string {
	var out []string
	for _, r := range resources(w) {
		live := snap.Get(r.Address)
		line := r.Address.Local() + " " + string(live.Presence)
		if live.Fault != nil {
			line += " " + string(live.Fault.Code)
		}
		out = append(out, line+" "+string(plan.ToJSON(live.Value)))
	}
	return strings.Join(out, "\n")
}

// A recording of a BMC is served as the BMC was: enroll reads the same of it, with
// the names that the recording has put in the place of others. It has no secret
// and no name of the machine, and is the same file each time.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			w := bmcOf(t, vendor, func(m *bmctest.Machine) {
				m.Serial, m.Hostname, m.NTPEnabled, m.NTPServers = "CNFCP7700123", "bmc-r17-u04", true, []string{"clock-7.corp.example.com", "10.77.3.4"}
				m.NICs[0].MAC, m.NICs[1].MAC = plan.MAC{0xb8, 0xce, 0xf6, 0x11, 0x22, 0x33}, plan.MAC{0xb8, 0xce, 0xf6, 0x11, 0x22, 0x34}
			})
			target := w.scope.Targets[0]
			target.Intent.Serial, target.Intent.Frontend[0].MAC = "CNFCP7700123", plan.MAC{0xb8, 0xce, 0xf6, 0x11, 0x22, 0x33}
			if tc, ok := biosCases[vendor]; ok {
				w.scope.Site.BMC.BIOS = []plan.BIOSSettings{{Class: "EXAMPLEMODEL1", Attributes: tc.want}}
				target.Intent.Manufacturer, target.Intent.Model = "Example", "Model 1"
				w.connect()
			}
			want := values(w, w.read())
			w.close()
			w.connect()
			rec, raw := record(t, w, bmc.RecordLimits{})
			w.close()
			if rec.Family != vendor || rec.Stopped != "" || len(rec.Left) != 0 || len(rec.Answers) < 12 {
				t.Errorf("family %s, stopped %q, left %q, %d answers", rec.Family, rec.Stopped, rec.Left, len(rec.Answers))
			}
			if n := mutating(w); n != 0 {
				t.Errorf("%d writes", n)
			}
			for _, name := range []string{"CNFCP7700123", "bmc-r17-u04", "clock-7", "corp.example.com", "10.77.3.4", "b8:ce:f6", "B8:CE:F6", "B8CEF6", "b8cef6"} {
				if strings.Contains(string(raw), name) {
					t.Errorf("the recording holds %s", name)
				}
			}
			w.connect()
			if _, again := record(t, w, bmc.RecordLimits{}); !bytes.Equal(raw, again) {
				t.Error("a second recording of the same BMC differs")
			}
			w.close()

			read, err := recording.Decode(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			r := newWorld(t, bmctest.Machine{User: "root", Password: password, Recording: read})
			r.scope.Site.BMC, r.scope.Site.ConfigureDHCP, r.scope.Site.DHCP = w.scope.Site.BMC, true, w.scope.Site.DHCP
			r.scope.Site.BMC.CAFile = caOf(t, r.fleet)
			other := *target
			intent := *target.Intent
			other.Intent, other.Site = &intent, r.scope.Site
			intent.Serial, intent.Ironic.RedfishAddress = read.Serial(), r.bmcs[0].URL
			mac, err := plan.ParseMAC(read.MACs()[0])
			if err != nil {
				t.Fatal(err)
			}
			intent.Frontend = []plan.FrontendNIC{{Name: "eth0", MAC: mac}}
			r.scope.Targets = []*plan.Target{&other}
			r.connect()
			got := values(r, r.read())
			for from, to := range rec.Replaced() {
				if a, err := plan.ParseMAC(from); err == nil {
					b, err := plan.ParseMAC(to)
					if err != nil {
						t.Fatal(err)
					}
					want = strings.ReplaceAll(want, a.String(), b.String())
					want = strings.ReplaceAll(want, strings.ToUpper(a.String()), strings.ToUpper(b.String()))
					from, to = strings.ToUpper(from), strings.ToUpper(to)
				}
				if len(from) > 3 {
					want = strings.ReplaceAll(want, from, to)
				}
			}
			if got != want {
				t.Errorf("replayed:\n%s\nwant:\n%s", got, want)
			}
			// A change is refused and says why.
			for _, s := range r.build(r.read()).Steps {
				if s.Address.Kind != "ntp" && s.Address.Kind != "hostname" {
					continue
				}
				if res := r.apply(s); res.Outcome != plan.OutcomeFailed || res.Fault.Code != plan.CodeBMCUnsupported || !strings.Contains(faultText(res.Fault), "recording") {
					t.Errorf("%s: %s %s", s.Address, res.Outcome, faultText(res.Fault))
				}
			}
			r.close()
		})
	}
}

// caOf writes the certificate of a fleet.
func caOf(t *testing.T, fleet *bmctest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, fleet.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A fault at any exchange of a walk ends it with a recording that says what it
// lacks, or with a fault; no session is left and nothing is written.
func TestFaultsWhileRecording(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine(bmctest.XCC))
	total := exchanges(t, w, func() { record(t, w, bmc.RecordLimits{}) })
	for _, kind := range []exchange.Kind{exchange.Reset, exchange.Status, exchange.HalfBody, exchange.LostReply, exchange.Garbage} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, machine(bmctest.XCC))
			for at := 1; at <= total; at += 3 {
				w.fleet.Recorder().Reset()
				w.fleet.Recorder().Inject(injected(kind, at))
				rec, fault := w.client.Record(t.Context(), w.scope.Targets[0], bmc.RecordLimits{})
				if (rec == nil) == (fault == nil) {
					t.Fatalf("at %d: %v %s", at, rec, faultText(fault))
				}
				if fault != nil {
					noSecret(t, "fault", faultText(fault))
				} else if raw, err := rec.Encode(); err != nil {
					t.Error(err)
				} else {
					noSecret(t, "recording", string(raw))
				}
				w.close()
				if n := mutating(w); n != 0 {
					t.Errorf("at %d: %d writes", at, n)
				}
				w.connect()
			}
		})
	}
}

// A walk that is interrupted gives no recording and leaves no session.
func TestRecordInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine(bmctest.Generic))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rec, fault := w.client.Record(ctx, w.scope.Targets[0], bmc.RecordLimits{}); rec != nil || fault == nil || fault.Code != plan.CodeInterrupted {
		t.Errorf("%v %s", rec, faultText(fault))
	}
	w.close()
}

func TestRecordRefused(t *testing.T) {
	t.Parallel()
	for _, vendor := range makers {
		w := newWorld(t, machine(vendor))
		w.passwords["gpu-001"] = "wrong"
		if _, fault := w.client.Record(t.Context(), w.scope.Targets[0], bmc.RecordLimits{}); fault == nil || fault.Code != plan.CodeBMCCredential {
			t.Errorf("%s: %s", vendor, faultText(fault))
		}
		if n := w.bmcs[0].FailedLogins(); n != 1 {
			t.Errorf("%s: %d logins failed", vendor, n)
		}
		w.close()
	}
}

// hostile serves a tree under a login, and counts.
type hostile struct {
	requests, open, most atomic.Int64
	deleted              atomic.Bool
	answer               func(path string, w http.ResponseWriter, r *http.Request)
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Add(1)
	if now := h.open.Add(1); now > h.most.Load() {
		h.most.Store(now)
	}
	defer h.open.Add(-1)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/redfish/v1/SessionService/Sessions":
		w.Header().Set("X-Auth-Token", "t0k3n-of-this-session")
		w.Header().Set("Location", "/redfish/v1/SessionService/Sessions/1")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("{}"))
	case r.Method == http.MethodDelete && r.URL.Path == "/redfish/v1/SessionService/Sessions/1":
		h.deleted.Store(true)
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodGet:
		http.Error(w, "a walk sends GETs alone", http.StatusTeapot)
	case strings.TrimSuffix(r.URL.Path, "/") == "/redfish/v1":
		_, _ = w.Write([]byte(`{"RedfishVersion":"1.6.0","Vendor":"ACME","Systems":{"@odata.id":"/redfish/v1/Systems"},"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}}}`))
	default:
		h.answer(strings.TrimSuffix(r.URL.Path, "/"), w, r)
	}
}

// A BMC that means ill costs bounded time, memory and requests, leads nowhere else
// and puts no secret into the file.
func TestRecordHostile(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the walk left the BMC") }))
	defer elsewhere.Close()
	limits := bmc.RecordLimits{Answers: 60, Bytes: 1 << 20, Pages: 5}
	for _, tc := range []struct {
		name   string
		answer func(path string, w http.ResponseWriter, r *http.Request)
		check  func(t *testing.T, rec *recording.Recording, file string)
	}{
		{"links to other hosts and out of the service", func(_ string, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"Members":[{"@odata.id":"%s/redfish/v1/Systems/1"},{"@odata.id":"//example.org/redfish/v1/x"},{"@odata.id":"/redfish/v1/../../etc/passwd"},{"@odata.id":"file:///etc/passwd"},{"@odata.id":"/cgi/reboot"},{"@odata.id":"/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"},{"@odata.id":"/redfish/v1/x?do=reset"},{"@odata.id":7},{"@odata.id":"%%zz"}]}`, elsewhere.URL)
		}, func(t *testing.T, rec *recording.Recording, _ string) {
			for _, a := range rec.Answers {
				if !strings.HasPrefix(a.URI, "/redfish/v1") || strings.Contains(a.URI, "etc") {
					t.Errorf("%s was recorded", a.URI)
				}
			}
		}},
		{"a redirect to another host", func(_ string, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL+"/redfish/v1/Systems")
			w.WriteHeader(http.StatusFound)
		}, func(t *testing.T, rec *recording.Recording, file string) {
			if strings.Contains(file, "127.0.0.1:") || len(rec.Answers) > 4 {
				t.Errorf("%d answers", len(rec.Answers))
			}
		}},
		{"a tree without end", func(path string, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"A":{"@odata.id":"%s/a"},"B":{"@odata.id":"%s/b"},"Back":{"@odata.id":"/redfish/v1/Systems"}}`, path, path)
		}, func(t *testing.T, rec *recording.Recording, _ string) {
			if rec.Stopped == "" || len(rec.Answers) > 60 {
				t.Errorf("%q %d", rec.Stopped, len(rec.Answers))
			}
		}},
		{"a list without end", func(_ string, w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.URL.Query().Get("$skip"))
			fmt.Fprintf(w, `{"Members":[],"Members@odata.nextLink":"/redfish/v1/Systems?$skip=%d"}`, n+1)
		}, func(t *testing.T, rec *recording.Recording, _ string) {
			if len(rec.Left) != 1 || len(rec.Answers) > 12 {
				t.Errorf("%q %d", rec.Left, len(rec.Answers))
			}
		}},
		{"a gigabyte", func(path string, w http.ResponseWriter, _ *http.Request) {
			if path == "/redfish/v1/Systems" {
				_, _ = w.Write([]byte(`{"Members":[{"@odata.id":"/redfish/v1/Systems/1"},{"@odata.id":"/redfish/v1/Systems/2"}]}`))
				return
			}
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 1 << 10 {
				if _, err := w.Write(chunk); err != nil {
					return // the client has had enough
				}
			}
		}, func(t *testing.T, _ *recording.Recording, file string) {
			if len(file) > 1<<20 {
				t.Errorf("%d bytes", len(file))
			}
		}},
		{"many large answers", func(path string, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"A":{"@odata.id":"%s/a"},"Text":"%s"}`, path, strings.Repeat("x ", 200<<10))
		}, func(t *testing.T, rec *recording.Recording, file string) {
			if rec.Stopped == "" || len(file) > 3<<20 {
				t.Errorf("%q %d bytes", rec.Stopped, len(file))
			}
		}},
		{"a page", func(_ string, w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>root of rack 17, password hunter2</html>"))
		}, func(t *testing.T, rec *recording.Recording, file string) {
			if a, ok := rec.Find("/redfish/v1/Systems"); !ok || a.Page == 0 || a.Body != nil || strings.Contains(file, "rack 17") {
				t.Errorf("%+v", a)
			}
		}},
		{"deep nesting", func(_ string, w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)))
		}, func(*testing.T, *recording.Recording, string) {}},
		{"secrets in odd places", func(path string, w http.ResponseWriter, r *http.Request) {
			raw := `{"Description":"login with s3cret\"&'<pw please","Token":"` + r.Header.Get("X-Auth-Token") + `","Echo":"` + r.Header.Get("X-Auth-Token") + `",
				"Kernel":"console=ttyS0 password=Hunter2x ro","Url":"https://svc:Hunter2x@images.corp.example.com/x","Oem":{"ACME":{"Users":{"Password":"Hunter2x","Pin":7},"Credentials":{"Extra":["Hunter2x",[{"Deep":"Hunter2x"}]]}}},
				"AgentCommunity":"Hunter2x","SHA256Password":"Hunter2x","IPMIKey":"Hunter2x","Note":"$6$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyzHunter2x","Blob":"QWxhZGRpbjpPcGVuU2VzYW1lQWxhZGRpbjpPcGVuU2VzYW1l12345678Hunter2x",
				"Jwt":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.Hunter2x","Pem":"-----BEGIN RSA PRIVATE KEY-----\nHunter2x","PasswordStatus":"Hunter2x","Password":123456789}`
			_, _ = w.Write([]byte(raw))
		}, func(t *testing.T, _ *recording.Recording, file string) {
			for _, secret := range []string{"s3cret", "t0k3n", "Hunter2x", "123456789,", "corp.example"} {
				if strings.Contains(file, secret) {
					t.Errorf("the recording holds %s:\n%s", secret, file)
				}
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := &hostile{answer: tc.answer}
			server := httptest.NewTLSServer(h)
			defer server.Close()
			w := newWorld(t)
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			w.scope.Site.BMC.CAFile, w.scope.Site.BMC.Timeout = ca, 20*time.Second
			w.scope.Targets = []*plan.Target{{Site: w.scope.Site, Intent: &plan.Intent{Name: "gpu-001", Ironic: plan.IronicContext{RedfishAddress: server.URL}}}}
			w.connect()
			rec, raw := record(t, w, limits)
			tc.check(t, rec, string(raw))
			w.close()
			// An answer that was broken off may still be written when the next is asked for.
			if n := h.requests.Load(); n > 100 || h.most.Load() > 1 && tc.name != "a gigabyte" || !h.deleted.Load() {
				t.Errorf("%d requests, %d at once, session deleted: %t", n, h.most.Load(), h.deleted.Load())
			}
			if _, err := recording.Decode(bytes.NewReader(raw)); err != nil {
				t.Error(err)
			}
		})
	}
}
