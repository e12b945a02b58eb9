package view

import (
	"strings"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/plan/apply"
)

// A run of many devices: every device is a row with what became of it, faults come
// before what is not there, and what is the same of several devices is told once.
func TestReport(t *testing.T) {
	step := func(id, device, system, kind string) *plan.Step {
		return &plan.Step{ID: id, Address: plan.Address{Site: "lon14", Device: device, System: system, Kind: kind}, Action: plan.ActionUpdate}
	}
	r := &apply.Report{PlanID: "p1", Spent: 90 * time.Second}
	at := func(s *plan.Step, state plan.StepState, text string, f *plan.Fault) *plan.Step {
		r.Steps = append(r.Steps, apply.StepReport{Step: s, State: state, Text: text, Fault: f})
		return s
	}
	for _, d := range []string{"gpu-001", "gpu-002", "gpu-010"} {
		at(step("b"+d, d, "bmc", "boot_order"), plan.StepBlocked, "the BMC of "+d+" has no boot order", nil)
		f := plan.NewFault(plan.CodeBMCCredential, "the BMC of %s refused the password", d).With("path", "/redfish/v1/Systems").With("device", d)
		s := at(step("c"+d, d, "bmc", "credential"), plan.StepFailed, "", f)
		r.Devices = append(r.Devices, apply.DeviceReport{Name: d, Fault: f, At: s, Done: 2, NotRun: 3, Blocked: 1})
	}
	other := plan.NewFault(plan.CodeBMCCredential, "the BMC of gpu-011 refused the password").With("path", "/redfish/v1/Managers")
	s := at(step("s8", "gpu-011", "bmc", "credential"), plan.StepFailed, "", other)
	lost := plan.NewFault(plan.CodeInterrupted, "gpu-012 did not come back")
	d := at(step("s9", "gpu-012", "bmc", "ntp"), plan.StepInDoubt, "cancelled while a request was in flight", lost)
	r.Devices = append(r.Devices, apply.DeviceReport{Name: "gpu-011", Fault: other, At: s, NotRun: 4},
		apply.DeviceReport{Name: "gpu-012", Fault: lost, At: d, NotRun: 1}, apply.DeviceReport{Name: "gpu-013", Already: 7}, apply.DeviceReport{Name: "gpu-014", Done: 1, Already: 6})
	var out strings.Builder
	if err := Report(&out, r, false); err != nil {
		t.Fatal(err)
	}
	const want = `
Apply ended with 5 of 7 devices not done after 1m30s
  gpu-001  failed    2 done, 0 already as wanted, 3 not done, 1 blocked; BMC_CREDENTIAL_REJECTED, for INFRA_ENG
  gpu-002  failed    2 done, 0 already as wanted, 3 not done, 1 blocked; BMC_CREDENTIAL_REJECTED, for INFRA_ENG
  gpu-010  failed    2 done, 0 already as wanted, 3 not done, 1 blocked; BMC_CREDENTIAL_REJECTED, for INFRA_ENG
  gpu-011  failed    0 done, 0 already as wanted, 4 not done, 0 blocked; BMC_CREDENTIAL_REJECTED, for INFRA_ENG
  gpu-012  in doubt  0 done, 0 already as wanted, 1 not done, 0 blocked; INTERRUPTED, for INFRA_ENG
  gpu-013  already   0 done, 7 already as wanted, 0 not done, 0 blocked
  gpu-014  done      1 done, 6 already as wanted, 0 not done, 0 blocked

gpu-001/bmc.credential, and the same of gpu-002, gpu-010
  ✗ BMC_CREDENTIAL_REJECTED: the BMC of gpu-001 refused the password
      device: gpu-001
      path: /redfish/v1/Systems
      For INFRA_ENG: `
	if got := out.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for text, n := range map[string]int{
		"\ngpu-011/bmc.credential\n": 1, "/redfish/v1/Managers": 1, "refused the password": 2,
		"\ngpu-001/bmc.boot_order, and the same of gpu-002, gpu-010\n": 1, "\n\n  ✗ gpu-012/bmc.ntp is in doubt": 1,
	} {
		if got := strings.Count(out.String(), text); got != n {
			t.Errorf("%q stands there %d times, want %d\n%s", text, got, n, out.String())
		}
	}
	if strings.Index(out.String(), "bmc.boot_order") < strings.Index(out.String(), "gpu-011/bmc.credential") {
		t.Error("what is not there is told before a fault")
	}
}

// What could not be put back is a failure to build servers as well.
func TestWhatIsNotPutBackFails(t *testing.T) {
	r := &apply.Report{Obligations: []apply.ObligationReport{
		{Obligation: plan.Obligation{Address: plan.Address{Site: "lon14", Device: "gpu-001", System: "ironic", Kind: "provision", Key: "manage"}, Text: "maintenance"}, Fault: plan.NewFault(plan.CodeObligation, "not put back: maintenance")},
	}}
	var page, text strings.Builder
	if err := JUnit(&page, "lon14", r); err != nil {
		t.Fatal(err)
	}
	if err := Report(&text, r, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), `failures="1"`) || !strings.Contains(page.String(), "OBLIGATION_OPEN") || !strings.Contains(text.String(), "ended with 1 thing not put back") {
		t.Errorf("%s\n%s", page.String(), text.String())
	}
}
