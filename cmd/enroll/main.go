// Command enroll turns racked servers into available Ironic nodes: it plans
// what differs between the record (NetBox, site files) and reality (DHCP, BMC,
// NetBox fields, Ironic), and applies exactly that.
package main

import (
	"context"
	"os"
	"runtime/debug"
	_ "time/tzdata" // policies name time zones, also on machines without a database of them
)

// version is stamped by the Makefile; a plain `go build` says so.
var version = "0.1.0-dev"

func main() {
	collectLess()
	s := system()
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		s.fleet = boundMemory
	}
	os.Exit(run(context.Background(), os.Args[1:], s))
}

// collectLess trades memory for time: a run allocates, writes its plan and ends,
// and collecting at twice what lives was a fifth of the time that planning takes.
func collectLess() { debug.SetGCPercent(300) }

// boundMemory makes the collector run more often once a run takes more than it should
// for that many devices: a device with all its values keeps about 80 kB. It is no hard
// limit.
func boundMemory(devices int) { debug.SetMemoryLimit(24<<20 + int64(devices)*144<<10) }
