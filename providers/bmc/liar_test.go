package bmc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// liar stands before a simulator and changes one property of one resource.
type liar struct {
	mu    sync.Mutex
	seen  map[string]map[string]bool // properties by resource, when it only listens
	path  string                     // of the resource
	at    string                     // of the property, keys with "\x00" between them
	value any                        // what it has instead; gone: nothing
	told  int
}

type gone struct{}

func (l *liar) body(path string, raw []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	var doc any
	if json.Unmarshal(raw, &doc) != nil {
		return raw
	}
	if l.seen != nil {
		if l.seen[path] == nil {
			l.seen[path] = map[string]bool{}
		}
		properties("", doc, l.seen[path])
	}
	if path != l.path || !put(doc, strings.Split(l.at, "\x00"), l.value) {
		return raw
	}
	l.told++
	out, err := json.Marshal(doc)
	if err != nil {
		return raw
	}
	return out
}

func properties(at string, v any, into map[string]bool) {
	add := func(key string, v any) {
		if at != "" {
			key = at + "\x00" + key
		}
		into[key] = true
		properties(key, v, into)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			add(k, inner)
		}
	case []any:
		for i, inner := range v[:min(len(v), 3)] {
			add(strconv.Itoa(i), inner)
		}
	}
}

func put(v any, keys []string, value any) bool {
	last := len(keys) == 1
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[keys[0]]
		_, away := value.(gone)
		switch {
		case !ok:
			return false
		case last && away:
			delete(v, keys[0])
			return true
		case last:
			v[keys[0]] = value
			return true
		}
		return put(inner, keys[1:], value)
	case []any:
		i, err := strconv.Atoi(keys[0])
		switch {
		case err != nil || i >= len(v):
			return false
		case last:
			v[i] = value
			return true
		}
		return put(v[i], keys[1:], value)
	}
	return false
}

// between puts the liar before the first BMC of a world.
func (l *liar) between(t *testing.T, w *world) {
	t.Helper()
	client := w.plainClient()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	to := w.bmcs[0].URL
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		req, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.RequestURI(), bytes.NewReader(sent))
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		req.Header = r.Header.Clone()
		resp, err := client.Do(req)
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		raw, _ := io.ReadAll(resp.Body)
		if r.Method == http.MethodGet && resp.StatusCode == http.StatusOK {
			raw = l.body(r.URL.Path, raw)
		}
		for k, v := range resp.Header {
			if k != "Content-Length" {
				rw.Header()[k] = v
			}
		}
		rw.WriteHeader(resp.StatusCode)
		_, _ = rw.Write(raw)
	}))
	t.Cleanup(server.Close)
	w.scope.Targets[0].Intent.Ironic.RedfishAddress = server.URL
	w.connect()
}

func lies() []any {
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	return []any{
		gone{}, nil, float64(7), float64(-1), 1e300, "x", "", true, false, []any{}, map[string]any{}, []any{nil}, []any{map[string]any{}}, []any{"a", "a"}, map[string]any{"a": []any{}},
		map[string]any{"@odata.id": "http://example.org/redfish/v1/x"}, map[string]any{"@odata.id": "/redfish/v1/Systems"}, map[string]any{"@odata.id": "//example.org/x"}, map[string]any{"@odata.id": ""},
		map[string]any{"@odata.id": "%zz"}, "http://example.org/x", "\x1b[31m", strings.Repeat("long ", 5000), deep, "JID_1", "02:00:5e:00:01:01", "Scheduled", "Off",
	}
}

// underLies runs a plan's steps while they have time, and gives all faults.
func (w *world) underLies(c *clock) (faults []*plan.Fault) {
	w.t.Helper()
	p := w.build(w.read())
	for _, d := range p.Diagnostics {
		if d.Fault != nil {
			faults = append(faults, d.Fault)
		}
	}
	for _, s := range p.Steps {
		if s.Blocked != nil {
			continue
		}
		var memo plan.Memo
		began := c.now()
		retries := 0
		for n := 0; c.now().Sub(began) < 95*time.Minute; n++ {
			if n > 600 {
				w.t.Errorf("%s: 600 exchanges, %d writes: %s", s.Address, mutating(w), memo)
				break
			}
			r := w.client.Run(w.t.Context(), w.scope, s, memo)
			if r.Outcome == plan.OutcomeWait {
				c.pass(max(r.After, time.Millisecond))
				memo = r.Memo
				continue
			}
			if r.Outcome == plan.OutcomeFailed {
				faults = append(faults, r.Fault)
				if class := r.Fault.Class(); retries < 2 && (class == plan.ClassBusy || class == plan.ClassUnreachable) {
					retries++
					c.pass(30 * time.Second)
					continue
				}
			}
			break
		}
	}
	return faults
}

// A BMC that lies about one property, whatever it says instead: enroll ends with a
// classified fault or without one, resets the host once at most, leaves no session,
// and the host still boots from something. One property of each family is drawn;
// ENROLL_LIES says how many, and draws others each time.
func TestLies(t *testing.T) {
	tries, seed := 1, uint64(1) // they vary with what is set
	if n, err := strconv.Atoi(os.Getenv("ENROLL_LIES")); err == nil {
		tries, seed = n, uint64(time.Now().UnixNano())
	}
	for _, vendor := range makers {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			l := &liar{seen: map[string]map[string]bool{}}
			w, c := freshMachine(t, &clock{t: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}, vendor)
			l.between(t, w)
			if faults := w.underLies(c); len(faults) > 0 {
				t.Fatal(faultText(faults[0]))
			}
			w.close()
			resets := w.bmcs[0].Resets()
			var all [][2]string
			for path, keys := range l.seen {
				for key := range keys {
					all = append(all, [2]string{path, key})
				}
			}
			sort.Slice(all, func(i, j int) bool { return all[i][0]+all[i][1] < all[j][0]+all[j][1] })
			for _, f := range foundLies()[vendor] {
				lieOnce(t, vendor, resets, [2]string{f.path, f.at}, f.value)
			}
			r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a choice of tests
			for range tries {
				at, lie := all[r.IntN(len(all))], lies()[r.IntN(len(lies()))]
				lieOnce(t, vendor, resets, at, lie)
			}
		})
	}
}

func lieOnce(t *testing.T, vendor string, resets int, at [2]string, lie any) {
	t.Helper()
	name := fmt.Sprintf("%s %s = %.60v", at[0], strings.ReplaceAll(at[1], "\x00", "."), lie)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v\n%s", name, p, debug.Stack())
		}
	}()
	l := &liar{path: at[0], at: at[1], value: lie}
	w, c := freshMachine(t, &clock{t: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}, vendor)
	l.between(t, w)
	was := t.Failed()
	faults := w.underLies(c)
	if t.Failed() != was {
		t.Errorf("%s: without end", name)
	}
	for _, f := range faults {
		noSecret(t, name, faultText(f))
		if f.Class() == plan.ClassInternal || len(faultText(f)) > 6000 {
			t.Errorf("%s: %.3000s", name, faultText(f))
		}
	}
	_ = w.client.Close(t.Context())
	b := w.bmcs[0]
	if n := b.Sessions(); n != 0 && !strings.Contains(at[0], "SessionService") && !strings.HasSuffix(at[0], "v1/") {
		t.Errorf("%s: %d sessions left", name, n)
	}
	if n := b.Resets(); n > resets {
		t.Errorf("%s: %d resets, not %d", name, n, resets)
	}
	if len(b.Boots()) == 0 {
		t.Errorf("%s: the host boots from nothing", name)
	}
	if !b.Accepts("root", password) {
		t.Errorf("%s: the account is locked", name)
	}
}

// foundLies are those at which enroll went wrong once: it sent the same change for as
// long as the step had time.
func foundLies() map[string][]*liar {
	at := func(keys ...string) string { return strings.Join(keys, "\x00") }
	return map[string][]*liar{
		bmctest.IDRAC:      {{path: "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1", at: at("Attributes", "OS-BMC.1.AdminState"), value: "\x1b[31m"}},
		bmctest.XCC:        {{path: "/redfish/v1/AccountService", at: at("AccountLockoutDuration"), value: map[string]any{"@odata.id": "/redfish/v1/Systems"}}},
		bmctest.Supermicro: {{path: "/redfish/v1/Systems/1/Bios/SD", at: at("Attributes", "QuietBoot_002E"), value: true}},
	}
}
