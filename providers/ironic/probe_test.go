package ironic_test

import (
	"context"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/ironic"
)

var _ providers.Prober = (*ironic.Client)(nil)

func TestProbe(t *testing.T) {
	l := newLab(t, 1)
	recorder := l.sim.Recorder()
	found := l.connect().Probe(context.Background(), nil)
	if len(found) != 4 || !strings.Contains(found[0].Note, "without a login") {
		t.Errorf("%+v", found)
	}
	for _, f := range found {
		if f.Fault != nil {
			t.Errorf("%s: %v", f.What, f.Fault)
		}
	}
	recorder.Inject(&exchange.Fault{Kind: exchange.Status, Path: "/v1/ports", Times: 1, Status: 403, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"error_message": "{\"faultstring\": \"denied\"}"}`})
	found = l.connect().Probe(context.Background(), nil)
	if len(found) != 4 || found[2].Fault == nil || found[2].Fault.Code != plan.CodeIronicDenied || found[1].Fault != nil || found[3].Fault != nil {
		t.Errorf("%+v", found)
	}
	if n := recorder.Count(func(r exchange.Record) bool { return r.Mutating }); n > 0 {
		t.Errorf("%d mutating requests", n)
	}
	l.sim.Close()
	if found = l.connect().Probe(context.Background(), nil); len(found) != 1 || found[0].Fault == nil || found[0].Fault.Code != plan.CodeIronicUnreachable {
		t.Errorf("%+v", found)
	}
}
