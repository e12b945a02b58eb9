package recording

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cleaned gives a body as it stands in a recording, with what else was recorded.
func cleaned(t *testing.T, body string, more ...string) string {
	t.Helper()
	r := &Recording{}
	for i, text := range append([]string{body}, more...) {
		v, ok := JSON([]byte(text))
		if !ok {
			t.Fatal(text)
		}
		r.Answers = append(r.Answers, Answer{URI: "/redfish/v1/" + string(rune('a'+i)), Status: 200, Body: v})
	}
	NewSanitiser(func(s string) string { return strings.ReplaceAll(s, "hunter2", Hidden) }, netip.MustParseAddr("10.0.0.9")).Clean(r)
	raw, err := json.Marshal(r.Answers[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
}

func TestClean(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"a MAC in every spelling": {
			`{"A":"AA:BB:CC:0D:0E:0F","B":"aa-bb-cc-0d-0e-0f","C":"aa:bb:cc:d:e:f","D":"PciRoot(0x1)/MAC(AABBCC0D0E0F,0x1)/IPv4(0.0.0.0)","E":"PXE - AABBCC0D0E0F","F":"aabb:ccff:ff0d:0e0f","NIC_AABBCC0D0E0F_Mode":1}`,
			`{"A":"02:00:5E:00:00:01","B":"02-00-5e-00-00-01","C":"02:00:5e:00:00:01","D":"PciRoot(0x1)/MAC(02005E000001,0x1)/IPv4(0.0.0.0)","E":"PXE - 02005E000001","F":"0200:5eff:ff00:0001","NIC_02005E000001_Mode":1}`,
		},
		"bare digits that are an address":   {`{"AssociatedNetworkAddresses":["AABBCC0D0E0F"],"PartNumber":"112233445566"}`, `{"AssociatedNetworkAddresses":["02005E000001"],"PartNumber":"112233445566"}`},
		"addresses that name nobody":        {`{"A":"00:00:00:00:00:00","B":"FF:FF:FF:FF:FF:FF","C":"0.0.0.0","D":"255.255.255.0","E":"::","F":"127.0.0.1","G":"169.254.0.17"}`, `{"A":"00:00:00:00:00:00","B":"FF:FF:FF:FF:FF:FF","C":"0.0.0.0","D":"255.255.255.0","E":"::","F":"127.0.0.1","G":"169.254.0.17"}`},
		"a world wide name":                 {`{"WWN":"21:00:F4:E9:00:11:22:33"}`, `{"WWN":"20:00:00:00:00:00:00:01"}`},
		"IP addresses, the BMC's own first": {`{"A":"10.0.0.9","B":"10.0.0.1","C":"see 10.0.0.1:514","D":"fe80::1:2","E":"fd00:1::7"}`, `{"A":"198.18.0.2","B":"192.0.2.1","C":"see 192.0.2.1:514","D":"fe80::2","E":"2001:db8::3"}`},
		"a version is no address":           {`{"FirmwareVersion":"1.20.50.50","RedfishVersion":"1.6.0"}`, `{"FirmwareVersion":"1.20.50.50","RedfishVersion":"1.6.0"}`},
		"serial numbers, wherever they are": {`{"SerialNumber":"CN77FZ3","Name":"idrac-CN77FZ3","Link":"/redfish/v1/X/CN77FZ3","SKU":"CN77FZ3 "}`, `{"Link":"/redfish/v1/X/SN000001","Name":"idrac-SN000001","SKU":"SN000001 ","SerialNumber":"SN000001"}`},
		"names":                             {`{"HostName":"web-17","FQDN":"web-17.corp.example.com","NTPServers":[" t1.corp.example.com","localhost","10.1.1.1",null,""],"Attributes":{"NIC.1.DNSRacName":"web-17","SysLog.1.Server1":"log9.example.net"}}`, `{"Attributes":{"NIC.1.DNSRacName":"host-1","SysLog.1.Server1":"host-2.example.org"},"FQDN":"host-1.net2.example.org","HostName":"host-1","NTPServers":[" host-3.net2.example.org","localhost","192.0.2.1",null,""]}`},
		"people":                            {`{"UserName":"j.doe-42","@odata.id":"/redfish/v1/AccountService/Accounts/j.doe-42","Attributes":{"Users.2.UserName":"root"}}`, `{"@odata.id":"/redfish/v1/AccountService/Accounts/user-1","Attributes":{"Users.2.UserName":"root"},"UserName":"user-1"}`},
		"places":                            {`{"Location":{"PostalAddress":{"City":"Springfield","Rack":"r17"}},"PhysicalLocation":{"Info":"row 4"}}`, `{"Location":{"PostalAddress":{"City":"place-1","Rack":"place-2"}},"PhysicalLocation":{"Info":"place-3"}}`},
		"the files of a registry":           {`{"Location":[{"Language":"en","Uri":"/redfish/v1/Registries/x.json"}]}`, `{"Location":[{"Language":"en","Uri":"/redfish/v1/Registries/x.json"}]}`},
		"identifiers, but for protocols'":   {`{"UUID":"4c4c4544-0043-4e10-8058-b7c04f465a33","Path":"VenHw(986D1755-B9D0-4F8D-A0DA-D1DB18672045)/HD(1,GPT,4C4C4544-0043-4E10-8058-B7C04F465A33)"}`, `{"Path":"VenHw(986D1755-B9D0-4F8D-A0DA-D1DB18672045)/HD(1,GPT,00000000-0000-4000-8000-000000000001)","UUID":"00000000-0000-4000-8000-000000000001"}`},
		"secrets":                           {`{"Password":"x","MinPasswordLength":8,"PasswordExpirationPeriodDays":90,"PasswordPolicy":"Strong","PasswordStatus":"x9","AgentCommunity":"public","Text":"login hunter2"}`, `{"AgentCommunity":"(secret)","MinPasswordLength":8,"Password":"(secret)","PasswordExpirationPeriodDays":90,"PasswordPolicy":"Strong","PasswordStatus":"(secret)","Text":"login (secret)"}`},
		"nothing is a secret":               {`{"Password":null,"Token":""}`, `{"Password":null,"Token":""}`},
		"numbers stay as they are written":  {`{"A":10.0,"B":18446744073709551615,"C":1e3}`, `{"A":10.0,"B":18446744073709551615,"C":1e3}`},
		"words of standards":                {`{"@odata.type":"#ComputerSystem.v1_20_1.ComputerSystem","MessageId":"Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting","Value":"ServiceTemporarilyUnavailableDueToHostBooting"}`, `{"@odata.type":"#ComputerSystem.v1_20_1.ComputerSystem","MessageId":"Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting","Value":"ServiceTemporarilyUnavailableDueToHostBooting"}`},
	} {
		if got := cleaned(t, tc.body); got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tc.want)
		}
	}
	// What another answer tells is replaced here too.
	if got := cleaned(t, `{"Name":"card ABC-12345"}`, `{"SerialNumber":"ABC-12345"}`); got != `{"Name":"card SN000001"}` {
		t.Error(got)
	}
}

// What stands in answers of real BMCs beside names is kept: types, states, limits.
func TestRealAnswersStayWhole(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "samples", "redfish", "*", "*.json"))
	if len(files) == 0 {
		t.Skip("no samples of real BMCs beside the repository")
	}
	hidden := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := JSON(raw)
		if !ok {
			t.Fatalf("%s is no JSON", file)
		}
		rec := &Recording{Answers: []Answer{{URI: "/redfish/v1", Status: 200, Body: v}}}
		NewSanitiser(func(s string) string { return s }, netip.Addr{}).Clean(rec)
		out, err := rec.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, _ := JSON(out)
		before, after := shape(v), shape(again.(map[string]any)["answers"].([]any)[0].(map[string]any)["body"])
		if before != after {
			t.Errorf("%s has another form:\n%s\nwant\n%s", file, after, before)
		}
		hidden += bytes.Count(out, []byte(Hidden))
	}
	if hidden > 2 { // the SNMP community, and an id of 32 zeros
		t.Errorf("%d values of real answers are taken for secrets", hidden)
	}
}

// shape is a value without its texts.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var out strings.Builder
		for _, k := range keysOf(v) {
			out.WriteString(k + ":" + shape(v[k]) + ",")
		}
		return "{" + out.String() + "}"
	case []any:
		var out strings.Builder
		for _, item := range v {
			out.WriteString(shape(item) + ",")
		}
		return "[" + out.String() + "]"
	case string:
		return "text"
	case json.Number:
		return v.String()
	case nil:
		return "null"
	}
	return "flag"
}

func TestDecodeRefuses(t *testing.T) {
	root := `{"uri":"/redfish/v1","status":200,"body":{}}`
	for name, text := range map[string]string{
		"nothing":        ``,
		"no JSON":        `<html>`,
		"another format": `{"format":"x","answers":[]}`,
		"no root":        `{"format":"` + Format + `","answers":[]}`,
		"a foreign path": `{"format":"` + Format + `","answers":[` + root + `,{"uri":"/etc/passwd","status":200}]}`,
		"a status":       `{"format":"` + Format + `","answers":[` + root + `,{"uri":"/redfish/v1/x","status":0}]}`,
		"one twice":      `{"format":"` + Format + `","answers":[` + root + `,` + root + `]}`,
		"more behind it": `{"format":"` + Format + `","answers":[` + root + `]} x`,
	} {
		if _, err := Decode(strings.NewReader(text)); err == nil {
			t.Errorf("%s is taken for a recording", name)
		}
	}
	rec, err := Decode(strings.NewReader(`{"format":"` + Format + `","answers":[` + root + `,{"uri":"/redfish/v1/X?a=1","status":200,"body":{"n":1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"/redfish/v1/", "/redfish/v1/X?a=1", "/redfish/v1/X/?a=1"} {
		if _, ok := rec.Find(uri); !ok {
			t.Errorf("%s is not found", uri)
		}
	}
	if _, ok := rec.Find("/redfish/v1/X"); ok {
		t.Error("a query is taken for the whole")
	}
}

// Whatever a BMC sends, cleaning ends, and a known secret is not in the result.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{`{"HostName":"a.b:c","Password":["x"],"MAC":"1:2:3:4:5:6"}`, `{"Address":"[::1]:514"}`, `{"A":"://x@y","B":"password=hunter2"}`, `["aabb:ccff:ff0d:0e0f",{"SKU":7}]`, `"VenHw(986D1755-B9D0-4F8D-A0DA-D1DB18672045"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		v, ok := JSON([]byte(body))
		if !ok {
			return
		}
		clean := func(v any) *Recording {
			r := &Recording{Answers: []Answer{{URI: "/redfish/v1", Status: 200, Body: v}}}
			NewSanitiser(func(s string) string { return strings.ReplaceAll(s, "hunter2", Hidden) }, netip.Addr{}).Clean(r)
			return r
		}
		a, err := clean(v).Encode()
		if err != nil {
			t.Fatal(err)
		}
		w, _ := JSON([]byte(body))
		b, err := clean(w).Encode()
		if err != nil || !bytes.Equal(a, b) {
			t.Fatalf("not the same twice: %v\n%s\n%s", err, a, b)
		}
		if bytes.Contains(a, []byte("hunter2")) {
			t.Fatalf("holds the secret: %s", a)
		}
	})
}
