//go:build lab

package netboxtest_test

import (
	"os"
	"strings"
	"testing"
)

// labNetBox is the NetBox of the lab.
func labNetBox(t *testing.T) service {
	t.Helper()
	get := func(name string) string {
		v := os.Getenv(name)
		if v == "" {
			t.Fatalf("%s is not set: source the env file of the lab", name)
		}
		return v
	}
	return service{
		url: strings.TrimRight(get("ENROLL_LAB_NETBOX_URL"), "/"), token: get("ENROLL_LAB_NETBOX_TOKEN"), readOnly: get("ENROLL_LAB_NETBOX_READONLY_TOKEN"),
	}
}

// The same table against the NetBox of the lab.
func TestConformanceLab(t *testing.T) { conform(t, labNetBox(t)) }

// The same mistakes in the NetBox of the lab give the same faults.
func TestPlantedMistakesLab(t *testing.T) {
	s := labNetBox(t)
	judgePlanted(t, s.url, s.token)
}

// Runs that write different fields of one device at the same time, against a
// NetBox with several workers: nothing is lost.
func TestConcurrentWritersLab(t *testing.T) {
	s := labNetBox(t)
	writeAtOnce(t, s, 5)
}
