package ironic

import (
	"encoding/hex"
	"encoding/json"
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
	var entries []json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return nil
	}
	var out []tlv
	for _, e := range entries {
		var pair []json.RawMessage
		var t tlv
		var text string
		if json.Unmarshal(e, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &t.kind) != nil || json.Unmarshal(pair[1], &text) != nil {
			continue
		}
		value, err := hex.DecodeString(text)
		if err != nil {
			continue
		}
		t.value = value
		out = append(out, t)
	}
	return out
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

// plain is a text without the NULs and blanks that switches pad with; "" when
// the bytes are no printable UTF-8.
func plain(b []byte) string {
	text := strings.TrimSpace(strings.TrimRight(string(b), "\x00"))
	if !utf8.ValidString(text) {
		return ""
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return ""
		}
	}
	return text
}

// parsedLLDP reads the names under which Ironic's hook and the inspector keep a
// frame that they decoded themselves.
func parsedLLDP(fields map[string]any) neighbour {
	text := func(key string) string {
		s, _ := fields[key].(string)
		return plain([]byte(s))
	}
	return neighbour{
		ChassisID: text("switch_chassis_id"), PortID: text("switch_port_id"),
		PortDescription: text("switch_port_description"), SystemName: text("switch_system_name"),
	}
}
