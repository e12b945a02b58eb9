package secrets

import (
	"bytes"
	"sort"
)

// search follows all patterns at once that a text may begin with.
type search struct {
	text []byte
	found
}

// from goes on with the patterns of a sorted list, which agree in their first depth
// characters, at a place in the text.
func (s *search) from(list []pattern, depth, at int) {
	if len(list[0]) == depth {
		s.match = max(s.match, at)
		if list = list[1:]; len(list) == 0 {
			return
		}
	}
	if at == len(s.text) {
		s.open = max(s.open, depth)
		return
	}
	if cut := s.cut(depth, at); cut > 0 {
		s.match = max(s.match, cut)
	}
	for _, gap := range [2]rune{lineBreak, between} {
		if below := with(list, depth, gap); len(below) > 0 {
			s.gap(below, depth, at, gap)
		}
	}
	if u, ok := itself(s.text[at:]); ok {
		s.unit(list, depth, at, u)
		return
	}
	units, open := unitsAt(s.text[at:])
	if open {
		s.open = max(s.open, depth)
	}
	for _, u := range units {
		s.unit(list, depth, at, u)
	}
}

// cut gives where a text that begins as a secret was cut off, with something else
// behind the mark; 0: it was not. The cut may go through an escape.
func (s *search) cut(depth, at int) int {
	const (
		enough = 4  // characters; fewer are the beginning of too much
		most   = 16 // bytes of an escape
	)
	if depth < enough {
		return 0
	}
	n := bytes.Index(s.text[at:min(len(s.text), at+most)], []byte(cutMark))
	switch {
	case n < 0:
		return 0
	case n > 0:
		if _, open := unitsAt(s.text[at : at+n]); !open {
			return 0
		}
	}
	return at + n
}

// unit goes on behind a character.
func (s *search) unit(list []pattern, depth, at int, u unit) {
	if below := with(list, depth, u.r); len(below) > 0 {
		s.from(below, depth+1, at+u.n)
	}
}

// maxBetween is how many of them in a row count as what one was turned into.
const maxBetween = 200

// gap goes on behind each number of blanks and marks that is allowed.
func (s *search) gap(list []pattern, depth, at int, gap rune) {
	if gap == lineBreak {
		s.from(list, depth+1, at)
	}
	for range maxBetween {
		if at == len(s.text) {
			s.open = max(s.open, depth)
			return
		}
		units, open := unitsAt(s.text[at:])
		if open {
			s.open = max(s.open, depth)
		}
		n := 0
		for _, u := range units {
			if isBetween(u.r) {
				n = u.n
			}
		}
		if n == 0 {
			return
		}
		at += n
		s.from(list, depth+1, at)
	}
}

// with narrows a sorted list to the patterns that have a character at a place.
func with(list []pattern, depth int, r rune) []pattern {
	from := sort.Search(len(list), func(i int) bool { return list[i][depth] >= r })
	to := from + sort.Search(len(list)-from, func(i int) bool { return list[from+i][depth] > r })
	return list[from:to]
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
