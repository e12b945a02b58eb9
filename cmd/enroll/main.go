// Command enroll turns racked servers into available Ironic nodes: it plans
// what differs between the record (NetBox, site files) and reality (DHCP, BMC,
// NetBox fields, Ironic), and applies exactly that.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // policies name time zones, also on machines without a database of them
)

// version is stamped by the Makefile; a plain `go build` says so.
var version = "0.1.0-dev"

func main() {
	os.Exit(run(context.Background(), os.Args[1:], system()))
}
