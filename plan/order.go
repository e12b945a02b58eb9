package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// stepID is the id of the nth step of a plan: s1, s2, …
func stepID(n int) string { return "s" + strconv.Itoa(n) }

// idLess orders step ids by their number.
func idLess(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// addressLess orders addresses by site, device, system, kind and key; what is
// shared comes before the devices. Keys are ordered naturally (eth2 before eth10).
func addressLess(a, b Address) bool {
	switch {
	case a.Site != b.Site:
		return a.Site < b.Site
	case a.Device != b.Device:
		return a.Device < b.Device
	case a.KindName() != b.KindName():
		return a.KindName() < b.KindName()
	}
	return NaturalLess(a.Key, b.Key)
}

// NaturalLess orders names as people number things: eth2 before eth10.
func NaturalLess(a, b string) bool {
	for a != "" && b != "" {
		na, ra := leadingNumber(a)
		nb, rb := leadingNumber(b)
		if na != "" && nb != "" {
			ta, tb := strings.TrimLeft(na, "0"), strings.TrimLeft(nb, "0")
			if len(ta) != len(tb) {
				return len(ta) < len(tb)
			}
			if ta != tb {
				return ta < tb
			}
			if na != nb { // same number, other spelling: the shorter first, so that the order is total
				return len(na) < len(nb)
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

func leadingNumber(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// checkNeeds checks that the steps' needs exist and have no cycle.
func checkNeeds(steps []*Step) error {
	byID := map[string]*Step{}
	for _, s := range steps {
		if s.ID == "" {
			return fmt.Errorf("the step for %s has no id", s.Address)
		}
		if byID[s.ID] != nil {
			return fmt.Errorf("the id %s is used by two steps: %s and %s", s.ID, byID[s.ID].Address, s.Address)
		}
		byID[s.ID] = s
	}
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(id, from string) error
	visit = func(id, from string) error {
		s := byID[id]
		switch {
		case s == nil:
			return fmt.Errorf("step %s needs %s, which does not exist", from, id)
		case state[id] == done:
			return nil
		case state[id] == visiting:
			return fmt.Errorf("the needs of step %s (%s) lead back to itself", id, s.Address)
		}
		state[id] = visiting
		for _, n := range s.Needs {
			if err := visit(n, id); err != nil {
				return err
			}
		}
		state[id] = done
		return nil
	}
	for _, s := range steps {
		if err := visit(s.ID, s.ID); err != nil {
			return err
		}
	}
	return nil
}
