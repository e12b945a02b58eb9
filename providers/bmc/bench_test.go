package bmc_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// BenchmarkFleet reads 500 BMCs of all families, each of which takes 200 ms for an
// answer: the wall time, requests of a BMC with its login and logout, and the most
// memory that was in use, the simulators' included. At best it takes the rounds of
// 128 BMCs times the requests of the longest family times 200 ms, as a BMC gets one
// request at a time.
func BenchmarkFleet(b *testing.B) {
	const size, latency = 500, 200 * time.Millisecond
	fleet := bmctest.New(bmctest.Options{})
	defer fleet.Close()
	ca := filepath.Join(b.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, fleet.CA(), 0o600); err != nil {
		b.Fatal(err)
	}
	site := &plan.Site{Name: "demo", ConfigureBMC: true, BMC: &plan.BMCSettings{CAFile: ca, Timeout: time.Minute, RestrictBoot: true}}
	scope := &plan.Scope{Site: site}
	for i := range size {
		m := machine(makers[i%len(makers)])
		m.Name, m.FirstNIC = fmt.Sprintf("gpu-%03d", i), 1
		host := fleet.Add(m)
		scope.Targets = append(scope.Targets, &plan.Target{
			Site: site, Intent: &plan.Intent{Name: m.Name, Serial: m.Serial, OOB: netip.MustParseAddr("127.0.0.1"), Ironic: plan.IronicContext{RedfishAddress: host.URL}, Frontend: []plan.FrontendNIC{{Name: "eth0", MAC: provisioningMAC}}},
			Settings: plan.Settings{Hostname: m.Name + "-bmc", NTPServers: []string{"ntp1.example.org"}, Set: map[string]string{}},
		})
	}
	fleet.Recorder().Inject(&exchange.Fault{Kind: exchange.Delay, Delay: latency})
	for b.Loop() {
		stop, peak := watchMemory()
		client, err := bmc.New(*site.BMC, &world{}, bmc.Options{Now: time.Now})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		snap := client.Read(context.Background(), scope, plan.Desired(scope, bmc.Kinds()))
		wall := time.Since(began)
		if err := client.Close(context.Background()); err != nil {
			b.Error(err)
		}
		stop()
		for a, live := range snap {
			if live.Presence != plan.Present && live.Presence != plan.Unsupported {
				b.Fatalf("%s: %s %s", a, live.Presence, faultText(live.Fault))
			}
		}
		b.ReportMetric(wall.Seconds(), "s/read")
		b.ReportMetric(float64(client.Requests())/size, "requests/bmc")
		b.ReportMetric(float64(*peak)/(1<<20), "MB")
	}
	longest := map[string]int{}
	for _, r := range fleet.Recorder().Records() {
		if r.Method == http.MethodGet {
			longest[r.Device]++
		}
	}
	most := 0
	for _, n := range longest {
		most = max(most, n/b.N)
	}
	b.ReportMetric(float64(most), "GETs/longest")
}

// watchMemory samples the memory in use until it is stopped.
func watchMemory() (stop func(), peak *uint64) {
	peak = new(uint64)
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.HeapInuse+m.StackInuse)
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	return func() { close(end); wg.Wait() }, peak
}
