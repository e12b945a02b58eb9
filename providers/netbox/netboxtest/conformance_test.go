package netboxtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// service is a NetBox under test: the simulator or a real one. Its site lab1
// has the devices gpu-001 … gpu-024, each without a gap; gpu-020 … gpu-024 are
// written and put back.
type service struct {
	url, token, readOnly string
}

const (
	siteSlug = "lab1"
	written  = "gpu-020"
	wrongV2  = "nbt_aaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// answer is one HTTP answer, decoded when it is JSON.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   any
}

func (a answer) object() map[string]any { m, _ := a.body.(map[string]any); return m }

func (a answer) results() []map[string]any {
	list, _ := a.object()["results"].([]any)
	out := make([]map[string]any, len(list))
	for i, el := range list {
		out[i], _ = el.(map[string]any)
	}
	return out
}

// send is one exchange. token "" means the service's own; "-" means none.
func (s service) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Del(header[i])
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	client := http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: raw}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return a
}

func (s service) get(t *testing.T, path string, header ...string) answer {
	t.Helper()
	return s.send(t, "GET", path, "", header...)
}

func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, not %d: %.300s", a.status, status, a.raw)
	}
	return a
}

// says wants the words of a refusal somewhere in the body.
func (a answer) says(t *testing.T, words string) answer {
	t.Helper()
	text, err := json.Marshal(a.body)
	if err != nil {
		t.Fatal(err)
	}
	if quoted, _ := json.Marshal(words); !bytes.Contains(text, bytes.Trim(quoted, `"`)) {
		t.Errorf("%d %.300s does not say %q", a.status, a.raw, words)
	}
	return a
}

// device finds a device of the site by name.
func (s service) device(t *testing.T, name string) (id int, full map[string]any) {
	t.Helper()
	list := s.get(t, "/api/dcim/devices/?site="+siteSlug+"&name="+name).want(t, 200).results()
	if len(list) != 1 {
		t.Fatalf("%d devices %s", len(list), name)
	}
	return int(list[0]["id"].(float64)), list[0]
}

func devicePath(id int) string { return fmt.Sprintf("/api/dcim/devices/%d/", id) }

func value(o map[string]any, key string) any {
	m, _ := o[key].(map[string]any)
	return m["value"]
}

func slugs(o map[string]any) []string {
	out := []string{}
	list, _ := o["tags"].([]any)
	for _, el := range list {
		out = append(out, el.(map[string]any)["slug"].(string))
	}
	slices.Sort(out)
	return out
}

// restore puts status and tags of a device back when the test ends.
func (s service) restore(t *testing.T, name string) (path string, before map[string]any) {
	t.Helper()
	id, full := s.device(t, name)
	tags := []any{}
	for _, el := range full["tags"].([]any) {
		tags = append(tags, el.(map[string]any)["id"])
	}
	body, err := json.Marshal(map[string]any{"status": value(full, "status"), "tags": tags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.send(t, "PATCH", devicePath(id), string(body)).want(t, 200) })
	return devicePath(id), full
}

// conformance is what enroll relies on, exchange by exchange.
//
//nolint:gochecknoglobals // the table
var conformance = []struct {
	name string
	run  func(t *testing.T, s service)
}{
	{"the description of a list tells what the token may do", func(t *testing.T, s service) {
		actions := func(header ...string) map[string]any {
			out, _ := s.send(t, "OPTIONS", "/api/dcim/devices/", "", header...).want(t, 200).object()["actions"].(map[string]any)
			return out
		}
		if _, may := actions()["PUT"]; !may {
			t.Error("a token that may write is not told so")
		}
		if _, may := actions("Authorization", "Bearer "+s.readOnly)["PUT"]; may {
			t.Error("a token that may not write is told so")
		}
	}},
	{"every answer names the API version and the request", func(t *testing.T, s service) {
		for _, path := range []string{"/api/status/", "/api/dcim/devices/?limit=1", "/api/dcim/devices/999999999/"} {
			h := s.get(t, path).header
			if !strings.HasPrefix(h.Get("API-Version"), "4.") || len(h.Get("X-Request-ID")) != 36 {
				t.Errorf("%s: API-Version %q, X-Request-ID %q", path, h.Get("API-Version"), h.Get("X-Request-ID"))
			}
		}
		st := s.get(t, "/api/status/").want(t, 200).object()
		if v, _ := st["netbox-version"].(string); !strings.HasPrefix(v, "4.") {
			t.Errorf("status %v", st)
		}
	}},
	{"tokens", func(t *testing.T, s service) {
		path := "/api/dcim/devices/?limit=1"
		s.get(t, path, "Authorization", "Bearer "+s.token).want(t, 200)
		s.get(t, path, "Authorization", "Token "+s.token).want(t, 200)
		s.get(t, path, "Authorization", "").want(t, 403).says(t, "Authentication credentials were not provided.")
		s.get(t, path, "Authorization", "Bearer "+wrongV2).want(t, 403).says(t, "Invalid v2 token")
		s.get(t, path, "Authorization", "Token "+strings.Repeat("0123456789", 4)).want(t, 403).says(t, "Invalid v1 token")
		s.get(t, path, "Authorization", "Bearer nbt_nodot").want(t, 403).says(t, "Could not parse key from v2 token")
		if h := s.get(t, path, "Authorization", "Bearer "+wrongV2).header.Get("WWW-Authenticate"); h != "" {
			t.Errorf("WWW-Authenticate %q", h)
		}
		s.get(t, "/api/authentication-check/").want(t, 200)
		s.get(t, "/api/authentication-check/", "Authorization", "Bearer "+wrongV2).want(t, 403)
	}},
	{"a read-only token reads and does not write", func(t *testing.T, s service) {
		id, _ := s.device(t, written)
		auth := "Bearer " + s.readOnly
		s.get(t, devicePath(id), "Authorization", auth).want(t, 200)
		s.send(t, "PATCH", devicePath(id), `{"status":"staged"}`, "Authorization", auth).want(t, 403).says(t, "You do not have permission to perform this action.")
	}},
	{"addresses that do not exist", func(t *testing.T, s service) {
		a := s.get(t, "/api/nope/").want(t, 404)
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			t.Errorf("type %q", a.header.Get("Content-Type"))
		}
		s.get(t, "/api/dcim/devices/999999999/").want(t, 404).says(t, "No Device matches the given query.")
		s.send(t, "PATCH", "/api/dcim/devices/999999999/", `{"status":"active"}`).want(t, 404).says(t, "No Device matches the given query.")
		s.get(t, "/api/dcim/interfaces/999999999/").want(t, 404).says(t, "No Interface matches the given query.")
		a = s.get(t, "/api/dcim/devices?limit=1").want(t, 301)
		if to := a.header.Get("Location"); !strings.HasSuffix(to, "/api/dcim/devices/?limit=1") {
			t.Errorf("Location %q", to)
		}
	}},
	{"filters", func(t *testing.T, s service) {
		count := func(query string) int {
			t.Helper()
			n, _ := s.get(t, "/api/dcim/devices/?limit=1&"+query).want(t, 200).object()["count"].(float64)
			return int(n)
		}
		all := count("")
		for query, want := range map[string]int{
			"site=lab1&name=gpu-020": 1, "name=GPU-020": 1, "site=lab1&name=gpu-020&name=gpu-021&name=gpu-404": 2, "name=gpu-02": 0,
			"nmae=gpu-020": all, "id=999999999": 0,
		} {
			if got := count(query); got != want {
				t.Errorf("%s: %d, not %d", query, got, want)
			}
		}
		if staged, active, both := count("status=staged"), count("status=active"), count("status=staged&status=active"); both != staged+active || both == 0 {
			t.Errorf("%d staged, %d active, %d of either", staged, active, both)
		}
		bad := map[string]string{
			"/api/dcim/devices/?site=nowhere":         "nowhere is not one of the available choices.",
			"/api/dcim/devices/?role=nobody":          "nobody is not one of the available choices.",
			"/api/dcim/devices/?role_id=999999":       "999999 is not one of the available choices.",
			"/api/dcim/devices/?status=odd":           "odd is not one of the available choices.",
			"/api/dcim/devices/?tag=nope":             "nope is not one of the available choices.",
			"/api/dcim/devices/?id=abc":               "Enter a whole number.",
			"/api/dcim/interfaces/?device_id=9999999": "9999999 is not one of the available choices.",
		}
		for path, words := range bad {
			s.get(t, path).want(t, 400).says(t, words)
		}
		for _, path := range []string{"/api/dcim/sites/?slug=nowhere", "/api/dcim/device-roles/?slug=nobody", "/api/extras/tags/?slug=nope", "/api/ipam/ip-addresses/?id=999999999"} {
			if n := len(s.get(t, path).want(t, 200).results()); n != 0 {
				t.Errorf("%s: %d", path, n)
			}
		}
	}},
	{"racks and tags", func(t *testing.T, s service) {
		path, d := s.restore(t, written)
		s.send(t, "PATCH", path, `{"tags":[{"slug":"ironic"}]}`).want(t, 200)
		rack := d["rack"].(map[string]any)
		racks := s.get(t, "/api/dcim/racks/?site="+siteSlug+"&limit=1000&ordering=id&fields=id,name,site").want(t, 200).results()
		n := slices.IndexFunc(racks, func(r map[string]any) bool { return r["name"] == rack["name"] })
		if n < 0 || racks[n]["id"] != rack["id"] || racks[n]["site"].(map[string]any)["slug"] != siteSlug {
			t.Fatalf("rack %v is not among %v", rack, racks)
		}
		inRack := fmt.Sprintf("/api/dcim/devices/?site=%s&rack_id=%d&limit=1000", siteSlug, int(rack["id"].(float64)))
		for query, want := range map[string]bool{"": true, "&tag=ironic": true, "&tag=ironic&tag=ipmi_exporter": false} {
			list := s.get(t, inRack+query).want(t, 200).results()
			if got := slices.ContainsFunc(list, func(r map[string]any) bool { return r["name"] == written }); got != want {
				t.Errorf("%q: %s is listed: %t", query, written, got)
			}
		}
		s.get(t, "/api/dcim/devices/?rack_id=999999").want(t, 400).says(t, "999999 is not one of the available choices.")
		if n := len(s.get(t, "/api/dcim/racks/?site="+siteSlug+"&name=nope").want(t, 200).results()); n != 0 {
			t.Errorf("%d racks nope", n)
		}
	}},
	{"the filters of the bulk read", func(t *testing.T, s service) {
		id, d := s.device(t, written)
		role := int(d["role"].(map[string]any)["id"].(float64))
		rows := func(path string) []map[string]any { t.Helper(); return s.get(t, path).want(t, 200).results() }
		own := rows(fmt.Sprintf("/api/dcim/interfaces/?device_id=%d&limit=1000", id))
		if n, _ := d["interface_count"].(float64); int(n) != len(own) {
			t.Errorf("interface_count %v, %d interfaces", d["interface_count"], len(own))
		}
		mac := own[0]["mac_address"].(string)
		has := func(list []map[string]any) bool {
			return slices.ContainsFunc(list, func(r map[string]any) bool { return r["id"] == own[0]["id"] })
		}
		of := fmt.Sprintf("/api/dcim/interfaces/?site=%s&limit=1000&fields=id,device", siteSlug)
		for query, want := range map[string]bool{
			fmt.Sprintf("&device_role_id=%d", role): true, fmt.Sprintf("&device_role_id__n=%d", role): false,
			"&mac_address__isw=" + mac[:8]: true, "&mac_address__isw=" + strings.ToLower(mac[:8]): true, "&mac_address__isw=fe:ff:ff": false,
			fmt.Sprintf("&device_role_id=%d&mac_address__isw=fe:ff:ff&mac_address__isw=%s", role, mac[:8]): true,
		} {
			if got := has(rows(of + query)); got != want {
				t.Errorf("%s: interface %v is listed: %t", query, own[0]["id"], got)
			}
		}
		for _, r := range rows(fmt.Sprintf("/api/dcim/interfaces/?device_id=%d&cabled=true&limit=1000", id)) {
			if r["cable"] == nil {
				t.Errorf("cabled=true lists %v without a cable", r["name"])
			}
		}
		oob := d["oob_ip"].(map[string]any)
		for network, want := range map[string]bool{"0.0.0.0/0": true, "203.0.112.0/31": false} {
			list := rows("/api/ipam/ip-addresses/?limit=1000&fields=id&parent=" + network)
			if got := slices.ContainsFunc(list, func(r map[string]any) bool { return r["id"] == oob["id"] }); got != want {
				t.Errorf("parent=%s: the address %v is listed: %t", network, oob["address"], got)
			}
		}
	}},
	{"the bulk read in one list", func(t *testing.T, s service) {
		_, d := s.device(t, written)
		role := d["role"].(map[string]any)["id"].(float64)
		path := fmt.Sprintf("/api/dcim/devices/?site=%s&role_id=%d&limit=1000&ordering=id&fields=id,name,status,role,nope", siteSlug, int(role))
		list := s.get(t, path).want(t, 200).results()
		if len(list) < 24 {
			t.Fatalf("%d devices", len(list))
		}
		last := 0.0
		for _, row := range list {
			if len(row) != 4 || row["id"].(float64) <= last {
				t.Fatalf("row %v after id %v", row, last)
			}
			last = row["id"].(float64)
		}
	}},
	{"fields, omit and brief", func(t *testing.T, s service) {
		id, _ := s.device(t, written)
		keys := func(query string) []string {
			t.Helper()
			var out []string
			for k := range s.get(t, devicePath(id)+query).want(t, 200).object() {
				out = append(out, k)
			}
			slices.Sort(out)
			return out
		}
		if got := keys("?fields=id,name,nope,config_context"); !slices.Equal(got, []string{"config_context", "id", "name"}) {
			t.Errorf("fields: %v", got)
		}
		if got := keys("?brief=1"); !slices.Equal(got, []string{"description", "display", "id", "name", "url"}) {
			t.Errorf("brief: %v", got)
		}
		full, less := keys(""), keys("?omit=config_context,tags")
		if len(full) != len(less)+2 || !slices.Contains(full, "config_context") || slices.Contains(less, "tags") {
			t.Errorf("omit: %v", less)
		}
	}},
	{"pages", func(t *testing.T, s service) {
		a := s.get(t, "/api/dcim/devices/?site=lab1&limit=5&ordering=id").want(t, 200).object()
		count := int(a["count"].(float64))
		next, _ := a["next"].(string)
		u, err := url.Parse(next)
		if err != nil || u.Query().Get("offset") != "5" || u.Query().Get("limit") != "5" || a["previous"] != nil {
			t.Errorf("next %q, previous %v", next, a["previous"])
		}
		seen := map[float64]bool{}
		for offset := 0; offset < count; offset += 5 {
			for _, row := range s.get(t, fmt.Sprintf("/api/dcim/devices/?site=lab1&limit=5&ordering=id&offset=%d", offset)).want(t, 200).results() {
				seen[row["id"].(float64)] = true
			}
		}
		if len(seen) != count {
			t.Errorf("%d different rows of %d", len(seen), count)
		}
		if n := len(s.get(t, fmt.Sprintf("/api/dcim/devices/?site=lab1&limit=5&offset=%d", count+10)).want(t, 200).results()); n != 0 {
			t.Errorf("%d rows behind the end", n)
		}
		all := s.get(t, "/api/dcim/interfaces/").want(t, 200)
		if total := int(all.object()["count"].(float64)); total < 51 || len(all.results()) != 50 {
			t.Errorf("%d of %d interfaces without a limit", len(all.results()), total)
		}
		for _, limit := range []string{"0", "5000"} {
			whole := s.get(t, "/api/dcim/interfaces/?fields=id&limit="+limit).want(t, 200)
			if total := int(whole.object()["count"].(float64)); len(whole.results()) != min(total, 1000) {
				t.Errorf("limit=%s: %d of %d", limit, len(whole.results()), total)
			}
		}
		cursor := s.get(t, "/api/dcim/devices/?start=0&limit=2&fields=id").want(t, 200).object()
		if next, _ := cursor["next"].(string); cursor["count"] != nil || !strings.Contains(next, "start=") {
			t.Errorf("cursor page %v", cursor)
		}
		s.get(t, "/api/dcim/devices/?start=3&offset=2").want(t, 400).says(t, "'start' and 'offset' are mutually exclusive.")
	}},
	{"a device", func(t *testing.T, s service) {
		id, _ := s.device(t, written)
		d := s.get(t, devicePath(id)).want(t, 200).object()
		if value(d, "status") != "staged" && value(d, "status") != "active" {
			t.Errorf("status %v", d["status"])
		}
		for _, key := range []string{"role", "site", "device_type", "rack", "oob_ip", "custom_fields", "config_context"} {
			if _, ok := d[key].(map[string]any); !ok {
				t.Errorf("%s is %v", key, d[key])
			}
		}
		if _, ok := d["position"].(float64); !ok {
			t.Errorf("position is %v", d["position"])
		}
		if _, ok := d["custom_fields"].(map[string]any)["platform_class"]; !ok {
			t.Error("custom field platform_class is missing")
		}
		settings, _ := d["config_context"].(map[string]any)["ironic_settings"].(map[string]any)
		if settings["driver"] == nil || settings["interface_type"] == nil {
			t.Errorf("ironic_settings %v", settings)
		}
		if typ, _ := d["device_type"].(map[string]any); typ["manufacturer"] == nil || typ["custom_fields"] != nil {
			t.Errorf("device_type %v", typ)
		}
	}},
	{"interfaces, cables and LAGs", func(t *testing.T, s service) {
		id, d := s.device(t, written)
		kind := d["config_context"].(map[string]any)["ironic_settings"].(map[string]any)["interface_type"]
		list := s.get(t, fmt.Sprintf("/api/dcim/interfaces/?device_id=%d&limit=1000&ordering=id", id)).want(t, 200).results()
		cabled := 0
		for _, i := range list {
			if mac, _ := i["mac_address"].(string); mac != "" {
				primary, _ := i["primary_mac_address"].(map[string]any)
				macs, _ := i["mac_addresses"].([]any)
				if mac != strings.ToUpper(mac) || primary["mac_address"] != mac || len(macs) == 0 {
					t.Errorf("MAC of %v: %v, %v, %v", i["name"], mac, primary, macs)
				}
				for _, text := range []string{mac, strings.ToLower(mac)} {
					found := s.get(t, "/api/dcim/interfaces/?mac_address="+text).want(t, 200).results()
					if len(found) != 1 || found[0]["id"] != i["id"] {
						t.Errorf("mac_address=%s finds %d", text, len(found))
					}
				}
			}
			if value(i, "type") != kind || i["mgmt_only"] == true {
				continue
			}
			ends, _ := i["connected_endpoints"].([]any)
			if len(ends) != 1 || i["connected_endpoints_type"] != "dcim.interface" || i["connected_endpoints_reachable"] != true {
				t.Fatalf("%v ends at %v (%v)", i["name"], ends, i["connected_endpoints_type"])
			}
			cabled++
			end := ends[0].(map[string]any)
			if end["device"].(map[string]any)["name"] == "" || end["name"] == "" {
				t.Errorf("end %v", end)
			}
			if _, there := end["lag"]; there {
				t.Error("the nested far end has a lag: one request could be saved")
			}
			port := s.get(t, fmt.Sprintf("/api/dcim/interfaces/?id=%d&fields=id,name,label,device,lag", int(end["id"].(float64)))).want(t, 200).results()
			if len(port) != 1 || len(port[0]) != 5 {
				t.Errorf("port %v", port)
			}
			trace := s.get(t, fmt.Sprintf("/api/dcim/interfaces/%d/trace/", int(i["id"].(float64)))).want(t, 200)
			segments, _ := trace.body.([]any)
			if len(segments) == 0 {
				t.Fatalf("trace %.200s", trace.raw)
			}
			far := segments[len(segments)-1].([]any)[2].([]any)[0].(map[string]any)
			if far["id"] != end["id"] {
				t.Errorf("trace ends at %v, connected_endpoints at %v", far, end)
			}
		}
		if cabled == 0 {
			t.Error("no frontend interface")
		}
	}},
	{"the out-of-band address", func(t *testing.T, s service) {
		id, d := s.device(t, written)
		oob := d["oob_ip"].(map[string]any)
		if _, there := oob["assigned_object_id"]; there {
			t.Error("the nested oob_ip names its interface: one request could be saved")
		}
		a := s.get(t, fmt.Sprintf("/api/ipam/ip-addresses/?id=%d", int(oob["id"].(float64)))).want(t, 200).results()[0]
		on, _ := a["assigned_object"].(map[string]any)
		if a["assigned_object_type"] != "dcim.interface" || on["id"] != a["assigned_object_id"] || int(on["device"].(map[string]any)["id"].(float64)) != id || value(a, "status") != "active" {
			t.Errorf("address %v", a)
		}
		if _, there := a["vrf"]; !there {
			t.Error("no vrf")
		}
		text := a["address"].(string)
		host, _, _ := strings.Cut(text, "/")
		for _, q := range []string{host, url.QueryEscape(text)} {
			if found := s.get(t, "/api/ipam/ip-addresses/?address="+q).want(t, 200).results(); len(found) != 1 || found[0]["id"] != a["id"] {
				t.Errorf("address=%s finds %d", q, len(found))
			}
		}
		if found := s.get(t, "/api/ipam/ip-addresses/?address="+host+"9").object()["count"]; found != 0.0 {
			t.Errorf("another address finds %v", found)
		}
	}},
	{"ETag and If-Match", func(t *testing.T, s service) {
		path, d := s.restore(t, written)
		first := s.get(t, path+"?fields=id,last_updated").want(t, 200)
		tag := first.header.Get("ETag")
		updated, _ := first.object()["last_updated"].(string)
		if want := `W/"` + strings.TrimSuffix(updated, "Z") + `+00:00"`; tag != want {
			t.Fatalf("ETag %q, not %q", tag, want)
		}
		for _, stale := range []string{`W/"2020-01-01T00:00:00.000001+00:00"`, strings.TrimPrefix(tag, "W/"), strings.TrimSuffix(tag, `"`) + `-gzip"`} {
			a := s.send(t, "PATCH", path, `{"status":"active"}`, "If-Match", stale).want(t, 412).says(t, "Precondition failed.")
			if a.header.Get("ETag") != tag {
				t.Errorf("412 with ETag %q, not %q", a.header.Get("ETag"), tag)
			}
		}
		status, _ := json.Marshal(map[string]any{"status": value(d, "status")})
		done := s.send(t, "PATCH", path+"?fields=id,name,status,last_updated", string(status), "If-Match", tag).want(t, 200)
		if len(done.object()) != 4 || done.header.Get("ETag") == tag || done.header.Get("ETag") == "" {
			t.Errorf("PATCH answers %v, ETag %q", done.object(), done.header.Get("ETag"))
		}
		s.send(t, "PATCH", path, string(status), "If-Match", tag).want(t, 412)
		s.send(t, "PATCH", path, string(status), "If-Match", "*").want(t, 200)
		if h := s.get(t, "/api/dcim/devices/?site=lab1&name="+written).header.Get("ETag"); h != "" {
			t.Errorf("a list has the ETag %q", h)
		}
	}},
	{"status", func(t *testing.T, s service) {
		path, _ := s.restore(t, written)
		s.send(t, "PATCH", path, `{"status":"staged"}`).want(t, 200)
		a := s.send(t, "PATCH", path, `{"status":"active","changelog_message":"enroll test: status"}`).want(t, 200)
		if value(a.object(), "status") != "active" || a.object()["config_context"] == nil {
			t.Errorf("answer %.200s", a.raw)
		}
		if value(s.get(t, path).object(), "status") != "active" {
			t.Error("not stored")
		}
		log := s.get(t, "/api/core/object-changes/?request_id="+a.header.Get("X-Request-ID")).want(t, 200).results()
		if len(log) != 1 || log[0]["message"] != "enroll test: status" {
			t.Errorf("change log %v", log)
		}
		s.send(t, "PATCH", path, `{"status":"bogus"}`).want(t, 400).says(t, "bogus is not a valid choice.")
		s.send(t, "PATCH", path, `{"status":{"value":"staged"}}`).want(t, 400).says(t, "Value must be passed directly")
		s.send(t, "PATCH", path, `{"status":null}`).want(t, 400).says(t, "This field may not be blank.")
		s.send(t, "PATCH", path, `not JSON`).want(t, 400).says(t, "JSON parse error - Expecting value: line 1 column 1 (char 0)")
	}},
	{"writes that say nothing", func(t *testing.T, s service) {
		path, d := s.restore(t, written)
		status, _ := json.Marshal(map[string]any{"status": value(d, "status"), "nope": 1})
		before := s.get(t, path).object()
		a := s.send(t, "PATCH", path, string(status)).want(t, 200)
		if a.object()["last_updated"] == before["last_updated"] {
			t.Error("last_updated stays when a PATCH changes nothing")
		}
		if log := s.get(t, "/api/core/object-changes/?request_id="+a.header.Get("X-Request-ID")).want(t, 200).results(); len(log) != 0 {
			t.Errorf("an empty change is logged: %v", log)
		}
		after := a.object()
		for _, key := range []string{"serial", "position", "tags", "custom_fields", "oob_ip", "config_context"} {
			if !reflect.DeepEqual(before[key], after[key]) {
				t.Errorf("%s: %v became %v", key, before[key], after[key])
			}
		}
	}},
	{"tags", func(t *testing.T, s service) {
		path, _ := s.restore(t, written)
		tags := func(a answer) string { return strings.Join(slugs(a.object()), " ") }
		if got := tags(s.send(t, "PATCH", path, `{"tags":[]}`).want(t, 200)); got != "" {
			t.Fatalf("tags %q", got)
		}
		id := s.get(t, "/api/extras/tags/?slug=ironic").want(t, 200).results()[0]["id"].(float64)
		for _, body := range []string{`{"add_tags":[{"slug":"ironic"}]}`, `{"add_tags":[{"slug":"ironic"}]}`, fmt.Sprintf(`{"tags":[%d]}`, int(id)), `{"tags":[{"slug":"ironic"}]}`} {
			if got := tags(s.send(t, "PATCH", path, body).want(t, 200)); got != "ironic" {
				t.Errorf("%s: tags %q", body, got)
			}
		}
		if got := tags(s.send(t, "PATCH", path, `{"remove_tags":[{"slug":"ironic"}]}`).want(t, 200)); got != "" {
			t.Errorf("tags %q", got)
		}
		s.send(t, "PATCH", path, `{"add_tags":[{"slug":"nope"}]}`).want(t, 500).says(t, "Related object not found using the provided attributes")
		s.send(t, "PATCH", path, `{"tags":[{"slug":"nope"}]}`).want(t, 400).says(t, "Related object not found using the provided attributes: {'slug': 'nope'}")
		s.send(t, "PATCH", path, `{"tags":[{"slug":"ironic"}],"add_tags":[{"slug":"ironic"}]}`).want(t, 400).says(t, "Cannot specify")
		if got := tags(s.get(t, path)); got != "" {
			t.Errorf("a refused write left tags %q", got)
		}
	}},
	{"custom fields and notes", func(t *testing.T, s service) {
		path, _ := s.restore(t, written)
		s.send(t, "PATCH", path, `{"custom_fields":{"nope":"x"}}`).want(t, 400).says(t, "Custom field 'nope' does not exist for this object type.")
		note := func(n int) string { return `{"changelog_message":"` + strings.Repeat("x", n) + `"}` }
		s.send(t, "PATCH", path, note(200)).want(t, 200)
		body := `{"status":"offline",` + note(201)[1:]
		s.send(t, "PATCH", path, body).want(t, 500).says(t, "value too long for type character varying(200)")
		if value(s.get(t, path).object(), "status") == "offline" {
			t.Error("the write behind the 500 was stored")
		}
	}},
	{"a URL as long as enroll makes them", func(t *testing.T, s service) {
		s.get(t, "/api/dcim/devices/?fields=id&"+strings.Repeat("id=1&", 790)).want(t, 200)
	}},
	{"enroll reads and writes a device", func(t *testing.T, s service) {
		s.restore(t, "gpu-021")
		id, d := s.device(t, "gpu-021")
		s.send(t, "PATCH", devicePath(id), `{"status":"staged","tags":[]}`).want(t, 200)
		role := d["role"].(map[string]any)["slug"].(string)
		st := &plan.Site{
			Name: "lab", NetBox: plan.NetBoxSettings{Site: siteSlug}, Classes: []plan.DeviceClass{{Name: "COMPUTE_GPU", Roles: []string{role}}},
			Ironics: []plan.IronicSettings{{Name: "main", DeviceClasses: []string{"COMPUTE_GPU"}}},
		}
		c, err := netbox.New(netbox.Options{URL: s.url, Token: plan.NewSecret(s.token, ""), ChangelogMessage: "enroll test"})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		names, err := c.Names(ctx, st, netbox.Filter{})
		if err != nil || !slices.Contains(names, "gpu-021") || len(names) < 24 {
			t.Fatalf("%v %v", names, err)
		}
		before := c.Requests()
		intents, failed, err := c.Intents(ctx, st, names)
		if err != nil || len(failed) > 0 || len(intents) != len(names) {
			t.Fatalf("%d intents, %v, %v", len(intents), failed, err)
		}
		t.Logf("%d intents took %d requests", len(intents), c.Requests()-before)
		sc := &plan.Scope{Site: st}
		for _, in := range intents {
			if in.Name == "gpu-021" {
				for _, f := range in.Faults {
					t.Errorf("%v", f)
				}
				sc.Targets = append(sc.Targets, &plan.Target{Site: st, Intent: in})
			}
		}
		res := plan.Desired(sc, netbox.Kinds())
		p := plan.Build(plan.Input{Scope: sc, Kinds: netbox.Kinds(), World: c.Read(ctx, sc, res), Owners: map[string]plan.Ownership{"gpu-021": {State: plan.StateAvailable}}})
		if len(p.Steps) != 2 {
			t.Fatalf("steps %v", p.Steps)
		}
		for _, step := range p.Steps {
			if r := c.Run(ctx, sc, step, nil); r.Outcome != plan.OutcomeDone {
				t.Fatalf("%s: %s %v", step.Address, r.Outcome, r.Fault)
			}
			if live := c.Read(ctx, sc, res).Get(step.Address); !plan.Satisfies(step.After, live.Value) {
				t.Errorf("%s: read-back %v", step.Address, live)
			}
			if r := c.Run(ctx, sc, step, nil); r.Outcome != plan.OutcomeAlready {
				t.Errorf("%s again: %s %v", step.Address, r.Outcome, r.Fault)
			}
		}
		again, _, err := c.Intents(ctx, st, []string{"gpu-021"})
		if err != nil || again[0].Hash != sc.Targets[0].Intent.Hash {
			t.Errorf("enroll's own writes moved the intent: %v", err)
		}
	}},
}

// gunicorn, which NetBox's documentation sets up, refuses a longer request
// line; the lab's server need not be gunicorn.
func TestLongRequestLine(t *testing.T) {
	s := netboxtest.New(netboxtest.Options{})
	defer s.Close()
	a := service{url: s.URL, token: s.Token}.get(t, "/api/dcim/devices/?"+strings.Repeat("id=1&", 900)).want(t, 400)
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("type %q", a.header.Get("Content-Type"))
	}
}

func conform(t *testing.T, s service) {
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// labDevice is a device as the lab's NetBox has them.
func labDevice(n int) netboxtest.Device {
	mac := func(port int) string { return fmt.Sprintf("02:00:5e:00:%02x:%02x", n, port) }
	rack := fmt.Sprintf("r%02d", (n-1)/5+1)
	port := func(k int) netboxtest.Peer {
		return netboxtest.Peer{Device: fmt.Sprintf("leaf-%s-%d", rack, k), Port: fmt.Sprintf("Ethernet1/%d", (n-1)%5+1)}
	}
	return netboxtest.Device{
		Name: fmt.Sprintf("gpu-%03d", n), Serial: fmt.Sprintf("SVC%04d", n), Rack: rack, Position: float64(1 + 8*((n-1)%5)), Site: siteSlug,
		Type:    netboxtest.Type{CustomFields: map[string]any{"gpu_type": "H100"}},
		Context: map[string]any{"ironic_settings": map[string]any{"driver": "redfish", "interface_type": "25gbase-x-sfp28", "raid_interface": "no-raid"}},
		OOB:     netboxtest.OOB{Address: fmt.Sprintf("198.18.0.%d/24", n+1), Interface: "bmc"},
		Interfaces: []netboxtest.Interface{
			{Name: "bmc", MAC: mac(0), MgmtOnly: true},
			{Name: "eth0", Type: "25gbase-x-sfp28", MAC: mac(1), Peer: port(1), Panels: []string{"pp-1", "pp-2"}},
			{Name: "eth1", Type: "25gbase-x-sfp28", MAC: mac(2), Peer: port(2)},
		},
	}
}

func TestConformance(t *testing.T) {
	s := netboxtest.New(netboxtest.Options{})
	defer s.Close()
	s.AddTag("ironic")
	s.AddTag("ipmi_exporter")
	for n := 1; n <= 24; n++ {
		s.AddDevice(labDevice(n))
	}
	service := service{url: s.URL, token: s.Token, readOnly: s.ReadOnlyToken}
	conform(t, service)
	t.Run("writers at once", func(t *testing.T) { writeAtOnce(t, service, 5) })
	for n := 1; n <= 24; n++ {
		name := labDevice(n).Name
		if d, _ := s.Device(name); name != "gpu-022" && (d.Status != "staged" || len(d.Tags) > 0 || len(d.CustomFields) > 0) {
			t.Errorf("the suite leaves %s with status %s, tags %v, custom fields %v", name, d.Status, d.Tags, d.CustomFields)
		}
	}
}
