// Package cabling works out what happened to cables that do not lead where the
// record says: a pure function over the recorded and the seen ends of the cables
// of one or many devices. It says for each mistake what it is, in one sentence,
// and gives the smallest set of moves that makes all cables right.
package cabling

import (
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// End is a port of a switch, by the names of the record.
type End struct {
	Switch string `json:"switch"`
	Port   string `json:"port"`
}

func (e End) String() string { return strings.TrimSpace(e.Switch + " " + e.Port) }

// Zero reports whether no end is known.
func (e End) Zero() bool { return e == End{} }

// Cable is one NIC with what is recorded and what was seen of its far end.
type Cable struct {
	Device, NIC string
	// Recorded is the record's end; zero when it has none.
	Recorded End
	// RecordedText is the record's description of that port.
	RecordedText string
	// Seen is what LLDP announced; its switch is "" when nothing was seen.
	Seen Announced
	// OK means that both agree by the rules of the site, whose names may differ
	// in spelling.
	OK bool
}

// Announced is a far end as LLDP has it: the port's name is in one of the two
// texts, and switches differ in which.
type Announced struct {
	Switch, PortID, Description string
}

func (c *Cable) name() string { return c.Device + " " + c.NIC }

// natural orders names as people number things.
func natural(a, b string) int {
	switch {
	case plan.NaturalLess(a, b):
		return -1
	case plan.NaturalLess(b, a):
		return 1
	}
	return 0
}

// Kind says what happened to cables.
type Kind string

// The kinds.
const (
	SwappedHere    Kind = "swapped"         // two or more ends of one device are exchanged
	SwappedBetween Kind = "swapped_between" // ends of several devices are exchanged
	ExchangedHosts Kind = "exchanged_hosts" // all cables of two devices are exchanged: the machines stand in each other's place
	OffByOne       Kind = "off_by_one"      // one port too far
	SiblingSwitch  Kind = "sibling_switch"  // the right port of the neighbouring switch
	WrongLane      Kind = "wrong_lane"      // another lane of the right breakout cable
	StaleRecord    Kind = "stale_record"    // the switch and the cable agree; the record does not
	Elsewhere      Kind = "elsewhere"       // somewhere else altogether
	OldEvidence    Kind = "old_evidence"    // two NICs saw one port: one inventory is from before a recabling
	TakenByUnseen  Kind = "taken_by_unseen" // the port of a NIC that nobody saw
)

// Finding is one mistake with its cables.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Devices  []string `json:"devices"` // sorted
	Cables   []Wrong  `json:"cables"`
	Sentence string   `json:"sentence"`
	Moves    []Move   `json:"moves"` // in the order in which they can be made
}

// Move is one thing to do.
type Move struct {
	Text string `json:"text"`
	// NICs are "DEVICE NIC". Two trade their far ends; one is plugged into To.
	NICs []string `json:"nics,omitempty"`
	To   End      `json:"to,omitzero"`
}

// Wrong is one cable of a finding.
type Wrong struct {
	Device   string `json:"device"`
	NIC      string `json:"nic"`
	Recorded End    `json:"recorded"`
	Seen     End    `json:"seen"`
}

// end picks the port's name out of what was announced: whichever of the two the
// record knows at that switch, else the one that has the form of the recorded
// port, else the port id, unless it is a MAC address or a bare number.
func (c *Cable) end(known map[End]int) End {
	s := c.Seen
	id, description := End{s.Switch, s.PortID}, End{s.Switch, s.Description}
	_, idKnown := known[id]
	_, descriptionKnown := known[description]
	like := shape(c.Recorded.Port)
	switch {
	case c.OK:
		return c.Recorded
	case s.Switch == "" && s.PortID == "" && s.Description == "":
		return End{}
	case idKnown:
		return id
	case descriptionKnown:
		return description
	case like != "" && shape(s.PortID) == like:
		return id
	case like != "" && shape(s.Description) == like:
		return description
	case s.Description != "" && (s.PortID == "" || strings.Count(s.PortID, ":") == 5 || strings.Trim(s.PortID, "0123456789") == ""):
		return description
	}
	return id
}
