package ironic

import (
	"net/netip"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// The table is total, agrees with the model about whose a node is, and only
// ever sends a verb where Ironic takes it.
func TestStateTable(t *testing.T) {
	legal := map[string][]plan.ProvisionState{ // from the reference's table of verbs
		keyManage:  {plan.StateEnroll, plan.StateAvailable, plan.StateInspectFailed, plan.StateCleanFailed, plan.StateAdoptFailed},
		keyInspect: {plan.StateManageable, plan.StateInspectFailed},
		keyProvide: {plan.StateManageable},
	}
	for verb, w := range walks() {
		if len(w.states) != len(walkStates()) {
			t.Errorf("%s: the table has %d states, the model %d", verb, len(w.states), len(walkStates()))
		}
		for _, s := range walkStates() {
			m, known := w.states[s]
			if !known {
				t.Errorf("%s: nothing is said about %q", verb, s)
			}
			if m == send {
				ok := false
				for _, from := range legal[verb] {
					ok = ok || from == s
				}
				if !ok {
					t.Errorf("%s would be sent in %q, where Ironic refuses it", verb, s)
				}
			}
			if own := plan.Own("n", s, "", false); s != absent && own.Owned && m != stay {
				t.Errorf("%s in %q: %v, but the node is owned", verb, s, m)
			}
		}
		if w.in("a state of tomorrow") != stay {
			t.Errorf("%s acts in a state that it does not know", verb)
		}
		if w.in(w.from) != send {
			t.Errorf("%s does not start in %q", verb, w.from)
		}
		// What a step promises must not be true before it ran.
		for _, s := range walkStates() {
			if m := w.in(s); (m == send || m == await || m == missing) && plan.Satisfies(w.wanted(), w.before(s)) {
				t.Errorf("%s in %q is satisfied before it ran", verb, s)
			}
		}
	}
}

// What is explained has a row for each state that the model knows, each with its
// reason.
func TestWalkTable(t *testing.T) {
	rows := WalkTable()
	if len(rows) != 31 { // the 30 states of API 1.115, and no node
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		own := plan.Own("n", r.State, "", false)
		switch {
		case r.Why == "" || r.Manage == "" || r.Inspect == "" || r.Provide == "":
			t.Errorf("%+v lacks something", r)
		case r.State != absent && own.Owned && r.Manage+r.Inspect+r.Provide != "---":
			t.Errorf("%+v, and the node is owned", r)
		}
	}
}

func TestRedfishAddress(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	for _, c := range []struct {
		oob                       netip.Addr
		override, address, system string
	}{
		{v4, "", "https://192.0.2.7", ""},
		{v6, "", "https://[2001:db8::7]", ""},
		{v4, "http://127.0.0.1:8600", "http://127.0.0.1:8600", ""},
		{v4, "http://127.0.0.1:8600/redfish/v1/", "http://127.0.0.1:8600", ""},
		{v4, "https://bmc:8443/redfish/v1/Systems/1/", "https://bmc:8443", "/redfish/v1/Systems/1"},
	} {
		if address, system := redfishAddress(c.oob, c.override); address != c.address || system != c.system {
			t.Errorf("%q: %q %q, want %q %q", c.override, address, system, c.address, c.system)
		}
	}
}

// The operator's extras add to driver_info, and never override what enroll
// manages or carry a credential.
func TestDriverInfo(t *testing.T) {
	target := &plan.Target{Site: &plan.Site{BMC: &plan.BMCSettings{Insecure: true}}, Intent: &plan.Intent{
		OOB: netip.MustParseAddr("192.0.2.7"),
		Ironic: plan.IronicContext{Driver: "idrac", DriverInfo: map[string]any{
			"redfish_address": "https://elsewhere", "redfish_password": "x", "redfish_username": "y", "deploy_kernel": "http://k", "redfish_verify_ca": true,
		}},
	}}
	want := `{"deploy_kernel":"http://k","redfish_address":"https://192.0.2.7","redfish_verify_ca":false}`
	if got := string(plan.ToJSON(value(driverInfo(target)))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	target.Intent.Ironic = plan.IronicContext{Driver: "ipmi"}
	if got := string(plan.ToJSON(value(driverInfo(target)))); got != `{"ipmi_address":"192.0.2.7"}` {
		t.Error(got)
	}
}

func TestPause(t *testing.T) {
	var memo plan.Memo
	var last plan.Result
	for n := range 20 {
		last = again(memo, "", true)
		if n == 0 && last.After != firstPause {
			t.Errorf("the first pause is %s", last.After)
		}
		memo = last.Memo
	}
	if last.After != lastPause || memo[memoSent] == "" {
		t.Errorf("%+v", last)
	}
}
