//go:build lab

package ironic_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/enroll-dev/enroll/plan"
)

// slowBMC stands between Ironic and a BMC of the lab. While it is held, a request
// of Ironic gets no answer, and the node stays locked.
type slowBMC struct {
	url  string
	held chan struct{} // told of each request that waits

	mu   sync.Mutex
	gate chan struct{} // nil while everything passes
}

func newSlowBMC(t *testing.T) *slowBMC {
	t.Helper()
	behind, err := url.Parse(os.Getenv("ENROLL_LAB_REDFISH_URL"))
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(os.Getenv("ENROLL_LAB_REDFISH_CA"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.SetBasicAuth(os.Getenv("ENROLL_LAB_REDFISH_USER"), os.Getenv("ENROLL_LAB_REDFISH_PASSWORD"))
		},
	}
	b := &slowBMC{held: make(chan struct{}, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		gate := b.gate
		b.mu.Unlock()
		if gate != nil {
			select {
			case b.held <- struct{}{}:
			default:
			}
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	b.url = server.URL
	t.Cleanup(server.Close)
	t.Cleanup(b.release)
	return b
}

func (b *slowBMC) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = make(chan struct{})
}

func (b *slowBMC) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate != nil {
		close(b.gate)
		b.gate = nil
	}
}

// Somebody switches the power of a node whose BMC does not answer: the node is
// locked for as long. Every write of ours is refused with the holder's name, nothing
// of it is done, and all goes on when the lock is free.
func TestLockedNodeLab(t *testing.T) {
	l, _, _ := realLab(t, "redfish")
	bmc := newSlowBMC(t)
	systems := strings.Fields(os.Getenv("ENROLL_LAB_REDFISH_SYSTEMS"))
	i := &l.scope.Targets[0].Intent.Ironic
	i.RedfishAddress = bmc.url + "/redfish/v1/Systems/" + systems[len(systems)-1] // of no device
	i.Interfaces["raid_interface"], i.Interfaces["boot_interface"], i.Interfaces["deploy_interface"] = "agent", "pxe", "direct"
	i.TargetRAIDConfig = map[string]any{"logical_disks": []any{map[string]any{"size_gb": "MAX", "raid_level": "1"}}}
	l.scope.Site.Ironics[0].SchedulerTrait = "HW_ARCH_X86_64"
	trait := l.reachLab("ironic.trait[HW_ARCH_X86_64]")

	bmc.hold()
	if status, answer := l.other(http.MethodPut, "/v1/nodes/"+l.name()+"/states/power", map[string]any{"target": "power on"}); status != http.StatusAccepted {
		t.Fatalf("%d %v", status, answer)
	}
	<-bmc.held
	l.scope.Parameters.RewriteCredentials = true
	met := map[string]bool{}
	for _, s := range l.plan().Steps {
		switch s.Address.Kind {
		case "trait", "credential", "raid_config", "provision":
		default:
			continue
		}
		if s.Address.Key == "provide" {
			continue // it is sent after the inspection
		}
		f := l.step(s)
		if f == nil || f.Code != plan.CodeIronicLocked || f.Evidence["holder"] == "" || f.Evidence["status"] != "409" {
			t.Errorf("%s: %v %v", s.Address, f, f.EvidenceLines())
		}
		met[s.Address.Kind] = true
	}
	if len(met) != 4 {
		t.Errorf("the plan had only %v", met)
	}
	n := l.see()
	if n["provision_state"] != "manageable" || n["reservation"] == nil || fmt.Sprint(n["traits"]) != "[]" || fmt.Sprint(n["target_raid_config"]) != "map[]" {
		t.Errorf("the node is %v, locked by %v, traits %v, RAID %v", n["provision_state"], n["reservation"], n["traits"], n["target_raid_config"])
	}
	bmc.release()
	if f, _ := l.patient(trait); f != nil {
		t.Error(f)
	}
	if n := l.see(); fmt.Sprint(n["traits"]) != "[HW_ARCH_X86_64]" {
		t.Errorf("traits %v", n["traits"])
	}
}

// A second client hammers the node: every write of ours waits for its turn, the
// walk comes through, and what the other one wrote is not lost to ours.
func TestLockContentionLab(t *testing.T) {
	l := booted(t)
	s := l.reachLab("ironic.provision[manage]")
	if f, _ := l.patient(s); f != nil {
		t.Fatal(f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var hammers sync.WaitGroup
	var hits atomic.Int32
	for n := range 12 {
		hammers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				status, _ := l.other(http.MethodPatch, "/v1/nodes/"+l.name(), []map[string]any{{"op": "add", "path": "/description", "value": fmt.Sprintf("hammer %d %d", n, i)}})
				if status == http.StatusOK {
					hits.Add(1)
				}
			}
		})
	}
	f, busy := l.walk(l.plan())
	cancel()
	hammers.Wait()
	if f != nil {
		t.Fatal(f)
	}
	n := l.see()
	if n["provision_state"] != "available" || !strings.HasPrefix(fmt.Sprint(n["description"]), "hammer") {
		t.Errorf("the node is %v, %v", n["provision_state"], n["description"])
	}
	t.Logf("%d writes of the other client; ours met the lock %d times", hits.Load(), busy)
}
