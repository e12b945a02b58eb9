package bmc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

func sample(t *testing.T, file string) document {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "samples", "redfish", filepath.FromSlash(file)))
	if os.IsNotExist(err) {
		t.Skipf("no sample of a real BMC at %s", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, ok := parse(file, "", raw)
	if !ok {
		t.Fatalf("%s is no resource", file)
	}
	return d
}

func TestVendorsOfRealRoots(t *testing.T) {
	for file, want := range map[string]string{
		"dell-idrac/service-root.json": "idrac", "lenovo-xcc/service-root.json": "xcc", "ami-megarac/service-root.json": "ami",
		"openbmc/service-root.json": "generic", "supermicro/service-root.json": "supermicro", "supermicro/service-root-1.9-no-vendor.json": "supermicro",
	} {
		t.Run(file, func(t *testing.T) {
			root := sample(t, file)
			if got, sure := familyOf(root); got.name != want || !sure {
				t.Errorf("%s, want %s", got.name, want)
			}
			if root.link("Links", "Sessions") != "/redfish/v1/SessionService/Sessions" || root.link("Systems") == "" || root.link("Managers") == "" {
				t.Error("links not found")
			}
		})
	}
}

func TestNICsOfRealBootOptions(t *testing.T) {
	for file, want := range map[string]string{
		"ami-megarac/boot-option-pxe.json":                 "02:00:5e:00:01:08",
		"ami-megarac/boot-option-http-same-nic.json":       "02:00:5e:00:01:08",
		"ami-megarac/boot-option-disk.json":                "",
		"openbmc/boot-option-pxe-mac.json":                 "02:00:5e:00:01:15",
		"hpe-ilo/boot-option-pxe-mac.json":                 "02:00:5e:00:01:16",
		"supermicro/boot-option-nic-mac-in-name.json":      "02:00:5e:00:01:0a",
		"lenovo-xcc/boot-option-network-class.json":        "",
		"dell-idrac/boot-option-nic-no-mac.json":           "",
		"dell-idrac/boot-option-unavailable-disk.json":     "",
		"ami-megarac/boot-option-usb-nic-wrong-alias.json": "any",
	} {
		t.Run(file, func(t *testing.T) {
			option := decodeBootOption(sample(t, file))
			if option.reference == "" {
				t.Fatalf("%+v", option)
			}
			k := &conn{family: genericFamily()}
			mac, fault := k.macOf(t.Context(), document{}, option)
			if fault != nil || (want != "any" && mac.String() != want) || (want == "any" && mac.IsZero()) {
				t.Errorf("%s %v, want %s", mac, fault, want)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	for name, tc := range map[string]struct{ body, id, words string }{
		"standard":         {`{"error":{"code":"Base.1.18.GeneralError","message":"g","@Message.ExtendedInfo":[{"MessageId":"Base.1.18.PropertyUnknown","Message":"m","MessageArgs":["X"]}]}}`, "PropertyUnknown", "Base.1.18.PropertyUnknown: m"},
		"args as text":     {`{"error":{"@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.LC068","Message":"m","MessageArgs":"[]"}]}}`, "LC068", "IDRAC.2.8.LC068: m"},
		"one object":       {`{"error":{"@Message.ExtendedInfo":{"MessageId":"Base.1.0.X","Message":"m"}}}`, "X", "Base.1.0.X: m"},
		"top level":        {`{"@Message.ExtendedInfo":[{"MessageId":"Base.1.0.X","Message":"m"}]}`, "X", "Base.1.0.X: m"},
		"code only":        {`{"error":{"code":"Base.1.0.X","message":"m"}}`, "X", "Base.1.0.X: m"},
		"no text":          {`{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.0.X"}]}}`, "X", "Base.1.0.X"},
		"page":             {`<html></html>`, "", ""},
		"error is text":    {`{"error":"no"}`, "", ""},
		"nothing":          {``, "", ""},
		"array":            {`[1]`, "", ""},
		"entries are text": {`{"error":{"@Message.ExtendedInfo":["x"]}}`, "", ""},
	} {
		list := messages([]byte(tc.body))
		if tc.id == "" {
			if len(list) != 0 {
				t.Errorf("%s: %+v", name, list)
			}
			continue
		}
		if len(list) != 1 || list[0].id != tc.id || words(list) != tc.words {
			t.Errorf("%s: %+v %q", name, list, words(list))
		}
	}
}

func TestDocument(t *testing.T) {
	d, ok := parse("/x", "", []byte("\xef\xbb\xbf"+`{"@odata.etag":1719,"A":null,"B":[" a ",null,"","a","b",3],"C":{"@odata.id":"/c"},"D":[{"@odata.id":"/d"},null,"x"],"Members":null}`))
	if !ok || d.etag != "" || !d.key("A") || d.key("Z") || d.text("A") != "" || d.link("C") != "/c" || len(d.links("D")) != 1 || d.links("Members") != nil {
		t.Errorf("%+v", d)
	}
	if got := d.list("B"); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("%v", got)
	}
	for _, body := range []string{"", "null", "[]", "<html>", `"x"`, "{"} {
		if _, ok := parse("/x", "", []byte(body)); ok {
			t.Errorf("%q is taken for a resource", body)
		}
	}
}

func TestResolve(t *testing.T) {
	for in, want := range map[string]string{
		"/redfish/v1/Systems/1/": "/redfish/v1/Systems/1/", "https://bmc.example.org/redfish/v1/S/5": "/redfish/v1/S/5", "Systems/1": "/redfish/v1/Systems/1",
		"/redfish/v1/Chassis/1#/Power/0": "/redfish/v1/Chassis/1", "/redfish/v1/T?x=1": "/redfish/v1/T?x=1", "": "/redfish/v1/",
	} {
		if got := resolve(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for override, want := range map[string]string{
		"https://192.0.2.7":                             "https://192.0.2.7 ",
		"https://192.0.2.7:8443/":                       "https://192.0.2.7:8443 ",
		"https://192.0.2.7/redfish/v1/":                 "https://192.0.2.7 ",
		"http://127.0.0.1:8600/redfish/v1/Systems/0-1/": "http://127.0.0.1:8600 /redfish/v1/Systems/0-1",
		"192.0.2.7":             "NETBOX_INTENT_INVALID",
		"ftp://192.0.2.7":       "NETBOX_INTENT_INVALID",
		"https://u:p@192.0.2.7": "NETBOX_INTENT_INVALID",
	} {
		base, system, fault := address(&plan.Intent{Name: "x", Ironic: plan.IronicContext{RedfishAddress: override}})
		got := base + " " + system
		if fault != nil {
			got = string(fault.Code)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", override, got, want)
		}
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	ans := &answer{header: map[string][]string{"Retry-After": {"86400"}}}
	if got := pauseOf(ans, time.Second); got != time.Minute {
		t.Error(got)
	}
}

func TestOddBootOption(t *testing.T) {
	d, ok := parse("/x", "", []byte(`{"Id":7,"BootOptionEnabled":"yes","BootOptionReference":"Boot0001","DisplayName":null,"UefiDevicePath":"MAC(02005E000101,0x1)"}`))
	if o := decodeBootOption(d); !ok || o.reference != "Boot0001" || o.switched || !o.enabled {
		t.Errorf("%+v", o)
	}
}

// A BMC may echo what it was sent, in any of the forms that it was sent in.
func TestRedact(t *testing.T) {
	k := &conn{user: "root", known: true, password: plan.NewSecret(`p&"<x y`, ""), login: login{token: "t0ken"}}
	for _, echo := range []string{`p&"<x y`, `{"Password":"p\u0026\"\u003cx y"}`, `{"Password":"p&\"<x y"}`, "?p=p%26%22%3Cx+y", "/p&%22%3Cx%20y", "Basic cm9vdDpwJiI8eCB5", "X-Auth-Token: t0ken"} {
		got := k.clean("before " + echo + " after")
		if !strings.Contains(got, "(secret)") || strings.Contains(got, "x y") || strings.Contains(got, "t0ken") || strings.Contains(got, "cm9v") {
			t.Errorf("%s: %s", echo, got)
		}
		if err := k.scrub(errors.New(echo)); strings.Contains(err.Error(), "x y") {
			t.Errorf("%s: %v", echo, err)
		}
	}
}
