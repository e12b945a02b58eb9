package bmc

import (
	"testing"
)

// The rules of the reference, and the cases in which other tools went wrong.
func TestFamilyOf(t *testing.T) {
	for name, tc := range map[string]struct{ root, manager, system, want string }{
		"AMI on a board that is sold by Dell":  {`{"Vendor":"AMI"}`, `{}`, `{"Manufacturer":"Dell Inc."}`, "ami"},
		"AMI that says Lenovo":                 {`{"Vendor":"Lenovo","Oem":{"Ami":{}}}`, `{}`, `{"Manufacturer":"Lenovo"}`, "ami"},
		"AMI by its product":                   {`{"Vendor":"GIGABYTE","Product":"AMI Redfish Server"}`, `{}`, `{}`, "ami"},
		"an NVIDIA machine with AMI":           {`{"Vendor":"AMI","Oem":{"Ami":{}}}`, `{}`, `{"Manufacturer":"NVIDIA"}`, "ami"},
		"Dell by vendor":                       {`{"Vendor":"Dell"}`, `{}`, `{}`, "idrac"},
		"Dell by product":                      {`{"Product":"Integrated Dell Remote Access Controller"}`, `{}`, `{}`, "idrac"},
		"Supermicro, vendor absent":            {`{"Oem":{"Supermicro":{}}}`, `{}`, `{}`, "supermicro"},
		"Supermicro, vendor null":              {`{"Vendor":null,"Oem":{"Supermicro":{}}}`, `{}`, `{}`, "supermicro"},
		"nothing, the manager has an Oem":      {`{}`, `{"Oem":{"Lenovo":{}}}`, `{"Manufacturer":"Dell Inc."}`, "xcc"},
		"nothing, the system has a maker":      {`{"Vendor":null}`, `{}`, `{"Manufacturer":"Supermicro"}`, "supermicro"},
		"nothing at all, as sushy-tools":       {`{"RedfishVersion":"1.6.0"}`, `{}`, `{"Manufacturer":"Sushy Emulator"}`, "generic"},
		"a vendor that nobody knows":           {`{"Vendor":"WIWYNN"}`, `{"Oem":{"Dell":{}}}`, `{"Manufacturer":"Dell Inc."}`, "generic"},
		"HPE is as far as plain Redfish goes":  {`{"Vendor":"HPE","Oem":{"Hpe":{}}}`, `{}`, `{}`, "generic"},
		"the vendor in other letters":          {`{"Vendor":"LENOVO"}`, `{}`, `{}`, "xcc"},
		"OpenBMC's own spelling of its Oem":    {`{}`, `{"Oem":{"OpenBmc":{}}}`, `{}`, "generic"},
		"a null Oem":                           {`{"Vendor":"Dell","Oem":null}`, `{}`, `{}`, "idrac"},
		"an Oem of another type":               {`{"Oem":[]}`, `{"Oem":"x"}`, `{"Manufacturer":7}`, "generic"},
		"the first known key of several in it": {`{"Oem":{"Nvidia":{},"Dell":{}}}`, `{}`, `{}`, "idrac"},
	} {
		doc := func(body string) document {
			d, ok := parse("/x", "", []byte(body))
			if !ok {
				t.Fatal(body)
			}
			return d
		}
		got, sure := familyOf(doc(tc.root))
		if !sure {
			got = familyOfParts(doc(tc.manager), doc(tc.system))
		}
		if got.name != tc.want {
			t.Errorf("%s: %s, want %s", name, got.name, tc.want)
		}
	}
}
