package cabling

import (
	"fmt"
	"slices"
	"strings"
)

// move is the step that brings one cable home.
func (d *detective) move(i int) Move {
	c := &d.cables[i]
	return Move{Text: fmt.Sprintf("move the cable of %s from %s to %s", c.name(), d.seen[i], c.Recorded), NICs: []string{c.name()}, To: c.Recorded}
}

// single explains a cable that lies in a port which belongs to nobody that was
// seen.
func (d *detective) single(i int) Finding {
	c := &d.cables[i]
	want, seen := c.Recorded, d.seen[i]
	if j, ok := d.owner[seen]; ok && d.seen[j].Zero() {
		return d.finding(TakenByUnseen, []int{i},
			fmt.Sprintf("%s lies in %s, the port of %s, of which nothing was seen, instead of %s", c.name(), seen, d.cables[j].name(), want),
			d.move(i), Move{Text: "then look for the cable of " + d.cables[j].name()})
	}
	kind := relation(want, seen)
	text := fmt.Sprintf("%s lies in %s instead of %s", c.name(), seen, want)
	switch kind { //nolint:exhaustive // relation gives these, or Elsewhere
	case OffByOne:
		text = fmt.Sprintf("%s is one port off: it lies in %s instead of %s", c.name(), seen, want.Port)
	case SiblingSwitch:
		text = fmt.Sprintf("%s lies in the right port, %s, of the sibling switch: %s instead of %s", c.name(), want.Port, seen.Switch, want.Switch)
	case WrongLane:
		text = fmt.Sprintf("%s is on the wrong lane of the breakout cable: %s instead of %s", c.name(), seen, want.Port)
		return d.finding(kind, []int{i}, text, Move{Text: fmt.Sprintf("plug the lane of %s into %s", want, c.name()), NICs: []string{c.name()}, To: want})
	}
	return d.finding(kind, []int{i}, text, d.move(i))
}

// chain explains cables each of which lies in the next one's port. Nobody is in
// the port of the first, so it can come home, and then the second.
func (d *detective) chain(list []int) Finding {
	kind := relation(d.cables[list[0]].Recorded, d.seen[list[0]])
	var names []string
	var moves []Move
	for _, i := range list {
		if relation(d.cables[i].Recorded, d.seen[i]) != kind {
			kind = Elsewhere
		}
		names = append(names, d.cables[i].name())
		moves = append(moves, d.move(i))
	}
	last := d.seen[list[len(list)-1]]
	text := fmt.Sprintf("%s lie each in the port of the next, the last one in %s", and(names), last)
	if way, ok := d.shift(list); ok && kind == OffByOne {
		text = fmt.Sprintf("%s are each one port too %s on %s", and(names), way, last.Switch)
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return d.finding(kind, sorted, text, moves...)
}

// shift says in which direction all cables of a chain are off; false when not all
// are off in the same.
func (d *detective) shift(list []int) (way string, same bool) {
	_, first, _ := apart(d.cables[list[0]].Recorded.Port, d.seen[list[0]].Port)
	for _, i := range list {
		if _, n, ok := apart(d.cables[i].Recorded.Port, d.seen[i].Port); !ok || n != first {
			return "", false
		}
	}
	if first < 0 {
		return "low", true
	}
	return "high", true
}

// swapped explains a ring. Of n cables that lie in each other's ports n-1 swaps
// bring all home.
func (d *detective) swapped(ring []int) Finding {
	devices := devicesOf(d.cables, ring)
	kind := SwappedBetween
	name := func(i int) string { return d.cables[i].name() }
	where := ""
	if len(devices) == 1 {
		kind, where = SwappedHere, " at "+devices[0]
		name = func(i int) string { return d.cables[i].NIC }
	}
	var moves []Move
	var names []string
	for _, i := range ring {
		names = append(names, name(i))
	}
	// The first one lies in the second one's port. When the two trade places, the
	// second is home and the first in the third one's port, and so on.
	for _, i := range ring[1:] {
		pair := []int{ring[0], i}
		slices.Sort(pair)
		moves = append(moves, Move{Text: "swap " + name(pair[0]) + " and " + name(pair[1]) + where, NICs: []string{d.cables[pair[0]].name(), d.cables[pair[1]].name()}})
	}
	sorted := slices.Clone(ring)
	slices.Sort(sorted)
	if len(ring) == 2 {
		sentence := fmt.Sprintf("%s and %s are swapped%s", name(sorted[0]), name(sorted[1]), where)
		if kind == SwappedBetween {
			sentence = fmt.Sprintf("the cables of %s and %s are swapped (%s and %s)", name(sorted[0]), name(sorted[1]), d.seen[sorted[0]], d.seen[sorted[1]])
		}
		return d.finding(kind, sorted, sentence, moves...)
	}
	return d.finding(kind, sorted, fmt.Sprintf("the cables of %s lie in each other's ports%s", and(names), where), moves...)
}

// staleRecord explains cables whose switch ports are set up for the very devices
// that are in them.
func (d *detective) staleRecord(cables []int) Finding {
	var moves []Move
	for _, i := range cables {
		moves = append(moves, Move{Text: fmt.Sprintf("record in NetBox that the cable of %s ends at %s", d.cables[i].name(), d.seen[i])})
	}
	c := &d.cables[cables[0]]
	why := fmt.Sprintf("the switch describes %s as %q", d.seen[cables[0]], c.Seen.Description)
	if !mentions(c.Seen.Description, c.Device) {
		why = fmt.Sprintf("NetBox itself describes %s as %q", c.Recorded, c.RecordedText)
	}
	names := make([]string, len(cables))
	for n, i := range cables {
		names[n] = d.cables[i].name()
	}
	return d.finding(StaleRecord, cables, fmt.Sprintf("the record of %s is old on one side: it says %s, the cable is in %s, and %s", and(names), c.Recorded, d.seen[cables[0]], why), moves...)
}

func devicesOf(cables []Cable, list []int) []string {
	var out []string
	for _, i := range list {
		out = append(out, cables[i].Device)
	}
	slices.SortFunc(out, natural)
	return slices.Compact(out)
}

// and joins names as people do; long lists are cut.
func and(names []string) string {
	const most = 6
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
