package bmc

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
)

// passwordRule is what a family takes as a password. The zero value says no more
// than IPMI does.
type passwordRule struct {
	none  bool // enroll sets no password on this family
	least int  // characters
	most  int
	// classes: letters and digits, and two of upper case, lower case and others.
	classes bool
}

// ipmiBytes is the longest password of IPMI 2.0. Longer ones are taken by BMCs for
// Redfish and fail over IPMI, which Ironic may use.
const ipmiBytes = 20

// misfit says in one clause, without the password, why a BMC would not take it, or
// not over IPMI; "" when it fits. Characters are those that every family and IPMI's
// tools take.
func (r passwordRule) misfit(password string) string {
	switch {
	case len(password) > ipmiBytes:
		return fmt.Sprintf("has %d bytes, and IPMI takes %d", len(password), ipmiBytes)
	case r.most > 0 && len(password) > r.most:
		return fmt.Sprintf("has %d characters, and the BMC takes %d", len(password), r.most)
	case len(password) < r.least:
		return fmt.Sprintf("has %d characters, and the BMC wants %d", len(password), r.least)
	case strings.ContainsFunc(password, func(c rune) bool { return c < 0x20 || c > 0x7e }):
		return "has characters other than printable ASCII"
	case strings.TrimSpace(password) != password:
		return "begins or ends with a blank"
	case r.classes && !mixed(password):
		return "wants letters and digits, and two of upper case, lower case and other characters"
	}
	return ""
}

func mixed(password string) bool {
	upper := strings.ContainsFunc(password, func(c rune) bool { return c >= 'A' && c <= 'Z' })
	lower := strings.ContainsFunc(password, func(c rune) bool { return c >= 'a' && c <= 'z' })
	digit := strings.ContainsFunc(password, func(c rune) bool { return c >= '0' && c <= '9' })
	other := strings.ContainsAny(password, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")
	kinds := 0
	for _, has := range []bool{upper, lower, other} {
		if has {
			kinds++
		}
	}
	return (upper || lower) && digit && kinds >= 2
}

const (
	uppers = "ABCDEFGHJKLMNPQRSTUVWXYZ" // without I and O: people read them aloud
	lowers = "abcdefghijkmnopqrstuvwxyz"
	digits = "23456789"
	others = "-_.+=" // of those that all families take and no shell changes inside quotes
)

// make gives a new random password of the longest form that BMC and IPMI both
// take, with every class of characters; about 115 bits.
func (r passwordRule) make() (string, error) {
	n := ipmiBytes
	if r.most > 0 {
		n = min(n, r.most)
	}
	for {
		out := make([]byte, n)
		for i := range out {
			from := uppers + lowers + digits + others
			if i == 0 {
				from = uppers + lowers // some take no other first character
			}
			at, err := rand.Int(rand.Reader, big.NewInt(int64(len(from))))
			if err != nil {
				return "", err
			}
			out[i] = from[at.Int64()]
		}
		text := string(out)
		if strings.ContainsAny(text, uppers) && strings.ContainsAny(text, lowers) && strings.ContainsAny(text, digits) && strings.ContainsAny(text, others) {
			return text, nil
		}
	}
}
