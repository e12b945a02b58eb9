package bmc_test

import (
	"flag"
	"os"
	"testing"

	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// makers are the families whose simulators every table runs over.
var makers = []string{bmctest.Generic, bmctest.IDRAC, bmctest.XCC, bmctest.AMI, bmctest.Supermicro}

// TestMain lets more tests run at once than there are processors: those with
// stalled requests wait, they do not compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("8"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
