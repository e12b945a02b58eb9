package plan

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// MAC is a 48-bit hardware address in canonical form. The zero value means
// "none"; it is never a valid address.
type MAC [6]byte

// ParseMAC reads every spelling seen in the field: colons, dashes, dots, bare
// digits, either case, missing leading zeros ("aa:b:c:d:e:f"). It refuses what
// is not 48 bits (EUI-64 and WWNs are listed as NIC addresses by some BMCs),
// the all-zero and the all-f address.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	text := strings.ToLower(strings.TrimSpace(s))
	var digits string
	if groups := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == '-' }); len(groups) == 6 {
		for _, g := range groups {
			if len(g) == 1 {
				g = "0" + g
			}
			digits += g
		}
	} else {
		digits = strings.NewReplacer(".", "", ":", "", "-", "").Replace(text)
	}
	if len(digits) != 12 {
		return MAC{}, fmt.Errorf("%q is not a 48-bit MAC address", s)
	}
	if _, err := hex.Decode(m[:], []byte(digits)); err != nil {
		return MAC{}, fmt.Errorf("%q is not a MAC address", s)
	}
	if m == (MAC{}) || m == (MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) {
		return MAC{}, fmt.Errorf("%q is the all-zero or the broadcast address", s)
	}
	return m, nil
}

// IsZero reports whether no address is recorded.
func (m MAC) IsZero() bool { return m == MAC{} }

// Multicast reports whether the group bit is set; a NIC never has such an address.
func (m MAC) Multicast() bool { return m[0]&1 == 1 }

// String is lower case with colons, as every DHCP server and Ironic print it.
func (m MAC) String() string {
	if m.IsZero() {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MarshalText writes String.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads any spelling that ParseMAC reads; empty text is the zero MAC.
func (m *MAC) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*m = MAC{}
		return nil
	}
	parsed, err := ParseMAC(string(b))
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}
