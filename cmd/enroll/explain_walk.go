package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/enroll-dev/enroll/providers/ironic"
)

// walkTopic is the address under which the walk to available is explained.
const walkTopic = "ironic.provision"

// explainWalk prints what enroll does with a node in each provision state.
func explainWalk(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (the walk of a node to available)\n", walkTopic)
	b.WriteString("  What the steps [manage], [inspect] and [provide] do in each provision state of Ironic (API 1.115).\n" +
		"  send: the verb is sent   wait: it is under way   later: an earlier step comes first\n" +
		"  blocked: shown, and a person acts   fault: the device fails   -: nothing\n\n")
	fmt.Fprintf(&b, "  %-16s %-12s %-13s %-13s %s\n", "state", "[manage]", "[inspect]", "[provide]", "")
	for _, r := range ironic.WalkTable() {
		state := string(r.State)
		if state == "" {
			state = "(no node)"
		}
		fmt.Fprintf(&b, "  %-16s %-12s %-13s %-13s %s\n", state, r.Manage, r.Inspect, r.Provide, r.Why)
	}
	b.WriteString("\n  A node with an instance_uuid is owned in every state. A state that this version does not know is owned.\n" +
		"  Maintenance that somebody else set holds every step; --clear-maintenance clears it.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
