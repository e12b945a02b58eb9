package bmc_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
)

// budgets are the committed numbers: requests of a first reading of a BMC that is
// as wanted, of a second one, and the longest chain of requests of which each
// needs the answer of the one before. Login and logout do not count.
const budgets = "testdata/budgets.txt"

// TestRequests holds readings against the budgets, and the budgets against the
// bounds: 18 for iDRAC and XCC, 14 for the others, chains of 8.
func TestRequests(t *testing.T) {
	file, err := os.Open(budgets)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	seen := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var vendor string
		var first, second, chain int
		if _, err := fmt.Sscan(line, &vendor, &first, &second, &chain); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen++
		most := map[string]int{bmctest.IDRAC: 18, bmctest.XCC: 18}[vendor]
		if most == 0 {
			most = 14
		}
		if first > most || chain > 8 {
			t.Errorf("%s: the budget itself is too large", vendor)
		}
		t.Run(vendor, func(t *testing.T) {
			got := [3]int{}
			w := convergedWorld(t, vendor)
			w.fleet.Recorder().Reset()
			w.read()
			var paths []string
			asked := map[string]bool{}
			for _, r := range w.fleet.Recorder().Records() {
				if r.Method != http.MethodGet {
					continue
				}
				if asked[r.Path] {
					t.Errorf("%s twice", r.Path)
				}
				asked[r.Path] = true
				paths = append(paths, r.Path)
			}
			got[0] = len(paths)
			w.read()
			again := w.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Method == http.MethodGet })
			got[1] = again - len(paths)
			got[2] = depth(t, w, paths)
			if want := [3]int{first, second, chain}; got != want {
				t.Errorf("requests, again, chain: %v, and the budget is %v: if that is right, write it into %s\n%s", got, want, budgets, strings.Join(paths, "\n"))
			}
			w.close()
		})
	}
	if seen != len(makers) {
		t.Errorf("budgets for %d families, want %d", seen, len(makers))
	}
}

// convergedWorld is a BMC that has all that a demanding site wants of it.
func convergedWorld(t *testing.T, vendor string) *world {
	t.Helper()
	w := bmcOf(t, vendor, func(m *bmctest.Machine) { m.FirstNIC = 1 })
	if tc, ok := biosCases[vendor]; ok {
		name := tc.name
		w.scope.Site.BMC.BIOS = []plan.BIOSSettings{{Class: "EXAMPLEMODEL1", Attributes: map[string]any{name: w.bmcs[0].BIOS(name)}}}
		w.scope.Targets[0].Intent.Manufacturer, w.scope.Targets[0].Intent.Model = "Example", "Model 1"
	}
	w.bootsRight()
	w.connect()
	for _, s := range w.build(w.read()).Steps {
		if r := w.apply(s); r.Outcome != plan.OutcomeDone {
			t.Fatalf("%s: %s", s.Address, faultText(r.Fault))
		}
	}
	w.close()
	w.connect()
	if p := w.build(w.read()); len(p.Steps) != 0 {
		t.Fatalf("not converged: %s", steps(p))
	}
	w.close()
	w.connect()
	return w
}

// depth finds for each request the answer that named its path, and the longest
// chain of them. Paths that no answer names hang on the longest resource above
// them.
func depth(t *testing.T, w *world, paths []string) int {
	t.Helper()
	bodies := map[string]string{}
	client := w.plainClient()
	for _, path := range paths {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.bmcs[0].URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("root", password)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		bodies[path] = string(raw)
	}
	longest := 0
	depths := map[string]int{}
	for i, path := range paths {
		bare, _, _ := strings.Cut(strings.TrimSuffix(path, "/"), "?")
		best := 1 // the root, and what is known without asking
		for _, earlier := range paths[:i] {
			if strings.Contains(bodies[earlier], `"`+bare+`"`) {
				best = depths[earlier] + 1
				break
			}
		}
		if best == 1 {
			for _, earlier := range paths[:i] {
				if above, _, _ := strings.Cut(strings.TrimSuffix(earlier, "/"), "?"); strings.HasPrefix(bare, above+"/") {
					best = max(best, depths[earlier]+1)
				}
			}
		}
		depths[path] = best
		longest = max(longest, best)
	}
	return longest
}
