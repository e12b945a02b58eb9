package bmc_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

func extendedInfo(id, text string) string {
	raw, err := json.Marshal(map[string]any{"error": map[string]any{"code": id, "message": text, "@Message.ExtendedInfo": []any{map[string]any{"MessageId": id, "Message": text, "MessageArgs": "[]"}}}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Every way to refuse a write: the code that it gets, and that the BMC's words
// reach the evidence.
func TestRefusedWrites(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   plan.Code
		words  string
	}{
		{"read-only", 400, extendedInfo("Base.1.18.PropertyNotWritable", "The property HostName is read only."), plan.CodeBMCUnsupported, "read only"},
		{"unknown", 400, extendedInfo("Base.1.18.PropertyUnknown", "Unknown."), plan.CodeBMCUnsupported, "Unknown."},
		{"no such method", 405, "", plan.CodeBMCUnsupported, ""},
		{"lockdown", 400, extendedInfo("IDRAC.2.8.SYS406", "System lockdown is on."), plan.CodeBMCRefused, "lockdown is on"},
		{"no right", 403, extendedInfo("Base.1.18.InsufficientPrivilege", "Not allowed."), plan.CodeBMCRefused, "Not allowed."},
		{"starting, 503", 503, extendedInfo("IDRAC.2.8.SYS518", "Not ready."), plan.CodeBMCBusy, "Not ready."},
		{"starting, 400", 400, extendedInfo("IDRAC.2.8.SWC0700", "Not ready."), plan.CodeBMCBusy, "Not ready."},
		{"host is booting", 503, extendedInfo("Ami.1.0.ServiceTemporarilyUnavailableDueToHostBooting", "Booting."), plan.CodeBMCBusy, "Booting."},
		{"busy in another status", 400, extendedInfo("Ami.1.0.ServiceTemporarilyUnavailableDueToMutex", "Mutex."), plan.CodeBMCBusy, "Mutex."},
		{"password change", 403, extendedInfo("Base.1.18.PasswordChangeRequired", "Change it."), plan.CodeBMCPasswordChange, "Change it."},
		{"a page", 500, "<html><h1>Internal error</h1></html>", plan.CodeBMCBusy, "Internal error"},
		{"a page with 200", 200, "<html>It works</html>", plan.CodeBMCProtocol, "It works"},
		{"never the right ETag", 412, extendedInfo("Base.1.18.PreconditionFailed", "The ETag did not match."), plan.CodeBMCRefused, "did not match"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, machine(bmctest.Generic))
			step := w.build(w.read()).Steps[0]
			w.fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Status, Method: http.MethodPatch, Status: tc.status, Body: tc.body})
			r := w.apply(step)
			if r.Outcome != plan.OutcomeFailed || r.Fault.Code != tc.want {
				t.Fatalf("%s %s", r.Outcome, faultText(r.Fault))
			}
			if !strings.Contains(r.Fault.Evidence["answer"], tc.words) || r.Fault.Evidence["method"] != http.MethodPatch || r.Fault.Evidence["path"] == "" {
				t.Errorf("evidence: %v", r.Fault.EvidenceLines())
			}
			if n := mutating(w); n > 3 {
				t.Errorf("%d writes tried", n)
			}
			w.close()
		})
	}
}

// A 412 whose reason is a value that somebody else changed ends the step.
func TestSomebodyElseWrote(t *testing.T) {
	w := newWorld(t)
	resources := map[string]string{
		"/redfish/v1":               root,
		"/redfish/v1/Systems":       "[/redfish/v1/Systems/1]",
		"/redfish/v1/Systems/1":     `{"SerialNumber":"S1","Links":{"ManagedBy":[{"@odata.id":"/redfish/v1/Managers/1"}]}}`,
		"/redfish/v1/Managers/1":    `{"NetworkProtocol":{"@odata.id":"/redfish/v1/Managers/1/NP"}}`,
		"/redfish/v1/Managers/1/NP": `{"@odata.etag":"\"1\"","HostName":"old","NTP":{"ProtocolEnabled":false,"NTPServers":[]}}`,
	}
	patched := 0
	tree(t, w, resources, func(r *http.Request) int {
		patched++
		if got := r.Header.Get("If-Match"); got != `"1"` {
			t.Errorf("If-Match %q", got)
		}
		resources["/redfish/v1/Managers/1/NP"] = `{"@odata.etag":"\"2\"","HostName":"theirs"}`
		return http.StatusPreconditionFailed
	})
	step := &plan.Step{Address: w.scope.Targets[0].Address("bmc", "hostname", ""), Action: plan.ActionUpdate, After: plan.Obj(map[string]plan.Value{"HostName": plan.Str("ours")})}
	r := w.apply(step)
	if r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodePlanStale || patched != 1 {
		t.Errorf("%s %s after %d writes", r.Outcome, faultText(r.Fault), patched)
	}
}
