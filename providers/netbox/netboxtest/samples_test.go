package netboxtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// Answers of a real NetBox 4.7.3 are in testdata. The simulator is seeded with
// the same two servers and must answer the same requests in the same shape:
// the same keys with the same kinds of values, null where the real one has null.

func sampleServer(t *testing.T) service {
	t.Helper()
	s := netboxtest.New(netboxtest.Options{Site: "lon14", Fields: []netboxtest.Field{
		{Object: "dcim.device", Name: "platform_class"}, {Object: "dcim.device", Name: "platform_class_select", Choices: []string{"h100", "h200"}, Set: "gpu types"},
		{Object: "dcim.devicetype", Name: "gpu_type", Choices: []string{"h100", "h200"}}, {Object: "dcim.site", Name: "ntp_servers"}, {Object: "dcim.site", Name: "syslog_servers"},
	}})
	t.Cleanup(s.Close)
	s.AddSite(netboxtest.Site{Slug: "lon14", CustomFields: map[string]any{"ntp_servers": []any{"192.0.2.10", "192.0.2.11"}, "syslog_servers": []any{"192.0.2.20"}}})
	context := map[string]any{
		"ntp": []any{"192.0.2.11"}, "ztp": map[string]any{"url": "http://198.51.100.30/ztp", "enabled": true, "infiniband": map[string]any{"partition": "0x8001"}},
		"ironic_settings": map[string]any{
			"bond": map[string]any{"mode": "802.3ad", "interfaces": []any{"eth0", "eth1"}}, "root_device": map[string]any{"size": ">= 400"}, "run_inspection": true,
		},
		"inspection_validation": map[string]any{"gpus": 8},
	}
	more := map[string]any{"force_inspection": true}
	for k, v := range context["ironic_settings"].(map[string]any) {
		more[k] = v
	}
	second := map[string]any{"ntp": context["ntp"], "ztp": context["ztp"], "inspection_validation": context["inspection_validation"], "ironic_settings": more}
	leaf := func(n int) netboxtest.Peer {
		return netboxtest.Peer{Device: "leaf-n01-1", Port: fmt.Sprintf("Ethernet%d/1", n), Label: fmt.Sprintf("swp%d", n), Text: fmt.Sprintf("server port %d", n)}
	}
	inLAG := func(n int) netboxtest.Peer { p := leaf(n); p.LAG = "Port-Channel1"; return p }
	kind := netboxtest.Type{CustomFields: map[string]any{"gpu_type": "h200"}}
	s.AddDevice(netboxtest.Device{
		Name: "gpu-017", Serial: "SN000017", Rack: "a12", Position: 10, Location: "hall-1", Type: kind, Context: context,
		OOB: netboxtest.OOB{Address: "192.0.2.117/24", Interface: "bmc"},
		Interfaces: []netboxtest.Interface{
			{Name: "bmc", MAC: "02:00:00:00:17:01", MgmtOnly: true, Peer: netboxtest.Peer{Device: "mgmt-n01-1", Port: "Ethernet1"}},
			{Name: "eth0", Type: "100gbase-sr4", MAC: "02:00:00:00:17:02", Peer: inLAG(1), Panels: []string{"pp-a12", "pp-n01"}},
			{Name: "eth1", Type: "100gbase-sr4", MAC: "02:00:00:00:17:03", Peer: inLAG(2)},
			{Name: "ib0", Type: "infiniband-ndr", MAC: "02:00:00:00:17:04"},
		},
	})
	s.AddDevice(netboxtest.Device{
		Name: "gpu-018", Serial: "SN000018", Rack: "a12", Position: 20, Location: "hall-1", Type: kind, Context: second,
		OOB: netboxtest.OOB{Address: "198.51.100.118/24", Interface: "bmc", Inside: "192.0.2.118/24"},
		Interfaces: []netboxtest.Interface{
			{Name: "bmc", MAC: "02:00:00:00:18:01", MgmtOnly: true},
			{Name: "eth0", Type: "100gbase-sr4", MAC: "02:00:00:00:18:02", Peer: leaf(3), Panels: []string{"pp-a12", "pp-n01"}, Planned: true},
			{Name: "eth1", Type: "100gbase-sr4", MACs: []string{"02:00:00:00:18:03", "02:00:00:00:18:0A"}, Peer: leaf(4), More: []netboxtest.Peer{leaf(5)}},
		},
	})
	s.AddTag("ironic")
	return service{url: s.URL, token: s.Token, readOnly: s.ReadOnlyToken}
}

func sample(t *testing.T, name string) any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	}
	return fmt.Sprintf("%T", v)
}

// shapes lists where two answers differ in shape.
func shapes(path string, lab, sim any) []string {
	if kindOf(lab) != kindOf(sim) {
		return []string{fmt.Sprintf("%s: NetBox has %s, the simulator %s", path, kindOf(lab), kindOf(sim))}
	}
	var out []string
	switch lab := lab.(type) {
	case map[string]any:
		sim := sim.(map[string]any)
		for k, v := range lab {
			if got, ok := sim[k]; ok {
				out = append(out, shapes(path+"."+k, v, got)...)
			} else {
				out = append(out, path+"."+k+": only NetBox has it")
			}
		}
		for k := range sim {
			if _, ok := lab[k]; !ok {
				out = append(out, path+"."+k+": only the simulator has it")
			}
		}
	case []any:
		sim := sim.([]any)
		if len(lab) != len(sim) {
			return []string{fmt.Sprintf("%s: NetBox has %d entries, the simulator %d", path, len(lab), len(sim))}
		}
		for i := range lab {
			out = append(out, shapes(fmt.Sprintf("%s[%d]", path, i), lab[i], sim[i])...)
		}
	}
	sort.Strings(out)
	return out
}

func TestSampleShapes(t *testing.T) {
	s := sampleServer(t)
	find := func(list, query string) int {
		rows := s.get(t, "/api/"+list+"/?fields=id&"+query).want(t, 200).results()
		if len(rows) != 1 {
			t.Fatalf("%d rows for %s?%s", len(rows), list, query)
		}
		return int(rows[0]["id"].(float64))
	}
	nic := func(device, name string) int {
		return find("dcim/interfaces", "name="+name+"&device_id="+fmt.Sprint(find("dcim/devices", "name="+device)))
	}
	path := func(format string, args ...any) string { return "/api/" + fmt.Sprintf(format, args...) }
	d17 := find("dcim/devices", "name=gpu-017")
	fields := "fields=id,name,type,device,mgmt_only,enabled,mac_address,lag,connected_endpoints,connected_endpoints_type,connected_endpoints_reachable"
	address := "fields=id,address,status,assigned_object_type,assigned_object_id,assigned_object,nat_inside,nat_outside"
	for _, tc := range []struct{ file, path, body string }{
		{"status.json", path("status/"), ""},
		{"device-detail.json", path("dcim/devices/%d/", d17), ""},
		{"device-list-brief.json", path("dcim/devices/?brief=1&limit=2"), ""},
		{"device-list-fields.json", path("dcim/devices/?role=gpu-compute&limit=1000&fields=id,name,status,device_type,oob_ip,tags,custom_fields,config_context,last_updated"), ""},
		{"device-role.json", path("dcim/device-roles/%d/", find("dcim/device-roles", "slug=gpu-compute")), ""},
		{"device-type.json", path("dcim/device-types/%d/?fields=id,model,slug,manufacturer,custom_fields", find("dcim/device-types", "slug=hg635n-v2")), ""},
		{"site.json", path("dcim/sites/%d/?fields=id,name,slug,status,custom_fields", find("dcim/sites", "slug=lon14")), ""},
		{"interfaces-list.json", path("dcim/interfaces/?device_id=%d&limit=1000&%s", d17, fields), ""},
		{"interface-detail-panels.json", path("dcim/interfaces/%d/", nic("gpu-017", "eth0")), ""},
		{"interface-planned-trunk.json", path("dcim/interfaces/%d/?%s,cable,link_peers,link_peers_type", nic("gpu-018", "eth0"), fields), ""},
		{"interface-two-endpoints.json", path("dcim/interfaces/%d/?%s,primary_mac_address,mac_addresses", nic("gpu-018", "eth1"), fields), ""},
		{"trace-through-panels.json", path("dcim/interfaces/%d/trace/", nic("gpu-017", "eth0")), ""},
		{"trace-uncabled.json", path("dcim/interfaces/%d/trace/", nic("gpu-017", "ib0")), ""},
		{"peer-lag.json", path("dcim/interfaces/?name=Ethernet1/1&name=Ethernet2/1&name=Ethernet3/1&ordering=id&fields=id,name,label,description,device,lag"), ""},
		{"ip-address-oob.json", path("ipam/ip-addresses/?id=%d&%s", find("ipam/ip-addresses", "address=192.0.2.117"), address), ""},
		{"ip-address-oob-nat.json", path("ipam/ip-addresses/%d/?%s", find("ipam/ip-addresses", "address=198.51.100.118"), address), ""},
		{"cursor-page.json", path("dcim/devices/?start=0&limit=2&fields=id,name"), ""},
		{"patch-status-active.json", path("dcim/devices/%d/?fields=id,name,status,last_updated", d17), `{"status":"active","changelog_message":"enroll run 7f3a: staged to active"}`},
		{"patch-add-tags.json", path("dcim/devices/%d/?fields=id,name,tags", d17), `{"add_tags":[{"slug":"ironic"}]}`},
		{"patch-custom-field.json", path("dcim/devices/%d/?fields=id,name,custom_fields", d17), `{"custom_fields":{"platform_class":"HG635N_V2_H200","platform_class_select":"h200"}}`},
		{"object-changes.json", path("core/object-changes/?limit=1&changed_object_id=%d&fields=id,time,user_name,request_id,action,changed_object_type,changed_object_id,message,prechange_data,postchange_data", d17), ""},
	} {
		t.Run(tc.file, func(t *testing.T) {
			method := "GET"
			if tc.body != "" {
				method = "PATCH"
			}
			got := s.send(t, method, tc.path, tc.body).want(t, 200)
			lab := sample(t, tc.file)
			if tc.file == "object-changes.json" {
				only(lab)
				only(got.body)
			}
			if tc.file == "device-role.json" { // roles are not read for their custom fields
				delete(lab.(map[string]any), "custom_fields")
				delete(got.object(), "custom_fields")
			}
			if tc.file == "status.json" { // what is installed differs in every NetBox
				delete(lab.(map[string]any), "installed_apps")
				delete(got.object(), "installed_apps")
			}
			for _, line := range shapes("", lab, got.body) {
				t.Error(line)
			}
		})
	}
}

// only cuts the data of a change to what enroll writes, and the list to its
// first entry.
func only(v any) {
	o := v.(map[string]any)
	list := o["results"].([]any)[:1]
	o["results"], o["next"], o["count"] = list, nil, 1.0
	for _, key := range []string{"prechange_data", "postchange_data"} {
		data := list[0].(map[string]any)[key].(map[string]any)
		for k := range data {
			if !slices.Contains([]string{"name", "serial", "status", "tags", "custom_fields", "role", "site"}, k) {
				delete(data, k)
			}
		}
	}
}

// The refusals of the real NetBox, word for word.
func TestSampleErrors(t *testing.T) {
	s := sampleServer(t)
	if id, _ := deviceID(t, s, "gpu-017"); id != 1 {
		t.Fatalf("gpu-017 has the id %d, and the samples speak of 1", id)
	}
	replayed := 0
	for _, row := range sample(t, "errors.json").([]any) {
		e := row.(map[string]any)
		why := e["why"].(string)
		header := []string{}
		switch why {
		case "rack unit taken", "delete of a used type", "duplicate name", "bulk PATCH, one bad":
			continue // the simulator says 501: enroll does none of it
		case "stale If-Match":
			header = []string{"If-Match", `W/"2020-01-01T00:00:00.000001+00:00"`}
		case "strong form of the same tag":
			header = []string{"If-Match", strings.TrimPrefix(s.get(t, "/api/dcim/devices/1/").header.Get("ETag"), "W/")}
		case "no token":
			header = []string{"Authorization", ""}
		case "wrong v2 token":
			header = []string{"Authorization", "Bearer " + wrongV2}
		case "wrong v1 token":
			header = []string{"Authorization", "Token " + strings.Repeat("0", 40)}
		case "v2 token without dot":
			header = []string{"Authorization", "Bearer nbt_x"}
		case "read-only token":
			header = []string{"Authorization", "Bearer " + s.readOnly}
		}
		body := ""
		switch sent := e["sent"].(type) {
		case nil:
			if e["method"] == "PATCH" {
				body = "not JSON"
			}
		case string:
			body = `{"changelog_message":"` + strings.Repeat("x", 201) + `"}`
		default:
			raw, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			body = string(raw)
		}
		t.Run(why, func(t *testing.T) {
			got := s.send(t, e["method"].(string), e["path"].(string), body, header...).want(t, int(e["status"].(float64)))
			if text, isText := e["body"].(string); isText {
				if !strings.HasPrefix(text, "<text/html") || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
					t.Errorf("type %q", got.header.Get("Content-Type"))
				}
				return
			}
			want, err := json.Marshal(e["body"])
			if err != nil {
				t.Fatal(err)
			}
			have, err := json.Marshal(got.body)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(have) {
				t.Errorf("says %s, not %s", have, want)
			}
		})
		replayed++
	}
	if replayed < 15 {
		t.Errorf("only %d refusals were replayed", replayed)
	}
}

func deviceID(t *testing.T, s service, name string) (int, map[string]any) {
	t.Helper()
	list := s.get(t, "/api/dcim/devices/?name="+name).want(t, 200).results()
	if len(list) != 1 {
		t.Fatalf("%d devices %s", len(list), name)
	}
	return int(list[0]["id"].(float64)), list[0]
}
