package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDrift(t *testing.T) {
	old := LiveValue(Obj(map[string]Value{"v": Str("old")}))
	for _, tc := range []struct {
		name string
		live map[string]Live
		own  Ownership
		// tolerated is an address pattern.
		tolerated string
		want      Drift
	}{
		{"clean", nil, Ownership{}, "", Drift{Devices: 2}},
		{"a difference", map[string]Live{"lon14/gpu-001/bmc.ntp": old}, Ownership{}, "", Drift{Devices: 2, Drifted: 1, Differences: 1}},
		{"a difference on a node that Nova holds", map[string]Live{"lon14/gpu-001/bmc.ntp": old}, Own("n", StateActive, "u-1", false), "", Drift{Devices: 2, Drifted: 1, Differences: 1, Blocked: 1}},
		{"a held node without a difference", nil, Own("n", StateDeploying, "u-1", false), "", Drift{Devices: 2}},
		{"a tolerated difference", map[string]Live{"lon14/gpu-001/bmc.ntp": old}, Ownership{}, "*/bmc.ntp", Drift{Devices: 2, Tolerated: 1}},
		{"nobody answers", map[string]Live{"lon14/gpu-001/bmc.ntp": LiveFault(Unreadable, NewFault(CodeBMCProtocol, "nonsense"))}, Ownership{}, "", Drift{Devices: 2, Unread: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := testScope("gpu-001", "gpu-002")
			if tc.tolerated != "" {
				sc.Site.Tolerations = []Toleration{{Name: "x", Address: tc.tolerated, Path: "v", Until: noon.Add(time.Hour)}}
			}
			w := satisfied(sc)
			for at, live := range tc.live {
				w[addr(t, at)] = live
			}
			p := Build(Input{Scope: sc, Kinds: testKinds, World: w, Owners: map[string]Ownership{"gpu-001": tc.own}, Now: noon})
			if d := cmp.Diff(tc.want, p.Drift(), cmpopts.IgnoreUnexported(Drift{})); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
