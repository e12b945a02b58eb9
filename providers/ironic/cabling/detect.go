package cabling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Detect finds what happened to the cables that are not right. Cables that were
// not seen are no mistakes; nothing is said about them but where somebody else
// has their port. The findings are sorted by their first cable, and every wrong
// cable is in exactly one.
func Detect(cables []Cable) []Finding {
	d := newDetective(cables)
	d.twice()
	components := d.components()
	components = d.exchanged(components)
	for _, c := range components {
		d.found = append(d.found, d.explain(c))
	}
	slices.SortStableFunc(d.found, func(a, b Finding) int {
		return cmp.Or(natural(a.Cables[0].Device, b.Cables[0].Device), natural(a.Cables[0].NIC, b.Cables[0].NIC))
	})
	return d.found
}

type detective struct {
	cables []Cable
	owner  map[End]int // the cable that an end is recorded for
	seen   []End
	at     map[End][]int // the cables that saw an end
	wrong  []int
	told   map[int]bool
	found  []Finding
}

func newDetective(cables []Cable) *detective {
	d := &detective{cables: slices.Clone(cables), owner: map[End]int{}, at: map[End][]int{}, told: map[int]bool{}}
	slices.SortStableFunc(d.cables, func(a, b Cable) int { return cmp.Or(natural(a.Device, b.Device), natural(a.NIC, b.NIC)) })
	for i := range d.cables {
		if _, taken := d.owner[d.cables[i].Recorded]; !taken && !d.cables[i].Recorded.Zero() {
			d.owner[d.cables[i].Recorded] = i
		}
	}
	d.seen = make([]End, len(d.cables))
	for i := range d.cables {
		d.seen[i] = d.cables[i].end(d.owner)
		if d.seen[i].Zero() {
			continue
		}
		d.at[d.seen[i]] = append(d.at[d.seen[i]], i)
		if !d.cables[i].OK && !d.cables[i].Recorded.Zero() {
			d.wrong = append(d.wrong, i)
		}
	}
	return d
}

func (d *detective) cable(i int) Wrong {
	c := &d.cables[i]
	return Wrong{Device: c.Device, NIC: c.NIC, Recorded: c.Recorded, Seen: d.seen[i]}
}

func (d *detective) finding(kind Kind, cables []int, sentence string, moves ...Move) Finding {
	f := Finding{Kind: kind, Sentence: sentence, Moves: moves}
	for _, i := range cables {
		f.Cables = append(f.Cables, d.cable(i))
		f.Devices = append(f.Devices, d.cables[i].Device)
		d.told[i] = true
	}
	slices.SortFunc(f.Devices, natural)
	f.Devices = slices.Compact(f.Devices)
	return f
}

// twice finds ends that two NICs saw. A port has one cable: one of the inventories
// is older than the other's cabling.
func (d *detective) twice() {
	for _, i := range d.wrong {
		others := d.at[d.seen[i]]
		if len(others) < 2 || d.told[i] {
			continue
		}
		var here []int
		var names []string
		right := ""
		for _, o := range others {
			names = append(names, d.cables[o].name())
			if d.cables[o].OK {
				right = d.cables[o].name()
				continue
			}
			here = append(here, o)
		}
		sentence := fmt.Sprintf("%s all saw %s, which has room for one cable: the inventories are of different days", and(names), d.seen[i])
		if len(names) == 2 {
			sentence = fmt.Sprintf("%s both saw %s, which has room for one cable: the inventories are of different days", and(names), d.seen[i])
		}
		if right != "" {
			sentence += "; the record agrees with " + right
		}
		var moves []Move
		for _, device := range devicesOf(d.cables, here) {
			moves = append(moves, Move{Text: "inspect " + device + " again"})
		}
		d.found = append(d.found, d.finding(OldEvidence, here, sentence, moves...))
	}
}

// component is a chain of wrong cables: each one lies in the port that the next
// one belongs to. In a ring the last one lies in the port of the first.
type component struct {
	cables []int
	ring   bool
}

// components follows the wrong cables from port to port. As no two of them saw the
// same port, each has at most one before it and one after it.
func (d *detective) components() []component {
	next, before := map[int]int{}, map[int]bool{}
	for _, i := range d.wrong {
		if d.told[i] {
			continue
		}
		if j, ok := d.owner[d.seen[i]]; ok && j != i && !d.cables[j].OK && !d.told[j] && !d.seen[j].Zero() {
			next[i] = j
			before[j] = true
		}
	}
	var out []component
	done := map[int]bool{}
	walk := func(start int) component {
		c := component{}
		i := start
		for !done[i] {
			done[i] = true
			c.cables = append(c.cables, i)
			j, ok := next[i]
			if !ok {
				return c
			}
			i = j
		}
		c.ring = i == start
		return c
	}
	for _, heads := range []bool{true, false} { // chains from their beginning, then what is left: rings
		for _, i := range d.wrong {
			if !d.told[i] && !done[i] && (!heads || !before[i]) {
				out = append(out, walk(i))
			}
		}
	}
	return out
}

// exchanged finds pairs of devices all of whose cables are exchanged one for one:
// it is the machines, or their records, that stand in each other's place.
func (d *detective) exchanged(components []component) []component {
	recorded := map[string]int{}
	for i := range d.cables {
		if !d.cables[i].Recorded.Zero() {
			recorded[d.cables[i].Device]++
		}
	}
	pairs := map[[2]string][]int{}
	key := func(c component) ([2]string, bool) {
		if !c.ring || len(c.cables) != 2 {
			return [2]string{}, false
		}
		a, b := d.cables[c.cables[0]].Device, d.cables[c.cables[1]].Device
		if natural(b, a) < 0 {
			a, b = b, a
		}
		return [2]string{a, b}, a != b
	}
	for _, c := range components {
		if k, ok := key(c); ok {
			pairs[k] = append(pairs[k], c.cables...)
		}
	}
	whole := func(k [2]string) bool {
		n := len(pairs[k]) / 2
		return n >= 2 && recorded[k[0]] == n && recorded[k[1]] == n
	}
	var rest []component
	told := map[[2]string]bool{}
	for _, c := range components {
		k, ok := key(c)
		switch {
		case !ok || !whole(k):
			rest = append(rest, c)
		case !told[k]:
			told[k] = true
			slices.Sort(pairs[k])
			n := len(pairs[k]) / 2
			d.found = append(d.found, d.finding(ExchangedHosts, pairs[k],
				fmt.Sprintf("all %d cables of %s and %s are exchanged: the two machines stand in each other's place, or their MAC addresses do in the record", n, k[0], k[1]),
				Move{Text: fmt.Sprintf("exchange %s and %s: the machines in the rack, or their MAC addresses and serial numbers in NetBox", k[0], k[1])}))
		}
	}
	return rest
}

// explain says what happened to one component.
func (d *detective) explain(c component) Finding {
	switch {
	case all(c.cables, d.stale):
		return d.staleRecord(c.cables)
	case c.ring:
		return d.swapped(c.cables)
	case len(c.cables) > 1:
		return d.chain(c.cables)
	}
	return d.single(c.cables[0])
}

// stale reports whether the port's own description, on the switch, names the NIC
// that is in it, or the record's description of the port where the cable should be
// names the device whose port it is in.
func (d *detective) stale(i int) bool {
	c := &d.cables[i]
	if mentions(c.Seen.Description, c.Device) && mentions(c.Seen.Description, c.NIC) {
		return true
	}
	if c.RecordedText == "" || mentions(c.RecordedText, c.Device) {
		return false
	}
	j, ok := d.owner[d.seen[i]]
	return ok && mentions(c.RecordedText, d.cables[j].Device)
}

// mentions finds a device's name as a word.
func mentions(text, device string) bool {
	text, device = strings.ToLower(text), strings.ToLower(device)
	for from := 0; device != ""; {
		n := strings.Index(text[from:], device)
		if n < 0 {
			return false
		}
		n += from
		end := n + len(device)
		if (n == 0 || !wordByte(text[n-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		from = n + 1
	}
	return false
}

func wordByte(c byte) bool { return isDigit(c) || isLetter(c) || c >= 0x80 }

func all(list []int, holds func(int) bool) bool {
	for _, i := range list {
		if !holds(i) {
			return false
		}
	}
	return true
}
