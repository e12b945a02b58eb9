package netbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/netbox"
	"github.com/enroll-dev/enroll/providers/netbox/netboxtest"
)

// counted is a NetBox that counts its requests by endpoint.
type counted struct {
	mu      sync.Mutex
	by      map[string]int
	longest int // bytes of a request line
	total   int
	inside  int
	most    int // requests at once
}

func (c *counted) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.by[strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/"), "/")]++
		c.longest = max(c.longest, len(r.Method+" "+r.URL.RequestURI()+" HTTP/1.1\r\n"))
		c.total++
		c.inside++
		c.most = max(c.most, c.inside)
		c.mu.Unlock()
		next.ServeHTTP(w, r)
		c.mu.Lock()
		c.inside--
		c.mu.Unlock()
	})
}

// rackfuls is a site as large ones are: servers of 12 interfaces, a BMC and 8
// cabled frontend NICs in one bond, all with MACs; switches and panels beside
// them.
func rackfuls(tb testing.TB, servers int) (*netboxtest.Server, *httptest.Server, *counted) {
	tb.Helper()
	s := netboxtest.New(netboxtest.Options{})
	tb.Cleanup(s.Close)
	for n := 1; n <= servers; n++ {
		s.AddDevice(rackful(n))
	}
	c := &counted{by: map[string]int{}}
	front := httptest.NewServer(c.wrap(s.Handler()))
	tb.Cleanup(front.Close)
	return s, front, c
}

func rackful(n int) netboxtest.Device {
	d := host(n)
	d.Name, d.Rack = fmt.Sprintf("gpu-%04d", n), fmt.Sprintf("r%03d", n/5+1)
	d.Context["ironic_settings"].(map[string]any)["bond"] = map[string]any{"mode": "802.3ad"}
	d.Interfaces = d.Interfaces[:1]
	for k := range 8 {
		d.Interfaces = append(d.Interfaces, netboxtest.Interface{
			Name: fmt.Sprintf("eth%d", k), Type: "100gbase-sr4", MAC: fmt.Sprintf("02:00:00:%02X:%02X:%02X", n>>8, n&255, k+1),
			Peer: netboxtest.Peer{Device: fmt.Sprintf("leaf-%s-%d", d.Rack, k%2), Port: fmt.Sprintf("Ethernet%d/%d", n%5, k), LAG: fmt.Sprintf("Port-Channel%d", n%5+1)},
		})
	}
	for k := range 3 {
		d.Interfaces = append(d.Interfaces, netboxtest.Interface{Name: fmt.Sprintf("ib%d", k), Type: "infiniband-ndr", MAC: fmt.Sprintf("02:00:01:%02X:%02X:%02X", n>>8, n&255, k)})
	}
	return d
}

// TestBudget holds the requests of a reading, by endpoint, against the committed
// budget: reading more by mistake is as much a failure as reading less.
func TestBudget(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "budget.json"))
	if err != nil {
		t.Fatal(err)
	}
	var budget map[string]map[string]int
	if err := json.Unmarshal(raw, &budget); err != nil {
		t.Fatal(err)
	}
	const servers, most = 1000, 32
	_, front, seen := rackfuls(t, servers)
	ctx := context.Background()
	names := make([]string, servers)
	for n := range names {
		names[n] = rackful(n + 1).Name
	}
	for name, tc := range map[string]struct {
		names []string // nil: those that Names lists
	}{
		"one device": {names[16:17]}, "ten devices": {names[:10]}, "300 devices by name": {names[:300]}, "all 1000 devices": {},
	} {
		t.Run(name, func(t *testing.T) {
			seen.by, seen.total, seen.longest, seen.most = map[string]int{}, 0, 0, 0
			c := client(t, front.URL, netboxtest.DefaultToken)
			list := tc.names
			if list == nil {
				var err error
				if list, err = c.Names(ctx, site(), netbox.Filter{}); err != nil {
					t.Fatal(err)
				}
			}
			intents, failed, err := c.Intents(ctx, site(), list)
			if err != nil || len(failed) > 0 || len(intents) != len(list) {
				t.Fatalf("%d intents of %d, %v, %v", len(intents), len(list), failed, err)
			}
			for _, in := range intents {
				if len(in.Faults)+len(in.Warnings) > 0 || len(in.Frontend) != 8 || in.Frontend[7].Peer.LAG == "" || in.ComputedClass == "" {
					t.Fatalf("%s: %s", in.Name, texts(append(in.Faults, in.Warnings...)))
				}
			}
			// Live values of the same reading need no request of their own.
			sc := scopeOf(site(), intents...)
			for address, live := range c.Read(netbox.SameReading(ctx), sc, desired(sc)) {
				if live.Presence != plan.Present {
					t.Fatalf("%s: %v", address, live.Fault)
				}
			}
			if diff := cmp.Diff(budget[name], seen.by); diff != "" {
				t.Errorf("requests by endpoint differ from testdata/budget.json:\n%s", diff)
			}
			if seen.total > most || seen.longest > 4000 || seen.most > 2 || c.Requests() != seen.total {
				t.Errorf("%d requests (%d counted), the longest line of %d bytes, %d at once", seen.total, c.Requests(), seen.longest, seen.most)
			}
			t.Logf("%d requests, the longest line has %d bytes", seen.total, seen.longest)
		})
	}
}

// BenchmarkIntents reads a site of 1,000 devices, simulator included.
func BenchmarkIntents(b *testing.B) {
	_, front, seen := rackfuls(b, 1000)
	seen.total = 0
	for b.Loop() {
		c, err := netbox.New(netbox.Options{URL: front.URL, Token: plan.NewSecret(netboxtest.DefaultToken, "")})
		if err != nil {
			b.Fatal(err)
		}
		names, err := c.Names(context.Background(), site(), netbox.Filter{})
		if err != nil {
			b.Fatal(err)
		}
		if intents, _, err := c.Intents(context.Background(), site(), names); err != nil || len(intents) != 1000 {
			b.Fatal(len(intents), err)
		}
	}
	b.ReportMetric(float64(seen.total)/float64(b.N), "requests/op")
}
