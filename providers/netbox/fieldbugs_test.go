package netbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// TestFieldBugs are mistakes that other tools made in the field with what NetBox
// says, by the place where they were reported. What LLDP says is compared in the
// package ironic.
func TestFieldBugs(t *testing.T) {
	ctx := context.Background()
	for name, run := range map[string]func(t *testing.T){
		"netbox #18436: a primary MAC that is not one of the interface's": func(t *testing.T) {
			s := serve(t, netboxtest.Options{}, host(1))
			url := rewritten(t, s, "/api/dcim/interfaces/", func(row map[string]any) {
				if row["name"] == "eth0" {
					row["primary_mac_address"] = map[string]any{"id": 99, "mac_address": "02:00:00:00:99:99"}
				}
			})
			in := intent(t, client(t, url, s.Token), site(), "gpu-001")
			if len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeIntentAmbiguous || !strings.Contains(in.Faults[0].Summary, "which is not one of its MAC addresses") {
				t.Errorf("faults:\n%s", texts(in.Faults))
			}
		},
		"netbox #19042: 200, and nothing was written": func(t *testing.T) {
			s := serve(t, netboxtest.Options{}, host(1))
			c := client(t, s.URL, s.Token)
			sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
			for _, local := range writable() {
				s.Recorder.Reset()
				s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Method: "PATCH", Status: 200, Body: `{"id":1,"name":"gpu-001","status":"staged","tags":[],"custom_fields":{"platform_class":null}}`})
				wantCode(t, c.Run(ctx, sc, stepFor(t, c, sc, local), nil).Fault, plan.CodeNotApplied)
			}
		},
		"netbox #18729, pynetbox #262 #298 #360 #231 #4: pages that overlap": func(t *testing.T) {
			s := serve(t, netboxtest.Options{PageCap: 2}, host(1), host(2), host(3), host(4))
			c := client(t, s.URL, s.Token)
			page := func(ids ...int) string {
				rows := make([]string, len(ids))
				for i, id := range ids {
					rows[i] = fmt.Sprintf(`{"id":%d,"slug":"x"}`, id)
				}
				return `{"count":4,"next":"http://other.example.net/","results":[` + strings.Join(rows, ",") + `]}`
			}
			for _, body := range []string{page(1, 1), page(1), page(), page(1, 2, 3)} {
				s.Recorder.Reset()
				s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Path: "/api/dcim/sites/", Status: 200, Body: body})
				_, _, err := c.Intents(ctx, site(), []string{"gpu-001"})
				wantCode(t, err, plan.CodeNetBoxProtocol)
			}
			s.Recorder.Reset()
			if names, err := c.Names(ctx, site(), netbox.Filter{}); err != nil || len(names) != 4 {
				t.Errorf("%v %v", names, err)
			}
		},
		"argora #71: more devices than a page has": func(t *testing.T) {
			s := serve(t, netboxtest.Options{PageCap: 50})
			for n := 1; n <= 120; n++ {
				s.AddDevice(host(n))
			}
			c := client(t, s.URL, s.Token)
			names, err := c.Names(ctx, site(), netbox.Filter{})
			if err != nil || len(names) != 120 {
				t.Fatalf("%d names, %v", len(names), err)
			}
			intents, failed, err := c.Intents(ctx, site(), names)
			if err != nil || len(failed) > 0 || len(intents) != 120 {
				t.Fatalf("%d intents, %v, %v", len(intents), failed, err)
			}
			for _, in := range intents {
				if len(in.Faults) > 0 || len(in.Frontend) != 2 {
					t.Fatalf("%s: %s", in.Name, texts(in.Faults))
				}
			}
		},
		"netbox #14303 #5239: a tag more, and the others stay": func(t *testing.T) {
			for _, version := range []string{"4.5", "4.7"} {
				token := strings.Repeat("0123456789", 4)
				d := host(1)
				d.Tags = []string{"zz", "aa", "ipmi_exporter"}
				s := serve(t, netboxtest.Options{Version: version, Tokens: []netboxtest.Token{{Value: token}}}, d)
				c := client(t, s.URL, token)
				sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
				if r := through(t, c, sc, stepFor(t, c, sc, "netbox.tag[ironic]")); r.Outcome != plan.OutcomeDone {
					t.Fatalf("%s: %v", version, r.Fault)
				}
				got, _ := s.Device("gpu-001")
				slices.Sort(got.Tags)
				if !slices.Equal(got.Tags, []string{"aa", "ipmi_exporter", "ironic", "zz"}) {
					t.Errorf("%s: tags %v", version, got.Tags)
				}
			}
		},
		"netbox #9401 #14103 #19869 #21917, pynetbox #519: several peers are no peer": func(t *testing.T) {
			four, split := host(1), host(2)
			four.Interfaces[2].More = []netboxtest.Peer{{Device: "leaf-b", Port: "1"}, {Device: "leaf-c", Port: "1"}, {Device: "leaf-d", Port: "1"}}
			split.Interfaces[2].Peer.LAG = "Port-Channel77"
			s := serve(t, netboxtest.Options{}, four, split)
			c := client(t, s.URL, s.Token)
			in := intent(t, c, site(), "gpu-001")
			if len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeIntentAmbiguous || !strings.Contains(in.Faults[0].Summary, "ends at 4 ports: leaf-b 1, leaf-c 1, leaf-d 1, leaf-r01 Ethernet1/2") || in.Frontend[0].Peer != nil {
				t.Errorf("faults:\n%s", texts(in.Faults))
			}
			in = intent(t, c, site(), "gpu-002")
			if len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeIntentAmbiguous || !strings.Contains(in.Faults[0].Summary, "different LAGs: eth0 → leaf-r01 Ethernet1/3 (Port-Channel77), eth1 → leaf-r01 Ethernet2/3 (Port-Channel3)") {
				t.Errorf("faults:\n%s", texts(in.Faults))
			}
		},
		"netbox #4559 #9374, nautobot #1449: contexts of devices that nobody asked for": func(t *testing.T) {
			s := serve(t, netboxtest.Options{}, host(1), host(2))
			var asked []string
			inner := s.Handler()
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.RawQuery, "config_context") {
					asked = append(asked, r.URL.RawQuery)
				}
				inner.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			intent(t, client(t, front.URL, s.Token), site(), "gpu-001")
			if len(asked) != 1 || !strings.Contains(asked[0], "name=gpu-001") || strings.Contains(asked[0], "gpu-002") {
				t.Errorf("contexts were asked for with %v", asked)
			}
		},
		"understack #1610: the same name, another device": func(t *testing.T) {
			s := serve(t, netboxtest.Options{}, host(1))
			c := client(t, s.URL, s.Token)
			sc := scopeOf(site(), intent(t, c, site(), "gpu-001"))
			step := stepFor(t, c, sc, "netbox.status")
			s.Remove("gpu-001")
			s.AddDevice(host(1))
			wantCode(t, c.Read(ctx, sc, desired(sc)).Get(step.Address).Fault, plan.CodeDeviceNotFound)
			wantCode(t, c.Run(ctx, sc, step, nil).Fault, plan.CodeDeviceNotFound)
			if d, _ := s.Device("gpu-001"); d.Status != "staged" {
				t.Errorf("the other device was written: %s", d.Status)
			}
		},
		"understack #1646: 502, 503, 504, then an answer": func(t *testing.T) {
			s := serve(t, netboxtest.Options{}, host(1))
			for _, status := range []int{429, 502, 503, 504} {
				s.Recorder.Reset()
				s.Recorder.Inject(&exchange.Fault{Kind: exchange.Status, Status: status, Path: "/api/dcim/devices/", Times: 2})
				intent(t, client(t, s.URL, s.Token), site(), "gpu-001")
			}
		},
	} {
		t.Run(name, run)
	}
}

// rewritten is a server whose rows of an endpoint are changed on their way.
func rewritten(t *testing.T, s *netboxtest.Server, path string, change func(row map[string]any)) string {
	t.Helper()
	inner := s.Handler()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		body := rec.Body.Bytes()
		if r.URL.Path == path && rec.Code == http.StatusOK {
			var list map[string]any
			if err := json.Unmarshal(body, &list); err != nil {
				t.Error(err)
			}
			for _, row := range list["results"].([]any) {
				change(row.(map[string]any))
			}
			body, _ = json.Marshal(list)
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// Answers that no client should trust: each is a clear error, and nothing that
// could be taken for a record.
func TestBadAnswers(t *testing.T) {
	s := serve(t, netboxtest.Options{}, host(1))
	whole := `{"count":1,"next":null,"previous":null,"results":[{"id":1,"slug":"lab1","custom_fields":{}}]}`
	jsonHeader := map[string]string{"Content-Type": "application/json", "API-Version": "4.7"}
	for name, tc := range map[string]struct {
		fault exchange.Fault
		says  string
	}{
		"cut":             {exchange.Fault{Body: whole[:60], Header: jsonHeader}, "not JSON, or were cut"},
		"web page":        {exchange.Fault{Body: "<html><title>Sign in</title></html>", Header: map[string]string{"Content-Type": "text/html"}}, "a web page: Sign in"},
		"page as JSON":    {exchange.Fault{Body: "<html></html>", Header: jsonHeader}, "a web page"},
		"empty":           {exchange.Fault{Header: jsonHeader}, "an empty body"},
		"error as 200":    {exchange.Fault{Body: `{"detail":"database is down"}`, Header: jsonHeader}, "an error: database is down"},
		"redirect":        {exchange.Fault{Status: 302, Header: map[string]string{"Location": "https://evil.example.net/"}}, "redirects to https://evil.example.net/"},
		"null list":       {exchange.Fault{Body: `{"count":1,"next":null,"results":null}`, Header: jsonHeader}, "count or results is missing"},
		"null count":      {exchange.Fault{Body: `{"count":null,"next":null,"results":[]}`, Header: jsonHeader}, "count or results is missing"},
		"null row":        {exchange.Fault{Body: `{"count":1,"next":null,"results":[null]}`, Header: jsonHeader}, "lacks what was asked for"},
		"negative count":  {exchange.Fault{Body: `{"count":-1,"next":null,"results":[]}`, Header: jsonHeader}, "count or results is missing"},
		"a list":          {exchange.Fault{Body: `[]`, Header: jsonHeader}, "where an object was due"},
		"a deep nest":     {exchange.Fault{Body: strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), Header: jsonHeader}, "NetBox"},
		"escapes":         {exchange.Fault{Status: 400, Body: `{"detail":"\u001b[2J\u202egone\u0007"}`, Header: jsonHeader}, "[2Jgone"},
		"huge id":         {exchange.Fault{Body: `{"count":1,"next":null,"results":[{"id":99999999999999999999,"slug":"lab1"}]}`, Header: jsonHeader}, "cannot be read"},
		"endless count":   {exchange.Fault{Body: `{"count":2000000000,"next":null,"results":[{"id":1,"slug":"lab1","custom_fields":{}}]}`, Header: jsonHeader}, "more than 10000 pages"},
		"more than there": {exchange.Fault{Body: `{"count":9,"next":null,"results":[{"id":1,"slug":"lab1","custom_fields":{}}]}`, Header: jsonHeader}, "changed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Recorder.Reset()
			f := tc.fault
			f.Kind, f.Path = exchange.Status, "/api/dcim/sites/"
			if f.Status == 0 {
				f.Status = 200
			}
			s.Recorder.Inject(&f)
			intents, failed, err := client(t, s.URL, s.Token).Intents(context.Background(), site(), []string{"gpu-001"})
			got := plan.AsFault(err)
			if got == nil || got.Code != plan.CodeNetBoxProtocol || intents != nil || failed != nil {
				t.Fatalf("%v %v %v", intents, failed, err)
			}
			raw, _ := json.Marshal(got)
			if !strings.Contains(got.Error(), tc.says) || strings.ContainsAny(got.Error(), "\x1b\x07\u202e") || len(raw) > 8000 {
				t.Errorf("%s", got.Error())
			}
		})
	}
}

// An answer without an end is cut off at the limit, not kept in memory.
func TestEndlessAnswer(t *testing.T) {
	var sent atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "2147483648")
		chunk := []byte(`{"count":1,"results":[` + strings.Repeat(" ", 1<<16))
		for r.Context().Err() == nil {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(front.Close)
	c, err := netbox.New(netbox.Options{URL: front.URL, Token: plan.NewSecret(netboxtest.DefaultToken, ""), Timeout: time.Minute, MaxBody: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Intents(context.Background(), site(), []string{"gpu-001"})
	if f := faultOf(t, err, plan.CodeNetBoxProtocol); !strings.Contains(f.Summary, "larger than 1048576 bytes") {
		t.Errorf("%v", f)
	}
	front.CloseClientConnections()
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// Null where an object is due, and records that lead in circles.
func TestCrookedRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		change func(row map[string]any)
		code   plan.Code
		says   string
		whole  bool // the reading fails, not one device
	}{
		"role null":          {path: "/api/dcim/devices/", change: func(r map[string]any) { r["role"] = nil }, code: plan.CodeNetBoxProtocol, says: "role is missing", whole: true},
		"device_type null":   {path: "/api/dcim/devices/", change: func(r map[string]any) { r["device_type"] = nil }, code: plan.CodeNetBoxProtocol, says: "device_type is missing", whole: true},
		"tags null":          {path: "/api/dcim/devices/", change: func(r map[string]any) { r["tags"] = nil }, code: plan.CodeNetBoxProtocol, says: "tags is missing", whole: true},
		"custom_fields null": {path: "/api/dcim/devices/", change: func(r map[string]any) { r["custom_fields"] = nil }, code: plan.CodeNetBoxProtocol, says: "custom_fields is missing", whole: true},
		"name null":          {path: "/api/dcim/devices/", change: func(r map[string]any) { r["name"] = nil }, code: plan.CodeDeviceNotFound, says: "shows no device gpu-001"},
		"manufacturer null":  {path: "/api/dcim/devices/", change: func(r map[string]any) { r["device_type"].(map[string]any)["manufacturer"] = nil }},
		"context null":       {path: "/api/dcim/devices/", change: func(r map[string]any) { r["config_context"] = nil }, code: plan.CodeIntentIncomplete, says: "ironic_settings"},
		"context a list":     {path: "/api/dcim/devices/", change: func(r map[string]any) { r["config_context"] = []any{} }, code: plan.CodeIntentInvalid, says: "a list, not an object"},
		"bay of itself":      {path: "/api/dcim/devices/", change: func(r map[string]any) { r["parent_device"] = map[string]any{"id": 1, "name": "gpu-001"} }, code: plan.CodeIntentInvalid, says: "in a bay of itself: gpu-001 → gpu-001"},
		"interface device":   {path: "/api/dcim/interfaces/", change: func(r map[string]any) { r["device"] = nil }, code: plan.CodeNetBoxProtocol, says: "device is missing", whole: true},
		"interface flags":    {path: "/api/dcim/interfaces/", change: func(r map[string]any) { r["enabled"] = nil }, code: plan.CodeNetBoxProtocol, says: "mgmt_only or enabled is missing", whole: true},
		"interface type":     {path: "/api/dcim/interfaces/", change: func(r map[string]any) { r["type"] = map[string]any{} }, code: plan.CodeNetBoxProtocol, says: "type is missing", whole: true},
		"far end without name": {path: "/api/dcim/interfaces/", change: func(r map[string]any) {
			if ends, _ := r["connected_endpoints"].([]any); len(ends) > 0 {
				ends[0].(map[string]any)["device"] = nil
			}
		}, code: plan.CodeIntentInvalid, says: `has the name ""`},
		"LAG is the port": {path: "/api/dcim/interfaces/", change: func(r map[string]any) {
			if r["lag"] != nil {
				r["lag"].(map[string]any)["id"] = r["id"]
			}
		}, code: plan.CodeIntentInvalid, says: "is the port itself, or a member of it"},
		"address null": {path: "/api/ipam/ip-addresses/", change: func(r map[string]any) { r["address"] = nil }, code: plan.CodeNetBoxProtocol, says: "id or address is missing", whole: true},
		"types null":   {path: "/api/dcim/device-types/", change: func(r map[string]any) { r["custom_fields"] = nil }, code: plan.CodeNetBoxProtocol, says: "custom_fields is missing", whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, netboxtest.Options{}, host(1))
			url := rewritten(t, s, tc.path, tc.change)
			intents, failed, err := client(t, url, s.Token).Intents(context.Background(), site(), []string{"gpu-001"})
			if tc.whole {
				if f := faultOf(t, err, tc.code); !strings.Contains(f.Error(), tc.says) || intents != nil {
					t.Errorf("%v", f)
				}
				return
			}
			var list []*plan.Fault
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range intents {
				list = append(list, in.Faults...)
			}
			for _, d := range failed {
				list = append(list, d.Fault)
			}
			if tc.code == "" && len(list) == 0 {
				return
			}
			if !slices.ContainsFunc(list, func(f *plan.Fault) bool { return f.Code == tc.code && strings.Contains(f.Error(), tc.says) }) {
				t.Errorf("want %s %q, got:\n%s", tc.code, tc.says, texts(list))
			}
		})
	}
}

// Two devices that are in each other's bay.
func TestBaysInACircle(t *testing.T) {
	a, b := host(1), host(2)
	s := serve(t, netboxtest.Options{}, a, b)
	s.Update("gpu-001", func(d *netboxtest.Device) { d.Parent = "gpu-002" })
	s.Update("gpu-002", func(d *netboxtest.Device) { d.Parent = "gpu-001" })
	intents, _, err := client(t, s.URL, s.Token).Intents(context.Background(), site(), []string{"gpu-001", "gpu-002"})
	if err != nil {
		t.Fatal(err)
	}
	for i, way := range []string{"gpu-001 → gpu-002 → gpu-001", "gpu-002 → gpu-001 → gpu-002"} {
		if in := intents[i]; len(in.Faults) != 1 || in.Faults[0].Code != plan.CodeIntentInvalid || !strings.Contains(in.Faults[0].Summary, way) {
			t.Errorf("%s:\n%s", in.Name, texts(in.Faults))
		}
	}
}
