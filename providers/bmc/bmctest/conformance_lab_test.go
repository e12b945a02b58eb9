//go:build lab

package bmctest_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestConformanceLab runs the table against sushy-tools, which has neither
// sessions, settings of the manager nor boot options.
func TestConformanceLab(t *testing.T) {
	need := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			t.Fatalf("%s is not set", name)
		}
		return value
	}
	s := service{
		base: strings.TrimSuffix(need("ENROLL_LAB_REDFISH_URL"), "/"), user: need("ENROLL_LAB_REDFISH_USER"), password: need("ENROLL_LAB_REDFISH_PASSWORD"),
		caFile: os.Getenv("ENROLL_LAB_REDFISH_CA"),
	}
	s.base = strings.TrimSuffix(s.base, "/redfish/v1")
	client := s.client(t)
	for _, id := range strings.Fields(need("ENROLL_LAB_REDFISH_SYSTEMS")) {
		s.system = "/redfish/v1/Systems/" + id
		req := s.request(t, "GET", s.system, "")
		req.SetBasicAuth(s.user, s.password)
		status, body := do(t, client, req)
		var system struct {
			Links struct {
				ManagedBy []struct {
					ID string `json:"@odata.id"`
				}
			}
		}
		if err := json.Unmarshal(body, &system); err != nil || status != 200 || len(system.Links.ManagedBy) == 0 {
			t.Fatalf("%s: status %d %v: %s", s.system, status, err, body)
		}
		s.manager = system.Links.ManagedBy[0].ID
		t.Run(id, func(t *testing.T) { conform(t, s) })
	}
}
