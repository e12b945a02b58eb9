//go:build lab

package netboxtest_test

import (
	"os"
	"strings"
	"testing"
)

// The same table against the NetBox of the lab.
func TestConformanceLab(t *testing.T) {
	get := func(name string) string {
		v := os.Getenv(name)
		if v == "" {
			t.Fatalf("%s is not set: source the env file of the lab", name)
		}
		return v
	}
	conform(t, service{
		url: strings.TrimRight(get("ENROLL_LAB_NETBOX_URL"), "/"), token: get("ENROLL_LAB_NETBOX_TOKEN"), readOnly: get("ENROLL_LAB_NETBOX_READONLY_TOKEN"),
	})
}
