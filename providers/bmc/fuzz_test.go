package bmc

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/enroll-dev/enroll/plan"
)

// fuzzConn is a connection whose password foreign bodies may echo.
func fuzzConn(f family) *conn {
	return &conn{client: &Client{opt: Options{Now: time.Now}}, device: "gpu-001", base: "https://192.0.2.7", user: "root", known: true, password: plan.NewSecret(`s3cret"&'<pw`, ""), family: f}
}

// Whatever a BMC answers to whatever it was asked, the judgement is a fault with
// bounded words and without the password, or none.
func FuzzErrorBody(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"code":"Base.1.18.GeneralError","message":"g","@Message.ExtendedInfo":[{"MessageId":"Base.1.18.PropertyUnknown","Message":"m","MessageArgs":["X"],"Resolution":"r"}]}}`,
		`{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.LC068","Message":"s3cret\"\u0026'\u003cpw","MessageArgs":"[]"}]}}`,
		`{"@Message.ExtendedInfo":{"MessageId":"Base.1.0.ServiceTemporarilyUnavailable","MessageArgs":[30]}}`,
		`{"error":"no"}`, `<html>Gateway</html>`, ``, "\xff\xfe", `[1]`, `{"error":{"@Message.ExtendedInfo":[null,7,{"MessageArgs":[null,{}]}]}}`,
	} {
		f.Add(400, seed, "30")
		f.Add(503, seed, "")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		k := fuzzConn(genericFamily())
		ans := &answer{method: http.MethodPatch, path: "/redfish/v1/x", status: status, header: http.Header{"Retry-After": {after}}, body: []byte(body), change: true}
		fault := k.judge(ans)
		if (fault == nil) != (status >= 200 && status < 300) {
			t.Fatalf("status %d: %v", status, fault)
		}
		if p := pauseOf(ans, time.Second); p <= 0 || p > time.Minute {
			t.Fatalf("a pause of %s", p)
		}
		if fault == nil {
			return
		}
		text := fault.Error() + strings.Join(fault.EvidenceLines(), " ")
		if strings.Contains(text, `s3cret"&'<pw`) || len(text) > 4000 || !utf8.ValidString(text) {
			t.Fatalf("%q", text)
		}
		if fault.Class() == plan.ClassInternal {
			t.Fatalf("not classified: %s", text)
		}
	})
}

// A value that a registry takes is sent as one that it calls equal; one that it
// refuses says why.
func FuzzRegistry(f *testing.F) {
	for _, seed := range []string{
		`{"RegistryEntries":{"Attributes":[{"AttributeName":"A","Type":"Integer","LowerBound":-1,"UpperBound":18446744073709551615}]}}`,
		`{"RegistryEntries":{"Attributes":[{"AttributeName":"A","Type":"Enumeration","Value":[{"ValueName":"Uefi","ValueDisplayName":"UEFI"}]}]}}`,
		`{"RegistryEntries":{"Attributes":[{"AttributeName":"A","Type":"Boolean","Readonly":true}]}}`,
		`{"RegistryEntries":{"Attributes":[{"AttributeName":"A","Type":"String","Value":7,"LowerBound":"x"},null,7]}}`, `{}`,
	} {
		for _, value := range []string{"10", "10.0", "1e2", "Uefi", "true", "18446744073709551615", ""} {
			f.Add(seed, value)
		}
	}
	f.Fuzz(func(t *testing.T, body, value string) {
		d, ok := parse("/redfish/v1/R.json", "", []byte(body))
		if !ok {
			return
		}
		reg := parseRegistry(d)
		want := plan.Str(value)
		why := reg.refuses("A", want)
		if why != "" && !strings.HasPrefix(why, "A ") {
			t.Fatalf("%q", why)
		}
		if why != "" || !utf8.ValidString(value) {
			return
		}
		raw, err := json.Marshal(reg.wire("A", want, nil))
		if err != nil {
			t.Fatalf("%q cannot be sent: %v", value, err)
		}
		var sent any
		if err := json.Unmarshal(raw, &sent); err != nil {
			t.Fatal(err)
		}
		if !reg.equal("A", want, sent) {
			t.Fatalf("%q is sent as %s, which is not equal to it", value, raw)
		}
	})
}

// An option whose path or name can be read leads to at most one address; what is
// no address is none, and an unavailable device is no NIC.
func FuzzDevicePath(f *testing.F) {
	for _, seed := range []string{
		"PciRoot(0x120)/Pci(0x1,0x0)/MAC(A088C2826E52,0x1)/IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)/Uri()", "VenHw(986D1755-B9D0-4F8D-A0DA-D1DB18672045)", "MAC(", "MAC(000000000000,0x0)", "HD(1,GPT)", "",
	} {
		for _, name := range []string{"PXE Device 1: Integrated NIC 1", "Unavailable: NIC", "UEFI PXEv4 (MAC:02005E000101)", "X550 - 7CC255793F8E", "88e9:a4ff:ff87:42c8"} {
			f.Add(seed, name)
		}
	}
	f.Fuzz(func(t *testing.T, path, name string) {
		for _, fam := range families() {
			k := fuzzConn(fam)
			o := decodeBootOption(document{top: map[string]any{"BootOptionReference": "Boot0001", "UefiDevicePath": path, "DisplayName": name}})
			o.network = k.isNetwork(o)
			if strings.HasPrefix(name, "Unavailable:") && o.network {
				t.Fatal("an unavailable device is taken for a NIC")
			}
			mac, fault := k.macOf(t.Context(), document{}, o)
			if fault != nil {
				t.Fatal(fault)
			}
			if !mac.IsZero() {
				if back := parseMAC(mac.String()); back != mac {
					t.Fatalf("%s is read as %s", mac, back)
				}
			}
		}
		parseMAC(name)
	})
}

// A task's body makes the step done, waiting within bounds, or failed with a
// classified fault.
func FuzzTask(f *testing.F) {
	for _, seed := range []string{
		`{"TaskState":"Completed"}`, `{"TaskState":"Running","PercentComplete":"7"}`, `{"TaskState":"Exception","Messages":[{"MessageId":"X","Message":"s3cret\"&'<pw"}]}`,
		`{"TaskState":7,"Messages":{}}`, `{}`, ``, `<html></html>`, `null`, "\xff",
	} {
		f.Add(200, seed, "1")
		f.Add(202, seed, "99999")
	}
	f.Fuzz(func(t *testing.T, status int, body, pauses string) {
		if status < 200 || status > 599 {
			return
		}
		k := fuzzConn(genericFamily())
		ans := &answer{method: http.MethodGet, path: "/redfish/v1/TaskService/Tasks/1", status: status, header: http.Header{}, body: []byte(body)}
		r := k.taskOf(ans, plan.Memo{memoTask: "/redfish/v1/TaskService/Tasks/1", memoPauses: pauses})
		switch r.Outcome {
		case plan.OutcomeDone:
		case plan.OutcomeWait:
			if r.After <= 0 || r.After > time.Minute || r.Memo[memoTask] == "" || len(r.Observed) > 200 {
				t.Fatalf("%+v", r)
			}
		case plan.OutcomeFailed:
			if text := r.Fault.Error() + strings.Join(r.Fault.EvidenceLines(), " "); r.Fault.Class() == plan.ClassInternal || strings.Contains(text, `s3cret"&'<pw`) {
				t.Fatal(text)
			}
		default:
			t.Fatalf("%s", r.Outcome)
		}
	})
}
