//go:build lab

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"
)

// Twenty devices are enrolled at once, by a program that is killed three times, at
// moments that the seed chooses; ENROLL_TEST_SEED repeats them.
func TestLabFleetSurvivesKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if again := os.Getenv("ENROLL_TEST_SEED"); again != "" {
		var err error
		if seed, err = strconv.ParseUint(again, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ENROLL_TEST_SEED=%d repeats the moments", seed)
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // moments, not secrets
	l := openLab(t)
	var names []string
	for i := range 20 {
		name := fmt.Sprintf("gpu-%03d", i+1)
		names = append(names, name)
		l.reset(t, name)
	}
	apply := append([]string{"apply", "--auto-approve", "--format", "json"}, names...)
	for kill := range 3 {
		after := 2 + dice.IntN(220)
		cmd := l.command(apply...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20) // the first line is the plan
		seen := 0
		for seen < after && lines.Scan() {
			seen++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed, as wanted
		t.Logf("kill %d after %d lines and %s", kill+1, seen, time.Since(began).Round(100*time.Millisecond))
		if seen < after {
			t.Errorf("it came to its end after %d lines", seen)
		}
		// Whoever knows that a run is dead need not wait for the lease of its lock.
		l.shell(t, "rm -f "+l.get("DHCP_DIRECTORY")+"/.enroll-lock")
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
		"Plan: 20 devices, 0 to change, 0 to run, 0 to verify, 0 blocked; 0 host reboots, 0 disk erase, 0 service restart.\n")
}
