package plan

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// differing is a world of n devices with eight resources each, all of which
// differ.
func differing(devices int) (*Scope, Snapshot, []Kind) {
	kinds := []Kind{
		kind("dhcp.reservation", PhaseDHCP), kind("bmc.credential", PhaseBMC), kind("bmc.hostname", PhaseBMC), kind("bmc.ntp", PhaseBMC),
		kind("ironic.node", PhaseNode, EffectCredential), kind("ironic.power", PhaseFinish, EffectPower), kind("netbox.status", PhaseActivate), kind("netbox.tag", PhaseFinish),
	}
	names := make([]string, devices)
	for i := range names {
		names[i] = fmt.Sprintf("gpu-%04d", i)
	}
	sc := testScope(names...)
	for i, t := range sc.Targets {
		t.Intent.Rack = fmt.Sprintf("r%02d", i/8)
	}
	w := Snapshot{}
	for _, r := range Desired(sc, kinds) {
		w[r.Address] = LiveValue(Obj(map[string]Value{"v": Str("old"), "beside": Int(1)}))
	}
	return sc, w, kinds
}

// BenchmarkPlanFile judges a world in which everything differs and writes the
// plan's bytes, and says how the time grows with the number of steps.
func BenchmarkPlanFile(b *testing.B) {
	perStep := map[int]time.Duration{}
	sizes := []int{80, 800, 4000}
	for _, steps := range sizes {
		b.Run(fmt.Sprintf("%d steps", steps), func(b *testing.B) {
			sc, w, kinds := differing(steps / 8)
			b.ReportAllocs()
			for b.Loop() {
				p := Build(Input{Scope: sc, Kinds: kinds, World: w})
				if len(p.Steps) != steps {
					b.Fatalf("%d steps", len(p.Steps))
				}
				if _, err := Encode(p); err != nil {
					b.Fatal(err)
				}
			}
			perStep[steps] = b.Elapsed() / time.Duration(b.N)
			if small := perStep[sizes[0]]; steps != sizes[0] && small > 0 {
				b.ReportMetric(math.Log(float64(perStep[steps])/float64(small))/math.Log(float64(steps)/float64(sizes[0])), "slope")
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	sc, w, kinds := differing(500)
	p := Build(Input{Scope: sc, Kinds: kinds, World: w})
	p.PlanID = "0123456789ab"
	raw, err := Encode(p)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
