//go:build lab

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Devices are enrolled at once by a program that is killed three times, at moments
// that the seed chooses, counted in steps that ended: ENROLL_TEST_SEED repeats them.
// They are four, as the lab's Ironic is one process and slow on a busy machine;
// ENROLL_TEST_FLEET says how many else, of the 24.
func TestLabFleetSurvivesKills(t *testing.T) {
	seed := fromEnvironment(t, "ENROLL_TEST_SEED", uint64(time.Now().UnixNano())) //nolint:gosec // any number will do
	size := int(fromEnvironment(t, "ENROLL_TEST_FLEET", 4))                       //nolint:gosec // a small number
	t.Logf("ENROLL_TEST_SEED=%d repeats the moments", seed)
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // moments, not secrets
	l := openLab(t)
	// All at once: by default few hosts of a site and of a rack reboot at a time.
	l = l.with("ENROLL_SITE", l.otherSite(t, "  secrets \"env\" {}\n", fmt.Sprintf("  secrets \"env\" {}\n\n  limits {\n    devices = %d\n    reboots = %[1]d\n    reboots_per_rack = 5\n  }\n", max(size, 5))))
	var names []string
	for i := range size {
		names = append(names, fmt.Sprintf("gpu-%03d", i+1))
	}
	l.reset(t, names...)
	t.Cleanup(func() { l.reset(t, names...) })
	apply := append([]string{"apply", "--auto-approve", "--format", "json"}, names...)

	// A device has 15 steps. Four of them are checks that the next plan makes by itself,
	// and each kill leaves one that comes to its end without the program: with 8 for
	// each device something is left to be killed at.
	moments := make([]int, 3)
	for i := range moments {
		moments[i] = 1 + dice.IntN(8*size)
	}
	slices.Sort(moments)
	past := 0
	for i, moment := range moments {
		began := time.Now()
		l.killed(t, ends(t, moment-past), apply...)
		t.Logf("kill %d after %d steps and %s", i+1, moment-past, time.Since(began).Round(100*time.Millisecond))
		past = moment
		// Whoever knows that a run is dead need not wait for the lease of its lock.
		l.shell(t, "cd "+l.get("DHCP_DIRECTORY")+" && if [ -e .enroll-lock ]; then touch -d '2 hours ago' .enroll-lock; fi")
	}
	began := time.Now()
	l.enroll(t, exitDone, append([]string{"apply", "--auto-approve"}, names...)...)
	t.Logf("the rest took %s", time.Since(began).Round(time.Second))
	for _, name := range names {
		if _, node := l.ironic(t, http.MethodGet, "nodes/"+name, nil); node["provision_state"] != "available" || node["power_state"] != "power on" || node["maintenance"] != false {
			t.Errorf("%s is %v, %v, maintenance %v", name, node["provision_state"], node["power_state"], node["maintenance"])
		}
	}
	has(t, l.enroll(t, exitDone, append([]string{"plan", "--detailed-exitcode"}, names...)...), "\nNothing to do.\n",
		fmt.Sprintf("Plan: %d devices, 0 to change, 0 to run, 0 to verify, 0 blocked; 0 host reboots, 0 disk erase, 0 service restart.\n", size))
}

func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// ends is the line of an event with which so many steps have ended; at none it is
// the first one.
func ends(t *testing.T, steps int) func([]byte) bool {
	ended := 0
	return func(line []byte) bool {
		var event struct{ Kind string }
		if err := json.Unmarshal(line, &event); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if event.Kind == "end" {
			ended++
		}
		return ended >= steps
	}
}
