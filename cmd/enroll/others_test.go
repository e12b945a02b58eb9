package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/lab"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/exchange/sweep"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// other is somebody else, who does one thing at some moment of an enrolment.
type other struct {
	name string
	does func(*lab.Lab) bool // false: there is nothing to do it to yet
	// lost says what of it is gone at the end; "" when it stands.
	lost func(*lab.Lab) string
	// ends: after it nothing may be written to the machine, but for one request that
	// was decided on before.
	ends bool
}

const handMade = "/etc/dnsmasq.d/enroll-hosts/by-hand"

func others() []other {
	const device = "gpu-001"
	kept := func(what string, want any, now func(*lab.Lab) any) func(*lab.Lab) string {
		return func(l *lab.Lab) string {
			if got := now(l); got != want {
				return fmt.Sprintf("%s is %v and was %v", what, got, want)
			}
			return ""
		}
	}
	node := func(l *lab.Lab, set ...any) bool {
		if _, ok := l.Ironic.Node(device); !ok {
			return false
		}
		for i := 0; i < len(set); i += 2 {
			l.Ironic.Set(device, set[i].(string), set[i+1])
		}
		return true
	}
	return []other{
		{"a BIOS attribute that the plan has not", func(l *lab.Lab) bool { l.BMCOf(device).SetBIOS("LogicalProc", "Disabled"); return true },
			kept("LogicalProc", "Disabled", func(l *lab.Lab) any { return l.BMCOf(device).BIOS("LogicalProc") }), false},
		{"a NetBox field", func(l *lab.Lab) bool {
			l.NetBox.Update(device, func(d *netboxtest.Device) {
				d.CustomFields = maps.Clone(d.CustomFields)
				if d.CustomFields == nil {
					d.CustomFields = map[string]any{}
				}
				d.CustomFields["asset"] = "A17"
				d.Tags = append(slices.Clone(d.Tags), "moved")
			})
			return true
		}, kept("tag and field", "true A17", func(l *lab.Lab) any {
			d, _ := l.NetBox.Device(device)
			return fmt.Sprint(slices.Contains(d.Tags, "moved"), " ", d.CustomFields["asset"])
		}), false},
		{"a DHCP file", func(l *lab.Lab) bool {
			l.DHCP.PutFile(handMade, "02:00:5e:09:00:00,198.18.250.9,by-hand\n", 0o644)
			return true
		}, kept("the file", true, func(l *lab.Lab) any { _, ok := l.DHCP.ReadFile(handMade); return ok }), false},
		{"a node in maintenance", func(l *lab.Lab) bool {
			return node(l, "maintenance", true, "maintenance_reason", "a person looks at it")
		}, kept("maintenance", true, func(l *lab.Lab) any { n, _ := l.Ironic.Node(device); return n.Maintenance }), false},
		{"a claim", func(l *lab.Lab) bool {
			return node(l, "instance_uuid", "5f1ff2a1-7f0e-4f0c-9e53-6a6f6a3f6f01", "provision_state", "active")
		}, kept("the state", plan.StateActive, func(l *lab.Lab) any { n, _ := l.Ironic.Node(device); return n.ProvisionState }), true},
		{"a node that is deleted", func(l *lab.Lab) bool {
			if !node(l) {
				return false
			}
			l.Ironic.Remove(device)
			return true
		}, kept("a node", false, func(l *lab.Lab) any { _, ok := l.Ironic.Node(device); return ok }), true},
		{"a device that gets another name", func(l *lab.Lab) bool {
			l.NetBox.Update(device, func(d *netboxtest.Device) { d.Name = "gpu-901" })
			return true
		}, kept("the name", true, func(l *lab.Lab) any { _, ok := l.NetBox.Device("gpu-901"); return ok }), false},
	}
}

// Between two exchanges of an enrolment, any two, somebody else changes something.
// What the plan does not cover stays as they left it; after a claim, or when the
// node is gone, no more is written than what was on its way.
func TestOtherPeople(t *testing.T) {
	f := families()[0]
	want := journey{of: f}.undisturbed(t)
	all := others()
	for point := range sweep.Points(t, want.exchanges*len(all), 409) {
		at, o := point/len(all)+1, all[point%len(all)]
		t.Run(fmt.Sprintf("%s at %d", o.name, at), func(t *testing.T) {
			t.Parallel()
			meet(t, f, o, at)
		})
	}
}

func meet(t *testing.T, f family, o other, at int) {
	t.Helper()
	e := newEstate(t, 1, f)
	e.lab.NetBox.AddTag("moved")
	e.lab.Recorder.Reset()
	did := false
	e.lab.Recorder.Before(func(r exchange.Record) {
		if r.Seq == at {
			did = o.does(e.lab)
		}
	})
	r := e.apply("gpu-001")
	if !did {
		return
	}
	defer func() {
		if t.Failed() {
			_, from, _ := strings.Cut(r.text, "Approved by")
			t.Logf("exit %d\n%s", r.code, from)
			for _, rec := range e.lab.Recorder.Records() {
				if rec.Seq >= at-2 && (rec.Seq < at+8 || rec.Mutating) {
					t.Logf("%d %s %s %s %d", rec.Seq, rec.System, rec.Method, rec.Path, rec.Status)
				}
			}
		}
	}()
	if r.code != exitDone {
		told(t, r)
	}
	if lost := o.lost(e.lab); lost != "" {
		t.Error(lost)
	}
	if left := e.leaks(); len(left) > 0 && !strings.HasPrefix(o.name, "a node in maintenance") {
		for _, l := range left {
			if !strings.HasSuffix(l, ".enroll-pending") || r.ended("dhcp.service") {
				t.Errorf("left: %s", l)
			}
		}
	}
	if !o.ends {
		return
	}
	written := 0
	for _, rec := range e.lab.Recorder.Records() {
		if rec.Seq <= at || !rec.Mutating {
			continue
		}
		switch {
		case rec.System == "bmc" && rec.Method == http.MethodDelete: // the session
		case rec.System == "netbox": // the tag, on what somebody holds
		case rec.System == "dhcp": // temporary files, lock and marker; what counts is looked at by its content
		default:
			written++
		}
	}
	if written > 1 {
		t.Errorf("%d requests were sent after it", written)
	}
}
