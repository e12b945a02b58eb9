package ironic

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// neighbour is what one LLDP frame says about the far end of a link. Empty
// fields were not in the frame.
type neighbour struct {
	ChassisID       string // text, or a MAC address as aa:bb:cc:dd:ee:ff
	PortID          string
	PortDescription string
	SystemName      string
}

func (n neighbour) empty() bool { return n == neighbour{} }

// tlv is one LLDP element as the ramdisk posts it: [type, hex], without the two
// bytes of TLV header.
type tlv struct {
	kind  int
	value []byte
}

// The TLV types of IEEE 802.1AB that matter here.
const (
	tlvChassisID       = 1
	tlvPortID          = 2
	tlvPortDescription = 4
	tlvSystemName      = 5
)

// decodeTLVs reads the ramdisk's list. Entries of another form are left out: one
// bad element must not hide the good ones.
func decodeTLVs(raw json.RawMessage) []tlv {
	var entries [][]any
	var wrongType *json.UnmarshalTypeError // of an entry, which is then nil
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &entries); err != nil && !errors.As(err, &wrongType) {
		return nil
	}
	out := make([]tlv, 0, len(entries))
	for _, pair := range entries {
		if len(pair) != 2 {
			continue
		}
		kind, isNumber := pair[0].(float64)
		value, err := hex.DecodeString(oneText(pair[1]))
		if isNumber && err == nil {
			out = append(out, tlv{int(kind), value})
		}
	}
	return out
}

// oneText reads a text, or the first of a list of texts; else "!", which is no hex.
func oneText(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	if text, ok := v.(string); ok {
		return text
	}
	return "!"
}

// decodeLLDP reads the elements of one frame. The first value of a repeated
// element wins.
func decodeLLDP(elements []tlv) neighbour {
	var n neighbour
	set := func(field *string, text string) {
		if *field == "" {
			*field = text
		}
	}
	for _, t := range elements {
		switch t.kind {
		case tlvChassisID:
			set(&n.ChassisID, identifier(t.value, map[byte]form{4: formMAC, 5: formAddress, 1: formText, 2: formText, 3: formText, 6: formText, 7: formText}))
		case tlvPortID:
			set(&n.PortID, identifier(t.value, map[byte]form{3: formMAC, 4: formAddress, 1: formText, 2: formText, 5: formText, 6: formText, 7: formText}))
		case tlvPortDescription:
			set(&n.PortDescription, plain(t.value))
		case tlvSystemName:
			set(&n.SystemName, plain(t.value))
		}
	}
	return n
}

// form is how the bytes of an identifier are read.
type form int

const (
	formUnknown form = iota
	formText
	formMAC
	formAddress
)

// identifier decodes a chassis or port id: one byte of subtype, then the value.
// A value that does not have its subtype's form is shown as hex.
func identifier(b []byte, forms map[byte]form) string {
	if len(b) < 2 {
		return ""
	}
	value := b[1:]
	switch forms[b[0]] {
	case formMAC:
		if len(value) == 6 {
			return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", value[0], value[1], value[2], value[3], value[4], value[5])
		}
	case formAddress:
		// One byte of address family (1: IPv4, 2: IPv6), then the address.
		if a, ok := netip.AddrFromSlice(value[1:]); ok && ((value[0] == 1 && a.Is4()) || (value[0] == 2 && a.Is6())) {
			return a.String()
		}
	case formText:
		if text := plain(value); text != "" {
			return text
		}
	case formUnknown:
	}
	return hex.EncodeToString(value)
}

// maxText is the longest value that a TLV can have; what is longer did not come
// from a frame.
const maxText = 511

// plain is a text without the NULs and blanks that switches pad with, cut to what
// a TLV holds. What cannot be printed becomes U+FFFD, so that it shows, and equals
// no name.
func plain(b []byte) string {
	if len(b) > maxText {
		b = b[:maxText]
	}
	text := strings.TrimSpace(strings.TrimRight(string(b), "\x00"))
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// parsedLLDP reads the names under which Ironic's hook and the inspector keep a
// frame that they decoded themselves. A value that came more than once may be a
// list: the first one counts.
func parsedLLDP(raw json.RawMessage) neighbour {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return neighbour{}
	}
	text := func(key string) string {
		if text := oneText(fields[key]); text != "!" {
			return plain([]byte(text))
		}
		return ""
	}
	return neighbour{
		ChassisID: text("switch_chassis_id"), PortID: text("switch_port_id"),
		PortDescription: text("switch_port_description"), SystemName: text("switch_system_name"),
	}
}
