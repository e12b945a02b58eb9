package lab

import (
	"testing"

	"github.com/enroll-dev/enroll/providers/bmc/recording"
)

// A recorded BMC finds its own interface by the address that NetBox records: the
// recording has the one of the lab's first host.
func TestRecordedAddressIsTheFirstHosts(t *testing.T) {
	if got := Fleet(1, 1)[0].OOB.String(); got != recording.OwnAddress {
		t.Errorf("the first host has %s, and recordings say %s", got, recording.OwnAddress)
	}
}
