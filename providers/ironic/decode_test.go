package ironic

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
)

// recorded reads the answer's body of a recorded exchange.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var exchange struct {
		Response struct {
			Body json.RawMessage `json:"body"`
		} `json:"response"`
	}
	if err := json.Unmarshal(raw, &exchange); err != nil {
		t.Fatal(err)
	}
	return exchange.Response.Body
}

func decoded(t testing.TB, raw []byte) *inventory {
	t.Helper()
	inv, err := decodeInventory(raw)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func TestRecordedInventory(t *testing.T) {
	inv := decoded(t, recorded(t, "inventory-200"))
	up, down := maybe[bool]{true, true}, maybe[bool]{known: true}
	want := map[string]link{
		"52:54:00:00:01:2c": {names: []string{"eth0"}, carrier: up, far: []neighbour{{ChassisID: "00:11:22:33:44:55", PortID: "swp1", PortDescription: "host-eth0", SystemName: "leaf01"}}},
		"52-54-00-00-01-2D": {names: []string{"eth1"}, carrier: up, far: []neighbour{{ChassisID: "00:11:22:33:44:66", PortID: "00:11:22:33:44:77", PortDescription: "Ethernet1/12", SystemName: "leaf02"}}},
		"52:54:00:00:01:2e": {names: []string{"eth2"}, carrier: down},
	}
	for text, w := range want {
		mac, err := plan.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := inv.link(mac)
		if !ok {
			t.Errorf("%s: no interface", text)
			continue
		}
		if diff := cmp.Diff(w, got, cmp.AllowUnexported(link{}, maybe[bool]{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if _, ok := inv.link(plan.MAC{2, 3, 4, 5, 6, 7}); ok {
		t.Error("an interface that is not there")
	}
}

func TestParsedFormsOfLLDP(t *testing.T) {
	const body = `{"inventory": {"interfaces": [{"name": "a", "mac_address": "02:00:00:00:00:01"}, {"name": "b", "mac_address": "02:00:00:00:00:02", "lldp": null}]},
		"plugin_data": {"parsed_lldp": {"a": {"switch_mgmt_addresses": ["192.0.2.1"], "switch_system_name": ["leaf1\u0000"], "switch_port_id": "swp7"}},
		"all_interfaces": {"b": {"lldp_processed": {"switch_system_name": "leaf2", "switch_port_description": "Ethernet9"}}}}}`
	inv := decoded(t, []byte(body))
	a, _ := inv.link(plan.MAC{2, 0, 0, 0, 0, 1})
	b, _ := inv.link(plan.MAC{2, 0, 0, 0, 0, 2})
	if diff := cmp.Diff([]neighbour{{SystemName: "leaf1", PortID: "swp7"}}, a.far); diff != "" || a.carrier.known {
		t.Errorf("a: %s", diff)
	}
	if diff := cmp.Diff([]neighbour{{SystemName: "leaf2", PortDescription: "Ethernet9"}}, b.far); diff != "" {
		t.Errorf("b: %s", diff)
	}
}

func TestDecodeLLDP(t *testing.T) {
	cases := []struct {
		name, raw string
		want      neighbour
	}{
		{"names", `[[1,"076c656166"],[2,"0545746831"],[4,"7570"],[5,"6c656166312e6578616d706c65"]]`, neighbour{ChassisID: "leaf", PortID: "Eth1", PortDescription: "up", SystemName: "leaf1.example"}},
		{"addresses", `[[1,"0501c0000201"],[2,"040220010db8000000000000000000000001"]]`, neighbour{ChassisID: "192.0.2.1", PortID: "2001:db8::1"}},
		{"circuit id", `[[2,"06736c6f742033"]]`, neighbour{PortID: "slot 3"}},
		{"the first wins", `[[5,"61"],[5,"62"]]`, neighbour{SystemName: "a"}},
		{"padding", `[[5,"6c6561663100"],[4,"2075702000"]]`, neighbour{SystemName: "leaf1", PortDescription: "up"}},
		{"a MAC of the wrong length", `[[1,"040011"],[2,"03"]]`, neighbour{ChassisID: "0011"}},
		{"an unknown subtype", `[[2,"09beef"]]`, neighbour{PortID: "beef"}},
		{"no UTF-8", `[[5,"fffe41"],[2,"05ff"]]`, neighbour{SystemName: "\ufffd\ufffdA", PortID: "\ufffd"}},
		{"escape codes", `[[5,"1b5b31346d"]]`, neighbour{SystemName: "\ufffd[14m"}},
		{"a list of values", `[[5,["6c656166","62"]],[2,[]]]`, neighbour{SystemName: "leaf"}},
		{"longer than a TLV", `[[5,"` + strings.Repeat("61", 4000) + `"]]`, neighbour{SystemName: strings.Repeat("a", 511)}},
		{"bad entries between good ones", `[[5,"zz"],["5","61"],[5],null,7,[5,"62"]]`, neighbour{SystemName: "b"}},
		{"no list", `{"5":"61"}`, neighbour{}},
		{"nothing", ``, neighbour{}},
		{"the end only", `[[0,""]]`, neighbour{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := decodeLLDP(decodeTLVs(json.RawMessage(c.raw))); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzDecodeLLDP(f *testing.F) {
	f.Add([]byte(`[[1,"04001122334455"],[2,"0573777031"],[5,"6c6561663031"],[0,""]]`))
	f.Add([]byte(`[[1,"05"],[2,"0501"],[2,"0502"],[1,""],[-3,"00"]]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := decodeLLDP(decodeTLVs(raw))
		for _, text := range []string{n.ChassisID, n.PortID, n.PortDescription, n.SystemName} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\n") {
				t.Errorf("%q cannot be printed", text)
			}
		}
	})
}

func TestWords(t *testing.T) {
	recordedWords := map[string]string{
		"err-409-node-locked-provision": "Node b53dc811-5fe7-4f3c-b192-13564ca90e00 is locked by host localhost, please retry after the current operation is completed.",
		"err-401-no-token":              "The request you have made requires authentication.",
		"err-404-unknown-path":          "Not Found",
		"err-406-version-too-new":       "Version 1.999 was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.82].",
		"err-500-bad-json":              "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
		"err-403-reader-create":         "Access was denied to the following resource: baremetal:node:create",
	}
	for name, want := range recordedWords {
		if got := words(recorded(t, name)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"faultcode": "Client", "faultstring": "Body too large"}`: "Body too large",
		`{"error_message": {"faultstring": "an object"}}`:          "an object",
		`{"error_message": "no JSON"}`:                             "no JSON",
		`<html> <b>502</b> </html>`:                                "<html> <b>502</b> </html>",
		`{"detail": "other"}`:                                      `{"detail": "other"}`,
		``:                                                         "",
		`"` + strings.Repeat("ä", 400) + `"`:                       `"` + strings.Repeat("ä", 149) + "…",
	} {
		if got := words([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add([]byte(`{"error_message": "{\"faultstring\": \"x\"}"}`))
	f.Add([]byte(`{"error_message": {"code": "7"}, "error": "text"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := words(body); !utf8.ValidString(got) || len(got) > maxWords+len("…") || strings.Contains(got, "\n") {
			t.Errorf("%q", got)
		}
	})
}

func TestRecordedNode(t *testing.T) {
	var n node
	if err := json.Unmarshal(recorded(t, "node-detail"), &n); err != nil {
		t.Fatal(err)
	}
	v := liveNode(&n)
	if plan.HasAttr(plan.Attr(v, "driver_info"), "redfish_password") || plan.Text(v, "raid_interface") != "fake" || plan.Text(v, "name") != n.Name {
		t.Errorf("%s", plan.ToJSON(v))
	}
}

// A port that is described by its own name is named once.
func TestNeighbourNamesItsPortOnce(t *testing.T) {
	for want, n := range map[string]neighbour{
		"leaf Ethernet1/2":             {SystemName: "leaf", PortID: "Ethernet1/2", PortDescription: "Ethernet1/2"},
		"leaf Ethernet1/2 (to host 1)": {SystemName: "leaf", PortID: "Ethernet1/2", PortDescription: "to host 1"},
	} {
		if got := n.end("Ethernet1/5"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
