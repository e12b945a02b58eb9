package cabling

import (
	"strconv"
	"strings"
)

// token is a run of digits or of other characters in a name.
type token struct {
	text   string
	number int // -1: no number
}

func tokens(name string) []token {
	var out []token
	for name != "" {
		n := 0
		digit := isDigit(name[0])
		for n < len(name) && isDigit(name[n]) == digit {
			n++
		}
		t := token{text: name[:n], number: -1}
		if digit {
			if v, err := strconv.Atoi(name[:n]); err == nil {
				t.number = v
			}
		}
		out = append(out, t)
		name = name[n:]
	}
	return out
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// shape is a name with its numbers left out: Ethernet#/#.
func shape(name string) string {
	var b strings.Builder
	for _, t := range tokens(name) {
		if t.number >= 0 {
			b.WriteByte('#')
		} else {
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// apart finds the one number in which two names of the same shape differ: its
// place among the tokens and the difference. False when they differ otherwise.
func apart(want, seen string) (place, difference int, ok bool) {
	a, b := tokens(want), tokens(seen)
	if len(a) != len(b) {
		return 0, 0, false
	}
	found := 0
	for n := range a {
		switch {
		case a[n].number < 0 || b[n].number < 0:
			if a[n].text != b[n].text {
				return 0, 0, false
			}
		case a[n].number != b[n].number:
			place, difference = n, b[n].number-a[n].number
			found++
		}
	}
	return place, difference, found == 1
}

// lanes are at most eight to a port.
const mostLanes = 8

// relation says how a seen end lies to the recorded one.
func relation(want, seen End) Kind {
	if want.Switch != seen.Switch {
		if want.Port == seen.Port && siblings(want.Switch, seen.Switch) {
			return SiblingSwitch
		}
		return Elsewhere
	}
	place, difference, ok := apart(want.Port, seen.Port)
	switch {
	case !ok:
		return Elsewhere
	case isLane(tokens(want.Port), place) && isLane(tokens(seen.Port), place):
		return WrongLane
	case difference == 1 || difference == -1:
		return OffByOne
	}
	return Elsewhere
}

// isLane reports whether the number at a place is the lane of a breakout cable:
// swp3s1, et-0/0/3:1, Ethernet3/1, where the port's number stands before. With a
// slash the port must be the third number or more (Ethernet1/3/2), because a
// second one is a port itself; Gi1/0/24 is none, as its middle number is a
// module's zero.
func isLane(t []token, place int) bool {
	if place != len(t)-1 || place < 2 || t[place].number < 0 || t[place].number > mostLanes {
		return false
	}
	port := t[place-2]
	switch t[place-1].text {
	case "s", ":":
		return port.number >= 0
	case "/":
		return port.number > 0 && place >= 4 && t[place-3].text == "/"
	}
	return false
}

// siblings are switches whose names differ in one number, or in one letter at
// the end: leaf-r1-1 and leaf-r1-2, leaf-a and leaf-b.
func siblings(a, b string) bool {
	if _, _, ok := apart(a, b); ok {
		return true
	}
	n := len(a) - 1
	return len(a) == len(b) && n > 0 && a[:n] == b[:n] && isLetter(a[n]) && isLetter(b[n])
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
