package cabling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

// cables reads lines "DEVICE NIC RECORDED SEEN [DESCRIPTION]", ends as
// SWITCH:PORT, "-" for none.
func cables(text string) []cabling.Cable {
	var out []cabling.Cable
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		w := strings.Fields(line)
		c := cabling.Cable{Device: w[0], NIC: w[1], Recorded: end(w[2])}
		if seen := end(w[3]); !seen.Zero() {
			c.Seen = cabling.Announced{Switch: seen.Switch, PortID: seen.Port, Description: strings.Join(w[4:], " ")}
		}
		c.OK = c.Recorded == end(w[3]) && !c.Recorded.Zero()
		out = append(out, c)
	}
	return out
}

func end(s string) cabling.End {
	if s == "-" {
		return cabling.End{}
	}
	name, port, _ := strings.Cut(s, ";")
	return cabling.End{Switch: name, Port: port}
}

func TestDetect(t *testing.T) {
	cases := []struct {
		name, cables string
		want         []string // "kind: sentence | move | move"
	}{
		{"all right, one not seen", `
			gpu-1 eth0 leaf-1;swp1 leaf-1;swp1
			gpu-1 eth1 leaf-2;swp1 -`, nil},
		{"swapped on one host", `
			gpu-017 eth2 leaf-1;swp3 leaf-1;swp4
			gpu-017 eth3 leaf-1;swp4 leaf-1;swp3`,
			[]string{"swapped: eth2 and eth3 are swapped at gpu-017 | swap eth2 and eth3 at gpu-017"}},
		{"swapped between hosts", `
			gpu-017 eth0 leaf-1;swp17 leaf-1;swp18
			gpu-017 eth1 leaf-2;swp17 leaf-2;swp17
			gpu-018 eth0 leaf-1;swp18 leaf-1;swp17
			gpu-018 eth1 leaf-2;swp18 leaf-2;swp18`,
			[]string{"swapped_between: the cables of gpu-017 eth0 and gpu-018 eth0 are swapped (leaf-1 swp18 and leaf-1 swp17) | swap gpu-017 eth0 and gpu-018 eth0"}},
		{"whole hosts exchanged", `
			gpu-017 eth0 leaf-1;swp17 leaf-1;swp18
			gpu-017 eth1 leaf-2;swp17 leaf-2;swp18
			gpu-018 eth0 leaf-1;swp18 leaf-1;swp17
			gpu-018 eth1 leaf-2;swp18 leaf-2;swp17`,
			[]string{"exchanged_hosts: all 2 cables of gpu-017 and gpu-018 are exchanged: the two machines stand in each other's place, or their MAC addresses do in the record | exchange gpu-017 and gpu-018: the machines in the rack, or their MAC addresses and serial numbers in NetBox"}},
		{"three in a ring", `
			gpu-1 eth0 leaf-1;swp1 leaf-1;swp2
			gpu-1 eth1 leaf-1;swp2 leaf-1;swp3
			gpu-1 eth2 leaf-1;swp3 leaf-1;swp1`,
			[]string{"swapped: the cables of eth0, eth1 and eth2 lie in each other's ports at gpu-1 | swap eth0 and eth1 at gpu-1 | swap eth0 and eth2 at gpu-1"}},
		{"off by one", `
			gpu-1 eth0 leaf-1;Ethernet1/4 leaf-1;Ethernet1/5`,
			[]string{"off_by_one: gpu-1 eth0 is one port off: it lies in leaf-1 Ethernet1/5 instead of Ethernet1/4 | move the cable of gpu-1 eth0 from leaf-1 Ethernet1/5 to leaf-1 Ethernet1/4"}},
		{"a whole rack off by one", `
			gpu-1 eth0 leaf-1;swp1 leaf-1;swp2
			gpu-2 eth0 leaf-1;swp2 leaf-1;swp3
			gpu-3 eth0 leaf-1;swp3 leaf-1;swp4`,
			[]string{"off_by_one: gpu-1 eth0, gpu-2 eth0 and gpu-3 eth0 are each one port too high on leaf-1 | move the cable of gpu-1 eth0 from leaf-1 swp2 to leaf-1 swp1 | move the cable of gpu-2 eth0 from leaf-1 swp3 to leaf-1 swp2 | move the cable of gpu-3 eth0 from leaf-1 swp4 to leaf-1 swp3"}},
		{"sibling switch", `
			gpu-1 eth0 leaf-r1-1;swp1 leaf-r1-2;swp1`,
			[]string{"sibling_switch: gpu-1 eth0 lies in the right port, swp1, of the sibling switch: leaf-r1-2 instead of leaf-r1-1 | move the cable of gpu-1 eth0 from leaf-r1-2 swp1 to leaf-r1-1 swp1"}},
		{"sibling switch by letter", `
			gpu-1 eth0 leaf-a;swp1 leaf-b;swp1`,
			[]string{"sibling_switch: gpu-1 eth0 lies in the right port, swp1, of the sibling switch: leaf-b instead of leaf-a | move the cable of gpu-1 eth0 from leaf-b swp1 to leaf-a swp1"}},
		{"no sibling", `
			gpu-1 eth0 leaf-a;swp1 spine-b;swp1`,
			[]string{"elsewhere: gpu-1 eth0 lies in spine-b swp1 instead of leaf-a swp1 | move the cable of gpu-1 eth0 from spine-b swp1 to leaf-a swp1"}},
		{"wrong lane", `
			gpu-1 eth0 leaf-1;swp3s0 leaf-1;swp3s2
			gpu-2 eth0 leaf-1;Ethernet1/3/1 leaf-1;Ethernet1/3/2
			gpu-3 eth0 leaf-1;et-0/0/3:0 leaf-1;et-0/0/3:1`,
			[]string{
				"wrong_lane: gpu-1 eth0 is on the wrong lane of the breakout cable: leaf-1 swp3s2 instead of swp3s0 | plug the lane of leaf-1 swp3s0 into gpu-1 eth0",
				"wrong_lane: gpu-2 eth0 is on the wrong lane of the breakout cable: leaf-1 Ethernet1/3/2 instead of Ethernet1/3/1 | plug the lane of leaf-1 Ethernet1/3/1 into gpu-2 eth0",
				"wrong_lane: gpu-3 eth0 is on the wrong lane of the breakout cable: leaf-1 et-0/0/3:1 instead of et-0/0/3:0 | plug the lane of leaf-1 et-0/0/3:0 into gpu-3 eth0",
			}},
		{"a module is no lane", `
			gpu-1 eth0 leaf-1;Gi1/0/4 leaf-1;Gi1/0/5`,
			[]string{"off_by_one: gpu-1 eth0 is one port off: it lies in leaf-1 Gi1/0/5 instead of Gi1/0/4 | move the cable of gpu-1 eth0 from leaf-1 Gi1/0/5 to leaf-1 Gi1/0/4"}},
		{"stale record", `
			gpu-1 eth0 leaf-1;swp1 leaf-3;swp40 gpu-1 eth0
			gpu-10 eth0 leaf-1;swp10 leaf-3;swp41 gpu-1 eth0`,
			[]string{
				`stale_record: the record of gpu-1 eth0 is old on one side: it says leaf-1 swp1, the cable is in leaf-3 swp40, and the switch describes leaf-3 swp40 as "gpu-1 eth0" | record in NetBox that the cable of gpu-1 eth0 ends at leaf-3 swp40`,
				"elsewhere: gpu-10 eth0 lies in leaf-3 swp41 instead of leaf-1 swp10 | move the cable of gpu-10 eth0 from leaf-3 swp41 to leaf-1 swp10",
			}},
		{"port name in the description", `
			gpu-1 eth0 leaf-1;2/10 leaf-1;106 2/11`,
			[]string{"off_by_one: gpu-1 eth0 is one port off: it lies in leaf-1 2/11 instead of 2/10 | move the cable of gpu-1 eth0 from leaf-1 2/11 to leaf-1 2/10"}},
		{"old evidence", `
			gpu-1 eth0 leaf-1;swp1 leaf-1;swp1
			gpu-2 eth0 leaf-1;swp2 leaf-1;swp1`,
			[]string{"old_evidence: gpu-1 eth0 and gpu-2 eth0 both saw leaf-1 swp1, which has room for one cable: the inventories are of different days; the record agrees with gpu-1 eth0 | inspect gpu-2 again"}},
		{"the port of one that nobody saw", `
			gpu-1 eth0 leaf-1;swp1 leaf-1;swp2
			gpu-2 eth0 leaf-1;swp2 -`,
			[]string{"taken_by_unseen: gpu-1 eth0 lies in leaf-1 swp2, the port of gpu-2 eth0, of which nothing was seen, instead of leaf-1 swp1 | move the cable of gpu-1 eth0 from leaf-1 swp2 to leaf-1 swp1 | then look for the cable of gpu-2 eth0"}},
		{"a chain that ends elsewhere", `
			gpu-1 eth0 leaf-1;swp1 leaf-1;swp9
			gpu-9 eth0 leaf-1;swp9 leaf-2;swp30`,
			[]string{"elsewhere: gpu-1 eth0 and gpu-9 eth0 lie each in the port of the next, the last one in leaf-2 swp30 | move the cable of gpu-1 eth0 from leaf-1 swp9 to leaf-1 swp1 | move the cable of gpu-9 eth0 from leaf-2 swp30 to leaf-1 swp9"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range cabling.Detect(cables(c.cables)) {
				text := string(f.Kind) + ": " + f.Sentence
				for _, m := range f.Moves {
					text += " | " + m.Text
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNetBoxsOwnDescription(t *testing.T) {
	list := cables("gpu-1 eth0 leaf-1;swp1 leaf-1;swp2\ngpu-2 eth0 leaf-1;swp2 leaf-1;swp1")
	list[0].RecordedText, list[1].RecordedText = "to gpu-2", "to gpu-1"
	got := cabling.Detect(list)
	if len(got) != 1 || got[0].Kind != cabling.StaleRecord || !strings.HasSuffix(got[0].Sentence, `NetBox itself describes leaf-1 swp1 as "to gpu-2"`) {
		t.Errorf("%+v", got)
	}
}

// world is a fleet of devices with two NICs each, cabled as recorded.
func world(devices int) []cabling.Cable {
	var out []cabling.Cable
	for n := range devices {
		for k := range 2 {
			e := cabling.End{Switch: fmt.Sprintf("leaf-%d-%d", n/40, k), Port: fmt.Sprintf("swp%d", n%40+1)}
			out = append(out, cabling.Cable{Device: fmt.Sprintf("gpu-%04d", n), NIC: fmt.Sprintf("eth%d", k), Recorded: e, Seen: cabling.Announced{Switch: e.Switch, PortID: e.Port}})
		}
	}
	return out
}

func settle(list []cabling.Cable) []cabling.Cable {
	for i := range list {
		list[i].OK = list[i].Recorded == cabling.End{Switch: list[i].Seen.Switch, Port: list[i].Seen.PortID}
	}
	return list
}

// Whatever the cabling, the moves bring every cable that was seen home, in their
// order and without ever plugging into a port that is taken; each wrong cable is
// told once; and of n cables in a ring n-1 swaps are asked for.
func TestMovesBringAllHome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := world(rapid.IntRange(1, 12).Draw(t, "devices"))
		for n := range rapid.IntRange(0, 12).Draw(t, "mistakes") {
			i, j := rapid.IntRange(0, len(list)-1).Draw(t, "i"), rapid.IntRange(0, len(list)-1).Draw(t, "j")
			switch rapid.IntRange(0, 2).Draw(t, "mistake") {
			case 0:
				list[i].Seen, list[j].Seen = list[j].Seen, list[i].Seen
			case 1:
				list[i].Seen = cabling.Announced{Switch: "spare", PortID: fmt.Sprintf("swp%d", n)}
			case 2:
				list[i].Seen = cabling.Announced{}
			}
		}
		settle(list)
		at := map[string]cabling.End{}
		home := map[string]cabling.End{}
		wrong := 0
		for _, c := range list {
			name := c.Device + " " + c.NIC
			home[name] = c.Recorded
			at[name] = cabling.End{Switch: c.Seen.Switch, Port: c.Seen.PortID}
			if !c.OK && !at[name].Zero() {
				wrong++
			}
		}
		told := map[string]bool{}
		for _, f := range cabling.Detect(slices.Clone(list)) {
			for _, c := range f.Cables {
				if told[c.Device+" "+c.NIC] {
					t.Fatalf("%s %s is told twice", c.Device, c.NIC)
				}
				told[c.Device+" "+c.NIC] = true
			}
			if len(f.Moves) > len(f.Cables) && f.Kind != cabling.TakenByUnseen || f.Sentence == "" || len(f.Moves) == 0 {
				t.Fatalf("%+v", f)
			}
			if f.Kind == cabling.ExchangedHosts {
				for _, c := range f.Cables {
					at[c.Device+" "+c.NIC] = c.Recorded
				}
			}
			for _, m := range f.Moves {
				switch len(m.NICs) {
				case 2:
					at[m.NICs[0]], at[m.NICs[1]] = at[m.NICs[1]], at[m.NICs[0]]
				case 1:
					for name, e := range at {
						if e == m.To {
							t.Fatalf("%s: %s is in the way", m.Text, name)
						}
					}
					at[m.NICs[0]] = m.To
				}
			}
		}
		if len(told) != wrong {
			t.Fatalf("%d cables told, %d are wrong", len(told), wrong)
		}
		for name, e := range at {
			if !e.Zero() && e != home[name] {
				t.Fatalf("%s is still in %s", name, e)
			}
		}
	})
}

// BenchmarkDetect is a site of 1,000 devices of which 5 % have a mistake.
func BenchmarkDetect(b *testing.B) {
	list := world(1000)
	for n := 0; n < len(list)-42; n += 40 {
		switch n / 40 % 4 {
		case 0:
			list[n].Seen, list[n+1].Seen = list[n+1].Seen, list[n].Seen
		case 1:
			list[n].Seen, list[n+2].Seen = list[n+2].Seen, list[n].Seen
		case 2:
			list[n].Seen.PortID = "swp99"
		case 3:
			list[n].Seen.Switch += "9"
		}
	}
	settle(list)
	b.ReportAllocs()
	for b.Loop() {
		if len(cabling.Detect(list)) < 40 {
			b.Fatal("too few findings")
		}
	}
}
