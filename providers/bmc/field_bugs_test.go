package bmc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// fieldBug is a mistake of a comparable tool that its users reported. seen names
// the reports, as the collection of them does that may lie beside the repository.
type fieldBug struct {
	seen string
	test func(t *testing.T)
}

// A scripted BMC: what it has, and what it says to changes.
type scripted struct {
	resources map[string]string // by path; "[a b]" is a list of members
	change    func(w http.ResponseWriter, r *http.Request, body map[string]any)
	changes   []string // METHOD path of what was sent
}

const manager1 = `{"EthernetInterfaces":{"@odata.id":"/redfish/v1/Managers/1/EthernetInterfaces"},"NetworkProtocol":{"@odata.id":"/redfish/v1/Managers/1/NP"}}`

// plainBMC is a small one of the generic family, without sessions.
func plainBMC() *scripted {
	return &scripted{resources: map[string]string{
		"/redfish/v1": root, "/redfish/v1/Systems": "[/redfish/v1/Systems/1]", "/redfish/v1/Managers/1": manager1,
		"/redfish/v1/Systems/1":                       `{"SerialNumber":"S1","PowerState":"On","EthernetInterfaces":{"@odata.id":"/redfish/v1/Systems/1/EthernetInterfaces"},"Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]}}`,
		"/redfish/v1/Systems/1/EthernetInterfaces":    "[/redfish/v1/Systems/1/EthernetInterfaces/a]",
		"/redfish/v1/Systems/1/EthernetInterfaces/a":  `{"Id":"a","MACAddress":"02:00:5e:00:01:01","LinkStatus":"LinkUp","SpeedMbps":1000}`,
		"/redfish/v1/Managers/1/EthernetInterfaces":   "[/redfish/v1/Managers/1/EthernetInterfaces/1]",
		"/redfish/v1/Managers/1/EthernetInterfaces/1": `{"Id":"1","HostName":"old","DHCPv4":{"DHCPEnabled":true}}`,
		"/redfish/v1/Managers/1/NP":                   `{"HostName":"old","NTP":{"ProtocolEnabled":false,"NTPServers":[]}}`,
	}}
}

// serve starts a scripted BMC and points the world at it.
func (s *scripted) serve(t *testing.T, w *world) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		body, ok := s.resources[path]
		switch {
		case r.Method != http.MethodGet && s.change != nil && r.URL.Path != "/redfish/v1/SessionService/Sessions":
			s.changes = append(s.changes, r.Method+" "+path)
			raw, _ := io.ReadAll(r.Body)
			var sent map[string]any
			_ = json.Unmarshal(raw, &sent)
			s.change(rw, r, sent)
		case !ok || r.Method != http.MethodGet:
			rw.WriteHeader(http.StatusNotFound)
		case strings.HasPrefix(body, "<"):
			rw.WriteHeader(http.StatusGatewayTimeout)
			_, _ = rw.Write([]byte(body))
		case strings.HasPrefix(body, "["):
			var members []map[string]string
			for _, id := range strings.Fields(strings.Trim(body, "[]")) {
				members = append(members, map[string]string{"@odata.id": id})
			}
			_ = json.NewEncoder(rw).Encode(map[string]any{"Members": members})
		default:
			var head struct {
				ETag *string `json:"etag-header"`
			}
			if json.Unmarshal([]byte(body), &head) == nil && head.ETag != nil {
				rw.Header().Set("ETag", *head.ETag)
			}
			_, _ = rw.Write([]byte(body))
		}
	}))
	t.Cleanup(server.Close)
	w.scope.Targets = []*plan.Target{{
		Site: w.scope.Site, Intent: &plan.Intent{Name: "gpu-001", Serial: "S1", OOB: netip.MustParseAddr("192.0.2.9"), Ironic: plan.IronicContext{RedfishAddress: server.URL},
			Frontend: []plan.FrontendNIC{{Name: "eth0", MAC: provisioningMAC}}},
		Settings: plan.Settings{Hostname: "new", NTPServers: []string{"ntp1.example.org"}, Set: map[string]string{}},
	}}
	w.connect()
}

// fault gives the code of a live value, "" when there is none.
func codeOf(live plan.Live) plan.Code {
	if live.Fault == nil {
		return ""
	}
	return live.Fault.Code
}

// linkSaid is what a plan says of the link of the device's NICs.
func linkSaid(w *world) string {
	for _, c := range w.build(w.read()).Checks {
		if c.Address.Kind == "link" {
			return c.Observed
		}
	}
	return ""
}

// hostname is the step for the name of a scripted BMC.
func hostnameStep(w *world) *plan.Step {
	return &plan.Step{Address: w.scope.Targets[0].Address("bmc", "hostname", ""), Action: plan.ActionUpdate, After: plan.Obj(map[string]plan.Value{"HostName": plan.Str("new")})}
}

// Reading the BMC.
func readingBugs() []fieldBug {
	return []fieldBug{
		{"libredfish #89, #124", func(t *testing.T) {
			for _, members := range []string{"[/redfish/v1/Systems/HGX_Baseboard_0 /redfish/v1/Systems/System_0]", "[/redfish/v1/Systems/System_0 /redfish/v1/Systems/HGX_Baseboard_0]"} {
				w, s := newWorld(t), plainBMC()
				s.resources["/redfish/v1/Systems"] = members
				s.resources["/redfish/v1/Systems/HGX_Baseboard_0"] = `{"SerialNumber":"GPU","Bios":{"@odata.id":"/redfish/v1/Systems/HGX_Baseboard_0/Bios"}}`
				s.resources["/redfish/v1/Systems/System_0"] = `{"SerialNumber":"S1","Bios":{"@odata.id":"/redfish/v1/Systems/System_0/Bios"}}`
				s.serve(t, w)
				if live := w.live(w.read(), "credential"); live.Presence != plan.Present {
					t.Errorf("%s: %s", members, faultText(live.Fault))
				}
			}
		}},
		{"LP#2143027", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1"] = strings.Replace(root, "{", `{"Vendor":"AMI",`, 1)
			s.resources["/redfish/v1/Systems/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1"], "{", `{"Manufacturer":"Dell Inc.","SKU":"X",`, 1)
			s.change = func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
				if r.Header.Get("If-Match") != "*" { // the quirk of AMI
					w.WriteHeader(http.StatusPreconditionRequired)
				}
			}
			s.serve(t, w)
			if r := w.apply(hostnameStep(w)); r.Outcome != plan.OutcomeDone || len(s.changes) != 1 {
				t.Errorf("%s %s, sent %v", r.Outcome, faultText(r.Fault), s.changes)
			}
		}},
		{"NVIDIA/infra-controller #1769", func(t *testing.T) {
			for _, vendor := range []string{"", `"Vendor":null,`} {
				w, s := newWorld(t), plainBMC()
				s.resources["/redfish/v1"] = strings.Replace(root, "{", "{"+vendor, 1)
				s.resources["/redfish/v1/Managers/1"] = strings.Replace(manager1, "{", `{"Oem":{"Lenovo":{}},`, 1)
				s.change = func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
					if r.Header.Get("If-Match") != "*" { // the quirk of an XCC, found by its manager
						w.WriteHeader(http.StatusPreconditionRequired)
					}
				}
				s.serve(t, w)
				if r := w.apply(hostnameStep(w)); r.Outcome != plan.OutcomeDone || len(s.changes) != 1 {
					t.Errorf("%s %s, sent %v", r.Outcome, faultText(r.Fault), s.changes)
				}
			}
		}},
		{"LP#2146585, understack #1873", func(t *testing.T) {
			m := machine(bmctest.IDRAC)
			m.Serial, m.ServiceTag = "CN0BOARD1", "ABC1234"
			w := newWorld(t, m)
			for serial, want := range map[string]plan.Code{"ABC1234": "", "ABC1235": plan.CodeBMCIdentity} {
				w.scope.Targets[0].Intent.Serial = serial
				w.connect()
				if live := w.live(w.read(), "credential"); codeOf(live) != want {
					t.Errorf("%s: %s", serial, faultText(live.Fault))
				}
				w.close()
			}
		}},
		{"LP#2143955, NVIDIA/infra-controller #1604", func(t *testing.T) {
			for _, mac := range []string{"AA:BB:CC:0D:0E:0F", "aa-bb-cc-0d-0e-0f", "aa:bb:cc:d:e:f", "aabbcc0d0e0f"} {
				w, s := newWorld(t), plainBMC()
				s.resources["/redfish/v1/Systems/1/EthernetInterfaces/a"] = fmt.Sprintf(`{"MACAddress":%q,"LinkStatus":"LinkUp","SpeedMbps":1000}`, mac)
				s.serve(t, w)
				w.scope.Targets[0].Intent.Frontend[0].MAC = plan.MAC{0xaa, 0xbb, 0xcc, 0x0d, 0x0e, 0x0f}
				if said := linkSaid(w); !strings.Contains(said, "eth0 up") {
					t.Errorf("%s: %q", mac, said)
				}
			}
		}},
		{"metal3-io/ironic-image #314", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces"] = "[/redfish/v1/Systems/1/EthernetInterfaces/w /redfish/v1/Systems/1/EthernetInterfaces/a]"
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces/w"] = `{"MACAddress":"21:00:F4:E9:00:11:22:33","LinkStatus":"LinkDown"}`
			s.serve(t, w)
			if said := linkSaid(w); !strings.Contains(said, "eth0 up") {
				t.Error(said)
			}
		}},
		{"bmclib #449", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces"] = "[/redfish/v1/Chassis/1/NetworkAdapters/A/Ports/1 /redfish/v1/Chassis/1/NetworkAdapters/B/Ports/1]"
			s.resources["/redfish/v1/Chassis/1/NetworkAdapters/A/Ports/1"] = `{"Id":"1","MACAddress":"02:00:5e:00:01:01","LinkStatus":"LinkDown"}`
			s.resources["/redfish/v1/Chassis/1/NetworkAdapters/B/Ports/1"] = `{"Id":"1","MACAddress":"02:00:5e:00:01:02","LinkStatus":"LinkUp","SpeedMbps":1000}`
			s.serve(t, w)
			target := w.scope.Targets[0]
			target.Intent.Frontend = append(target.Intent.Frontend, plan.FrontendNIC{Name: "eth1", MAC: plan.MAC{2, 0, 0x5e, 0, 1, 2}})
			if said := linkSaid(w); !strings.Contains(said, "eth0 down") || !strings.Contains(said, "eth1 up") {
				t.Error(said)
			}
		}},
		{"dell/iDRAC-Redfish-Scripting #97", func(t *testing.T) {
			w := bmcOf(t, bmctest.IDRAC, func(m *bmctest.Machine) { m.NICs[0].Link = map[string]any{"LinkStatus": "LinkUp", "SpeedMbps": 0} })
			if said := linkSaid(w); !strings.Contains(said, "eth0 unknown") {
				t.Error(said)
			}
			w.close()
		}},
		{"LP#2137364", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.serve(t, w)
			first := linkSaid(w)
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces"] = "[/redfish/v1/Systems/1/EthernetInterfaces/DE009000]"
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces/DE009000"] = strings.Replace(s.resources["/redfish/v1/Systems/1/EthernetInterfaces/a"], `"a"`, `"DE009000"`, 1)
			w.connect()
			if again := linkSaid(w); again != first || !strings.Contains(first, "eth0 up") {
				t.Errorf("%q, then %q", first, again)
			}
		}},
		{"LP#2055542; gofish #437, #533, #448; bmclib #451", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1/Systems/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1"], "{", `{"Socket":1,"Ordinal":"3","Redundancy@odata.count":0,"ProcessorSummary":{"Count":"2"},`, 1)
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces"] = "[/redfish/v1/Systems/1/EthernetInterfaces/gone /redfish/v1/Systems/1/EthernetInterfaces/bad /redfish/v1/Systems/1/EthernetInterfaces/a]"
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces/bad"] = "<html>no</html>"
			s.resources["/redfish/v1/Systems/1/EthernetInterfaces/a"] = `{"MACAddress":"02:00:5e:00:01:01","LinkStatus":"LinkUp","SpeedMbps":"1000"}`
			s.serve(t, w)
			snap := w.read()
			for _, kind := range []string{"credential", "hostname", "ntp"} {
				if live := w.live(snap, kind); live.Presence != plan.Present {
					t.Errorf("%s: %s", kind, faultText(live.Fault))
				}
			}
			if said := linkSaid(w); !strings.Contains(said, "eth0 up") {
				t.Error(said)
			}
		}},
		{"LP#2070791, #2036454, #2036455", func(t *testing.T) {
			for override, want := range map[string]string{
				"": "[2001:db8::10]:443", "https://[2001:db8::10]": "[2001:db8::10]:443", "https://[2001:db8::10]/": "[2001:db8::10]:443", "https://192.0.2.7:8443/redfish/v1/": "192.0.2.7:8443",
			} {
				w := newWorld(t)
				w.scope.Targets = []*plan.Target{{Site: w.scope.Site, Intent: &plan.Intent{Name: "gpu-001", OOB: netip.MustParsePrefix("2001:db8::10/64").Addr(), Ironic: plan.IronicContext{RedfishAddress: override}}}}
				var asked string
				c, err := bmc.New(*w.scope.Site.BMC, w, bmc.Options{Now: time.Now, DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
					asked = address
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
				}})
				if err != nil {
					t.Fatal(err)
				}
				w.client = c
				if live := w.live(w.read(), "credential"); codeOf(live) != plan.CodeBMCUnreachable || asked != want {
					t.Errorf("%q: %s, asked %s", override, faultText(live.Fault), asked)
				}
			}
		}},
		{"metal-operator #448", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1/Managers/1/NP"] = "<html><body>Gateway " + strings.Repeat("Timeout ", 200) + "</body></html>"
			s.serve(t, w)
			live := w.live(w.read(), "ntp")
			if codeOf(live) != plan.CodeBMCBusy || len(live.Fault.Evidence["answer"]) > 320 || !strings.Contains(live.Fault.Evidence["answer"], "Gateway") {
				t.Errorf("%s", faultText(live.Fault))
			}
		}},
	}
}

// biosStep makes one step of BIOS settings on a machine.
func biosStepOf(t *testing.T, vendor string, want map[string]any, change ...func(*bmctest.Machine)) (*world, *clock, *plan.Step) {
	t.Helper()
	w, c := biosWorld(t, vendor, want, change...)
	return w, c, stepOf(w.build(w.read()), "bios")
}

// done wants a step to end well after so many resets of the host.
func done(t *testing.T, w *world, r plan.Result, resets int) {
	t.Helper()
	if r.Outcome != plan.OutcomeDone || w.bmcs[0].Resets() != resets {
		t.Errorf("%s %s, %d resets and not %d, jobs %v", r.Outcome, faultText(r.Fault), w.bmcs[0].Resets(), resets, w.bmcs[0].Jobs())
	}
	w.close()
}

// BIOS, boot order, power, jobs.
func hostBugs() []fieldBug {
	sriov := map[string]any{"SriovGlobalEnable": "Enabled"}
	return []fieldBug{
		{"LP#2157002", func(t *testing.T) {
			for vendor, tc := range biosCases { // an iDRAC's settings are empty, others hold a full copy
				w, c, step := biosStepOf(t, vendor, tc.want)
				r := w.until(c, step)
				if p := w.build(w.read()); stepOf(p, "bios") != nil || !plan.Satisfies(step.After, w.live(w.read(), "bios").Value) {
					t.Errorf("%s: %s", vendor, steps(p))
				}
				done(t, w, r, 1)
			}
		}},
		{"quads #726", func(t *testing.T) {
			w, c, step := biosStepOf(t, bmctest.IDRAC, sriov)
			r := w.until(c, step)
			if n := w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/Jobs") }); n > 1 || len(w.bmcs[0].Jobs()) != 1 {
				t.Errorf("%d jobs were posted, and there are %v", n, w.bmcs[0].Jobs())
			}
			done(t, w, r, 1)
		}},
		{"libredfish #97; infra-controller #2506", func(t *testing.T) {
			w, c, step := biosStepOf(t, bmctest.IDRAC, sriov, func(m *bmctest.Machine) { m.Profile.NoJobLocation = true })
			done(t, w, w.until(c, step), 1)
		}},
		{"iDRAC-Redfish-Scripting #249", func(t *testing.T) { oneSet(t, 1) }},
		{"libredfish #54", func(t *testing.T) { oneSet(t, 9) }},
		{"LP#2141565, LP#2136089", func(t *testing.T) {
			for _, tc := range []struct {
				task string
				want plan.Outcome
			}{
				{`{"TaskState":"Completed","IsProcessing":true,"PercentComplete":10}`, plan.OutcomeDone},
				{`{"TaskState":"Running","IsProcessing":false,"PercentComplete":100}`, plan.OutcomeWait},
				{`{"TaskState":"Exception","IsProcessing":true,"Messages":[]}`, plan.OutcomeFailed},
			} {
				w, s := newWorld(t), plainBMC()
				s.resources["/redfish/v1/TaskService/Tasks/1"] = tc.task
				s.change = func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
					w.Header().Set("Location", "/redfish/v1/TaskService/Tasks/1")
					w.WriteHeader(http.StatusAccepted)
				}
				s.serve(t, w)
				r := w.client.Run(t.Context(), w.scope, hostnameStep(w), nil)
				if r.Outcome != plan.OutcomeWait {
					t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
				}
				if r = w.client.Run(t.Context(), w.scope, hostnameStep(w), r.Memo); r.Outcome != tc.want || r.Outcome == plan.OutcomeFailed && r.Fault.Error() == "" {
					t.Errorf("%s: %s %s", tc.task, r.Outcome, faultText(r.Fault))
				}
			}
		}},
		{"lenovo/python-redfish-lenovo #174", func(t *testing.T) {
			w, c, step := biosStepOf(t, bmctest.XCC, map[string]any{"Power_WorkloadConfiguration": "MaximumPerformance", "Processors_HyperThreading": "Enable"}, func(m *bmctest.Machine) {
				m.Profile.BIOSIgnored = []string{"Processors_HyperThreading"}
			})
			r := w.until(c, step)
			if live := w.live(w.read(), "bios"); plan.Satisfies(step.After, live.Value) || !strings.Contains(string(plan.ToJSON(live.Value)), `"MaximumPerformance"`) {
				t.Errorf("%s", plan.ToJSON(live.Value))
			}
			done(t, w, r, 1)
		}},
		{"LP#2148675", func(t *testing.T) {
			planFault(t, map[string]any{"SriovGlobalEnable": "Enable"}, `takes Enabled, Disabled and not "Enable"`)
		}},
		{"baremetal-operator #1064; metal-operator #1040", func(t *testing.T) {
			for _, value := range []any{"120", int64(120), 120.0} { // as it is
				w, _, step := biosStepOf(t, bmctest.IDRAC, map[string]any{"AcPwrRcvryUserDelay": value})
				if step != nil {
					t.Errorf("%T %v: %s", value, value, plan.ToJSON(step.After))
				}
				w.close()
			}
			for _, value := range []any{"180", int64(180), 180.0} {
				w, c, step := biosStepOf(t, bmctest.IDRAC, map[string]any{"AcPwrRcvryUserDelay": value})
				r := w.until(c, step)
				if w.bmcs[0].BIOS("AcPwrRcvryUserDelay") != 180 || stepOf(w.build(w.read()), "bios") != nil {
					t.Errorf("%T: %v", value, w.bmcs[0].BIOS("AcPwrRcvryUserDelay"))
				}
				done(t, w, r, 1)
			}
		}},
		{"metal-operator #1100", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			at := "/redfish/v1/Managers/1/Oem/Dell/DellAttributes/1"
			s.resources["/redfish/v1"] = strings.Replace(root, "{", `{"Vendor":"Dell",`, 1)
			s.resources[at] = `{"@Redfish.Settings":null,"Attributes":{"NIC.1.DNSRacName":"old","IPv4.1.DHCPEnable":"Enabled"}}`
			s.change = func(http.ResponseWriter, *http.Request, map[string]any) {}
			s.serve(t, w)
			if r := w.apply(hostnameStep(w)); r.Outcome != plan.OutcomeDone || !slices.Equal(s.changes, []string{"PATCH " + at}) {
				t.Errorf("%s %s, sent %v", r.Outcome, faultText(r.Fault), s.changes)
			}
		}},
		{"gofish #521; metal-operator redfish_dell.go", func(t *testing.T) {
			for value, wrong := range map[string]bool{"-1": false, "18446744073709551615": false, "1000000000000000000000000": true} {
				w, s := newWorld(t), plainBMC()
				s.resources["/redfish/v1"] = strings.Replace(root, "{", `{"Registries":{"@odata.id":"/redfish/v1/Registries"},`, 1)
				s.resources["/redfish/v1/Systems/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1"], "{", `{"Bios":{"@odata.id":"/redfish/v1/Systems/1/Bios"},`, 1)
				s.resources["/redfish/v1/Systems/1/Bios"] = `{"AttributeRegistry":"R","Attributes":{"Big":0,"Tag":"x"},"@Redfish.Settings":{"SettingsObject":{"@odata.id":"/redfish/v1/Systems/1/Bios/Settings"}}}`
				s.resources["/redfish/v1/Systems/1/Bios/Settings"] = `{"Attributes":{}}`
				s.resources["/redfish/v1/Registries/R"] = `{"Location":[{"Language":"en","Uri":"/redfish/v1/R.json"}]}`
				s.resources["/redfish/v1/R.json"] = `{"RegistryEntries":{"Attributes":[{"AttributeName":"Big","Type":"Integer","LowerBound":-1,"UpperBound":18446744073709551615},{"AttributeName":"Tag","Type":"String","Readonly":true}]}}`
				s.serve(t, w)
				w.scope.Site.BMC.BIOS = []plan.BIOSSettings{{Class: "EXAMPLEMODEL1", Attributes: map[string]any{"Big": value, "Tag": "x"}}}
				w.scope.Targets[0].Intent.Manufacturer, w.scope.Targets[0].Intent.Model = "Example", "Model 1"
				w.connect()
				p := w.build(w.read())
				found := slices.ContainsFunc(p.Diagnostics, func(d plan.Diagnostic) bool { return d.Fault.Code == plan.CodeConfigInvalid })
				if found != wrong || !wrong && stepOf(p, "bios") == nil {
					t.Errorf("%s: %s %+v", value, steps(p), p.Diagnostics)
				}
			}
		}},
		{"metal-operator #986", func(t *testing.T) {
			w, _, step := biosStepOf(t, bmctest.IDRAC, map[string]any{"SystemServiceTag": "SVCTAG1"})
			if step != nil || len(w.build(w.read()).Diagnostics) != 0 {
				t.Errorf("%+v", step)
			}
			w.close()
			planFault(t, map[string]any{"SystemServiceTag": "OTHER"}, "can only be read")
		}},
		{"metal-operator #581", func(t *testing.T) {
			for vendor, tc := range biosCases {
				name := map[string]string{bmctest.IDRAC: "LogicalProc", bmctest.XCC: "Processors_HyperThreading", bmctest.Generic: ""}[vendor]
				if name == "" { // the simulated machine has no further attribute
					continue
				}
				w, _ := biosWorld(t, vendor, tc.want)
				w.bmcs[0].StageBIOS(name, map[string]string{bmctest.IDRAC: "Disabled", bmctest.XCC: "Enable"}[vendor])
				if step := stepOf(w.build(w.read()), "bios"); step == nil || step.Blocked == nil || step.Blocked.Rule != plan.RuleForeign || !strings.Contains(step.Blocked.Text, name) {
					t.Errorf("%s: %+v", vendor, step)
				}
				w.close()
			}
		}},
		{"metal-operator #553", func(t *testing.T) {
			refusedWhole(t, []string{bmctest.Generic}, func(order []string) map[string]any {
				return map[string]any{"Boot": map[string]any{"BootOrder": order, "BootSourceOverrideMode": "UEFI"}}
			})
		}},
		{"LP#2121895; gofish #511, #519; libredfish #33", func(t *testing.T) {
			w, c := bootWorld(t, bmctest.IDRAC, func(m *bmctest.Machine) {
				m.FirstNIC, m.Profile.BootOnSettings, m.Profile.NoSystemSettings = 0, true, true
			})
			done(t, w, w.until(c, stepOf(w.build(w.read()), "boot_order")), 1)
		}},
		{"HewlettPackard/ilo-ansible-collection #9", func(t *testing.T) {
			refusedWhole(t, []string{bmctest.Generic, bmctest.IDRAC, bmctest.XCC, bmctest.AMI}, func(order []string) map[string]any {
				return map[string]any{"Boot": map[string]any{"BootOrder": order[:1]}}
			})
		}},
		{"libredfish #13, #22", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1/Systems/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1"], "{", `{"Boot":{"BootOrder":["Boot0000"],"BootOptions":{"@odata.id":"/redfish/v1/Systems/1/BootOptions"}},`, 1)
			s.resources["/redfish/v1/Systems/1/BootOptions"] = "[/redfish/v1/Systems/1/BootOptions/0 /redfish/v1/Systems/1/BootOptions/1]"
			s.resources["/redfish/v1/Systems/1/BootOptions/0"] = `{"BootOptionReference":"Boot0000","DisplayName":"disk"}`
			s.resources["/redfish/v1/Systems/1/BootOptions/1"] = `{"BootOptionReference":"Boot0001","BootOptionEnabled":false,"DisplayName":"NIC","UefiDevicePath":"PciRoot(0x0)/MAC(02005E000101,0x1)"}`
			var sent []map[string]any
			s.change = func(_ http.ResponseWriter, r *http.Request, body map[string]any) { sent = append(sent, body) }
			s.serve(t, w)
			step := stepOf(w.build(w.read()), "boot_order")
			if step == nil {
				t.Fatal("no step")
			}
			_ = w.client.Run(t.Context(), w.scope, step, nil)
			if len(s.changes) != 1 || s.changes[0] != "PATCH /redfish/v1/Systems/1/BootOptions/1" || sent[0]["BootOptionEnabled"] != true {
				t.Errorf("first %v %v", s.changes, sent)
			}
			s.resources["/redfish/v1/Systems/1/BootOptions/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1/BootOptions/1"], "false", "true", 1)
			_ = w.client.Run(t.Context(), w.scope, step, nil)
			if last := fmt.Sprint(sent[len(sent)-1]); last != "map[Boot:map[BootOrder:[Boot0001 Boot0000]]]" {
				t.Errorf("then %s", last)
			}
		}},
		{"infra-controller #505, #1838", func(t *testing.T) {
			for _, vendor := range []string{bmctest.Generic, bmctest.IDRAC, bmctest.XCC, bmctest.AMI} {
				w, c := bootWorld(t, vendor, func(m *bmctest.Machine) { m.Profile.BootIgnored, m.FirstNIC = true, 0 })
				step := stepOf(w.build(w.read()), "boot_order")
				r := w.until(c, step) // it ends
				if plan.Satisfies(step.After, w.live(w.read(), "boot_order").Value) || mutating(w) > 8 {
					t.Errorf("%s: %d writes", vendor, mutating(w))
				}
				done(t, w, r, map[string]int{bmctest.Generic: 0, bmctest.IDRAC: 1, bmctest.XCC: 1, bmctest.AMI: 1}[vendor])
			}
		}},
		{"DMTF/Redfish-Tacklebox #111; community.general #6433", func(t *testing.T) {
			w, s := newWorld(t), plainBMC()
			s.resources["/redfish/v1/Systems/1"] = strings.Replace(s.resources["/redfish/v1/Systems/1"], "{", `{"Bios":{"@odata.id":"/redfish/v1/Systems/1/Bios"},`, 1)
			s.resources["/redfish/v1/Systems/1/Bios"] = `{"Attributes":{"A":"x"}}`
			s.change = func(http.ResponseWriter, *http.Request, map[string]any) {}
			s.serve(t, w)
			w.scope.Site.BMC.BIOS = []plan.BIOSSettings{{Class: "EXAMPLEMODEL1", Attributes: map[string]any{"A": "y"}}}
			w.scope.Targets[0].Intent.Manufacturer, w.scope.Targets[0].Intent.Model = "Example", "Model 1"
			w.connect()
			// Of an unknown maker nobody knows where it would be: no write.
			if live := w.live(w.read(), "bios"); codeOf(live) != plan.CodeBMCUnsupported || len(s.changes) != 0 {
				t.Errorf("%s %s", live.Presence, faultText(live.Fault))
			}
			// An iDRAC's is known.
			s.resources["/redfish/v1"] = strings.Replace(root, "{", `{"Vendor":"Dell",`, 1)
			s.resources["/redfish/v1/Systems/1/Bios/Settings"] = `{"Attributes":{}}`
			s.resources["/redfish/v1/Managers/1"] = strings.Replace(manager1, "{", `{"Links":{"Oem":{"Dell":{"Jobs":{"@odata.id":"/redfish/v1/Managers/1/Jobs"}}}},`, 1)
			s.resources["/redfish/v1/Managers/1/Jobs"] = "[]"
			w.connect()
			step := stepOf(w.build(w.read()), "bios")
			if step == nil {
				t.Fatal("no step")
			}
			_ = w.client.Run(t.Context(), w.scope, step, nil)
			if !slices.Contains(s.changes, "PATCH /redfish/v1/Systems/1/Bios/Settings") {
				t.Errorf("sent %v", s.changes)
			}
		}},
		{"gofish #511, #174; sushy c:7f41d5c, SB 2009680; ansible/ansible #56150; community.general #11270", func(t *testing.T) {
			for _, tc := range []struct{ given, takes, status string }{
				{`"abc-gzip"`, `"abc"`, "412"}, {`W/"1"`, `"1"`, "412"}, {`W/"1"`, `W/"1"`, "428"}, {``, ``, "412"}, {`"1"`, `"1"`, "428"},
			} {
				w, s := newWorld(t), plainBMC()
				raw, _ := json.Marshal(tc.given)
				s.resources["/redfish/v1/Managers/1/EthernetInterfaces/1"] = `{"Id":"1","HostName":"old","etag-header":` + string(raw) + `}`
				empty := false
				s.change = func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
					values, sent := r.Header["If-Match"]
					empty = empty || sent && values[0] == ""
					if r.Header.Get("If-Match") != tc.takes {
						w.WriteHeader(map[string]int{"412": 412, "428": 428}[tc.status])
					}
				}
				s.serve(t, w)
				if r := w.apply(hostnameStep(w)); r.Outcome != plan.OutcomeDone || empty || len(s.changes) > 3 {
					t.Errorf("%s, which wants %s: %s %s, sent %v, empty %t", tc.given, tc.takes, r.Outcome, faultText(r.Fault), s.changes, empty)
				}
			}
		}},
		{"LP#2162995, LP#2119423", func(t *testing.T) {
			w, c, step := biosStepOf(t, bmctest.XCC, biosCases[bmctest.XCC].want)
			w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodPost, Path: "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", Times: 2, Status: http.StatusConflict,
				Body: extendedInfo("Base.1.12.ActionParameterValueConflict", "The host is in that state.")})
			done(t, w, w.until(c, step), 1)
		}},
		{"sonic-platform-common #707; understack #1909", func(t *testing.T) {
			for _, vendor := range makers { // the root answers a minute before the rest
				w, c, p := forced(t, vendor)
				began := c.t
				r := w.until(c, stepOf(p, "reset"))
				if took := c.t.Sub(began); took < 3*time.Minute {
					t.Errorf("%s: ready after %s", vendor, took)
				}
				done(t, w, r, 0)
			}
		}},
		{"dell/terraform-provider-redfish #19; ansible/ansible #46338", func(t *testing.T) {
			for _, vendor := range makers {
				w := convergedWorld(t, vendor)
				writes := mutating(w)
				p := w.build(w.read())
				if len(p.Steps) != 0 || mutating(w) != writes {
					t.Errorf("%s: %s", vendor, steps(p))
				}
				w.close()
			}
		}},
		{"understack #2037", func(t *testing.T) {
			w, _ := biosWorld(t, bmctest.IDRAC, sriov)
			first := plan.Kind{Name: "ironic.inspection", Phase: plan.PhaseInspect, Want: func(t *plan.Target) []plan.Resource {
				return []plan.Resource{{Address: t.Address("ironic", "inspection", ""), Want: plan.Obj(map[string]plan.Value{"x": plan.Str("y")})}}
			}}
			snap := w.read()
			snap[w.scope.Targets[0].Address("ironic", "inspection", "")] = plan.LiveAbsent()
			p := plan.Build(plan.Input{Scope: w.scope, Kinds: append(bmc.Kinds(), first), World: snap})
			bios, inspection := stepOf(p, "bios"), stepOf(p, "inspection")
			if bios == nil || inspection == nil || slices.Index(p.Steps, bios) > slices.Index(p.Steps, inspection) || !slices.Contains(inspection.Needs, bios.ID) {
				t.Errorf("%s", steps(p))
			}
			w.close()
		}},
		{"lenovo/powershell-redfish-lenovo #75", func(t *testing.T) {
			for _, vendor := range makers {
				m := machine(vendor)
				m.Profile.Tasks = true
				w := newWorld(t, m)
				r := w.apply(stepOf(w.build(w.read()), "hostname"))
				if w.bmcs[0].Hostname() != "gpu-001-bmc" {
					t.Errorf("%s: done, and the name is %s", vendor, w.bmcs[0].Hostname())
				}
				done(t, w, r, 0)
			}
		}},
	}
}

// oneSet wants BIOS settings and boot order of an iDRAC to come by one job and one
// reset, though each alone would refuse the other; polls is how long a job takes
// to be scheduled.
func oneSet(t *testing.T, polls int) {
	t.Helper()
	w, c := biosWorld(t, bmctest.IDRAC, map[string]any{"SriovGlobalEnable": "Enabled"}, func(m *bmctest.Machine) { m.FirstNIC, m.Profile.JobPolls = 0, polls })
	w.scope.Site.BMC.RestrictBoot = true
	w.connect()
	p := w.build(w.read())
	for _, r := range w.together(c, stepOf(p, "bios"), stepOf(p, "boot_order")) {
		if r.Outcome != plan.OutcomeDone {
			t.Errorf("%s %s", r.Outcome, faultText(r.Fault))
		}
	}
	b := w.bmcs[0]
	if b.Resets() != 1 || b.BIOS("SriovGlobalEnable") != "Enabled" || b.Boots()[0] != "nic1" {
		t.Errorf("%d resets, jobs %v, boots %v", b.Resets(), b.Jobs(), b.Boots())
	}
	w.close()
}

// planFault wants the plan of BIOS settings to say what is wrong, without a write.
func planFault(t *testing.T, want map[string]any, says string) {
	t.Helper()
	w, _ := biosWorld(t, bmctest.IDRAC, want)
	p := w.build(w.read())
	if !slices.ContainsFunc(p.Diagnostics, func(d plan.Diagnostic) bool { return strings.Contains(d.Fault.Error(), says) }) || mutating(w) != 0 {
		t.Errorf("%s %+v", steps(p), p.Diagnostics)
	}
	w.close()
}

// refusedWhole wants a BMC that refuses such a change of the boot order whole to
// take the one that enroll makes.
func refusedWhole(t *testing.T, vendors []string, body func(order []string) map[string]any) {
	t.Helper()
	for _, vendor := range vendors {
		w, c := bootWorld(t, vendor, func(m *bmctest.Machine) { m.FirstNIC = 0 })
		raw, _ := json.Marshal(body(w.bmcs[0].BootOrder()))
		path := map[string]string{bmctest.Generic: "/redfish/v1/Systems/system", bmctest.IDRAC: "/redfish/v1/Systems/System.Embedded.1/Settings", bmctest.XCC: "/redfish/v1/Systems/1/Pending", bmctest.AMI: "/redfish/v1/Systems/Self/SD"}[vendor]
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, w.bmcs[0].URL+path, strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("root", password)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("If-Match", "*")
		resp, err := w.plainClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", vendor, resp.StatusCode)
		}
		done(t, w, w.until(c, stepOf(w.build(w.read()), "boot_order")), map[bool]int{false: 1}[vendor == bmctest.Generic])
	}
}

// Accounts, sessions, secrets.
func accountBugs() []fieldBug {
	return []fieldBug{
		{"metal-operator #913", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // an iDRAC 9 answers 405 to a POST and has slots
				w := monitoredWorld(t, bmctest.IDRAC)
				if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
					t.Fatal(faultText(f))
				}
				w.hasMonitor()
				if !w.bmcs[0].Accepts("root", password) {
					t.Error("the own account was touched")
				}
				w.close()
			})
		}},
		{"infra-controller #6358", func(t *testing.T) {
			for _, vendor := range makers { // each account gets a place of its own, whatever its number
				synctest.Test(t, func(t *testing.T) {
					w := monitoredWorld(t, vendor)
					for _, user := range []string{"other-1", "other-2", monitorName} {
						w.monitor(user, monitorPassword)
						if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
							t.Fatalf("%s: %s", vendor, faultText(f))
						}
						w.close()
						w.connect()
					}
					w.hasMonitor()
					for _, user := range []string{"other-1", "other-2"} {
						if _, enabled, _, secret := w.bmcs[0].User(user); !enabled || secret != monitorPassword {
							t.Errorf("%s: %s was touched", vendor, user)
						}
					}
				})
			}
		}},
		{"iDRAC-Redfish-Scripting #332", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := monitoredWorld(t, bmctest.IDRAC)
				if f := w.converged("ipmi_user", "ipmi_lan"); f != nil {
					t.Fatal(faultText(f))
				}
				w.bmcs[0].ChangeUser(monitorName, monitorPassword, "None") // IPMI works, Redfish answers 401
				w.close()
				w.connect()
				if f := w.converged("ipmi_user"); f != nil {
					t.Fatal(faultText(f))
				}
				w.hasMonitor()
				w.close()
			})
		}},
		{"understack #1795; infra-controller #4978", func(t *testing.T) {
			for _, vendor := range makers {
				w := newWorld(t, machine(vendor))
				w.passwords["gpu-001"] = "wrong"
				for range 5 {
					if live := w.live(w.read(), "ntp"); codeOf(live) != plan.CodeBMCCredential {
						t.Errorf("%s: %s", vendor, faultText(live.Fault))
					}
				}
				if n := w.bmcs[0].FailedLogins(); n != 1 || !w.bmcs[0].Accepts("root", password) {
					t.Errorf("%s: %d logins were tried", vendor, n)
				}
				w.close()
			}
		}},
		{"gofish #75; badfish #447; check_redfish #198", func(t *testing.T) {
			w := newWorld(t, machine(bmctest.IDRAC))
			for range 20 { // more runs than there are sessions, each of which ends in a fault
				w.fleet.Recorder().Reset()
				w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodGet, Path: "/redfish/v1/Managers", Status: 500, Body: "{}"})
				w.read()
				w.close()
				w.connect()
			}
			w.fleet.Recorder().Reset()
			w.profile(func(p *bmctest.Profile) { p.MaxSessions = -1 })
			if live := w.live(w.read(), "credential"); codeOf(live) != plan.CodeBMCSessionLimit || live.Fault.Evidence["message_id"] != "IDRAC.2.8.RAC0218" {
				t.Error(faultText(live.Fault))
			}
			w.close()
		}},
		{"sushy SB 2010477; understack #1596", func(t *testing.T) {
			for _, change := range []func(*bmctest.Profile){
				func(p *bmctest.Profile) { p.NoLocation = true }, func(p *bmctest.Profile) { p.AbsoluteLocation = true }, func(*bmctest.Profile) {},
			} {
				w := newWorld(t, machine(bmctest.Generic))
				w.profile(change)
				if live := w.live(w.read(), "ntp"); live.Presence != plan.Present {
					t.Error(faultText(live.Fault))
				}
				w.close() // wants no session left
			}
		}},
		{"osism #2120, #2119; kayobe LP#2143889", func(t *testing.T) {
			w := newWorld(t, machine(bmctest.Generic))
			raw, _ := json.Marshal("console=ttyS0 ipa-password=" + password + " token=x")
			w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodGet, Path: "/redfish/v1/Managers", Status: 400,
				Body: `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.0.X","Message":` + string(raw) + `,"MessageArgs":[` + string(raw) + `]}]}}`})
			live := w.live(w.read(), "ntp")
			if live.Fault == nil || !strings.Contains(faultText(live.Fault), "ipa-password=(secret)") {
				t.Errorf("%s", faultText(live.Fault))
			}
			noSecret(t, "the fault", faultText(live.Fault))
			w.close()
		}},
	}
}

// elsewhere are the reports that other packages hold themselves against, by the
// test that does; an empty test means that nobody does, with the reason.
var elsewhere = []struct{ seen, file, test, why string }{
	{"LP#2155051, LP#2044793", "providers/ironic/decode_test.go", "TestDecodeLLDP", "a BMC is not asked for LLDP; the inspection's frames are"},
	{"osism #2077, #2100", "providers/secrets/rules_test.go", "TestRulesOfAll", "the vault's reader takes the line end off"},
	{"iDRAC-Redfish-Scripting #126, #129", "providers/bmc/rotation_test.go", "TestRotate", "a new password is proven by a login of its own, the old one's refusal is expected"},
	{"understack #1988", "", "", "whether Ironic's verify step compares clocks stands in its configuration, which its API does not show; the node's last error is shown as it is"},
}

func TestFieldBugs(t *testing.T) {
	t.Parallel()
	for name, bugs := range map[string][]fieldBug{"reading": readingBugs(), "host": hostBugs(), "accounts": accountBugs()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, bug := range bugs {
				t.Run(bug.seen, func(t *testing.T) {
					t.Parallel()
					bug.test(t)
				})
			}
		})
	}
}

// Every row of sections 1 to 3 of the collection has a test here, or stands in
// elsewhere; no test is of a row that is not there.
func TestFieldBugsAreAll(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "field-bugs.md"))
	if os.IsNotExist(err) {
		t.Skip("the collection of field bugs does not lie beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, bugs := range [][]fieldBug{readingBugs(), hostBugs(), accountBugs()} {
		for _, b := range bugs {
			have[b.seen] = true
		}
	}
	for _, e := range elsewhere {
		if have[e.seen] {
			t.Errorf("%s is tested here and elsewhere", e.seen)
		}
		have[e.seen] = true
	}
	section := ""
	rows := 0
	for _, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, "## ") {
			section = line
		}
		if !strings.HasPrefix(section, "## 1.") && !strings.HasPrefix(section, "## 2.") && !strings.HasPrefix(section, "## 3.") || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| seen in") {
			continue
		}
		seen := strings.TrimSpace(strings.SplitN(line, "|", 3)[1])
		rows++
		if !have[seen] {
			t.Errorf("%s: no test of %s", section, seen)
		}
		delete(have, seen)
	}
	for seen := range have {
		t.Errorf("%s is no row of the collection", seen)
	}
	if rows < 40 {
		t.Errorf("only %d rows were read", rows)
	}
}

// The tests that elsewhere names are there.
func TestFieldBugsElsewhere(t *testing.T) {
	for _, e := range elsewhere {
		if e.test == "" {
			continue
		}
		found := false
		err := filepath.WalkDir(filepath.Join("..", "..", filepath.FromSlash(e.file)), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			found = found || regexp.MustCompile(`(?m)^func `+e.test+`\(`).Match(raw)
			return err
		})
		if err != nil || !found {
			t.Errorf("%s: there is no %s in %s (%v)", e.seen, e.test, e.file, err)
		}
	}
}
