package dhcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// keaFlavour is Kea: a JSON object per file, and an index, an array of
// inclusions, that stands for a list of reservations in the main configuration.
// Kea refuses to start on the same MAC or address twice, on an address outside
// its subnet, and on a listed file that is missing. A reload that fails on a
// duplicate leaves a process that says it is ready and serves nobody.
func keaFlavour(v6 bool) flavour {
	const extension, index = ".json", "index.json"
	family, socket := "4", "67"
	if v6 {
		family, socket = "6", "547"
	}
	return flavour{
		title:      "Kea",
		unit:       "kea-dhcp" + family + "-server",
		config:     "/etc/kea/kea-dhcp" + family + ".conf",
		apply:      applyReload,
		check:      func(config string) string { return "/usr/sbin/kea-dhcp" + family + " -t " + config },
		socket:     socket,
		extension:  extension,
		index:      index,
		render:     renderKea,
		fields:     keaFields,
		owner:      keaOwner,
		survey:     surveyKea,
		surveyMain: surveyKea,
		includes:   keaIncludes,
		reads:      withExtension(extension, index),
		renderIndex: func(dir string, names []string) string {
			lines := make([]string, len(names))
			for i, name := range names {
				lines[i] = fmt.Sprintf("  <?include \"%s\"?>", path.Join(dir, name))
			}
			if len(names) == 0 {
				return "[\n]\n"
			}
			return "[\n" + strings.Join(lines, ",\n") + "\n]\n"
		},
		parseIndex: parseKeaIndex,
	}
}

func renderKea(e Entry, options []plan.DHCPOption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"hw-address\": \"%s\",\n", e.MAC)
	if e.Address.Is4() {
		fmt.Fprintf(&b, "  \"ip-address\": \"%s\",\n", e.Address)
	} else {
		fmt.Fprintf(&b, "  \"ip-addresses\": [ \"%s\" ],\n", e.Address)
	}
	fmt.Fprintf(&b, "  \"hostname\": \"%s\",\n", e.Name)
	for i, o := range options {
		lead, tail := "                   ", ","
		if i == 0 {
			lead = "  \"option-data\": [ "
		}
		if i == len(options)-1 {
			tail = " ],"
		}
		fmt.Fprintf(&b, "%s{ \"name\": %s, \"data\": %s }%s\n", lead, jsonText(o.Name), jsonText(o.Value), tail)
	}
	fmt.Fprintf(&b, "  \"user-context\": { \"managed-by\": \"enroll\", \"device-id\": %d }\n}\n", e.DeviceID)
	return b.String()
}

// jsonText is a JSON string as Kea reads it: without the escapes of < and >,
// which would hide them from people.
func jsonText(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // text is always encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func parseKeaIndex(dir, content string) ([]string, error) {
	inside, opened := strings.CutPrefix(strings.TrimSpace(content), "[")
	inside, closed := strings.CutSuffix(inside, "]")
	if !opened || !closed {
		return nil, fmt.Errorf("it is not a list in brackets")
	}
	return indexLines(dir, inside, func(line string) (string, bool) {
		at, found := strings.CutPrefix(strings.TrimSuffix(line, ","), `<?include "`)
		at, ended := strings.CutSuffix(at, `"?>`)
		return at, found && ended
	})
}

// keaReservation is a reservation as Kea's files write it.
type keaReservation struct {
	MAC       string   `json:"hw-address"`
	Address   string   `json:"ip-address"`
	Addresses []string `json:"ip-addresses"`
	Hostname  string   `json:"hostname"`
	Context   struct {
		ManagedBy string `json:"managed-by"`
		DeviceID  int64  `json:"device-id"`
	} `json:"user-context"`
}

func keaFields(content string) (Entry, error) {
	var r keaReservation
	if err := json.Unmarshal([]byte(content), &r); err != nil {
		return Entry{}, err
	}
	if r.Context.ManagedBy != "enroll" || r.Context.DeviceID <= 0 {
		return Entry{}, fmt.Errorf("its user-context is not enroll's mark")
	}
	mac, err := plan.ParseMAC(r.MAC)
	if err != nil {
		return Entry{}, err
	}
	text := r.Address
	if len(r.Addresses) == 1 && text == "" {
		text = r.Addresses[0]
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return Entry{}, err
	}
	return Entry{DeviceID: r.Context.DeviceID, MAC: mac, Address: addr, Name: r.Hostname}, nil
}

// keaOwner reads our mark in the user-context.
func keaOwner(content string) (id int64, ours bool) {
	var r keaReservation
	if err := json.Unmarshal(plainJSON(content), &r); err != nil || r.Context.ManagedBy != "enroll" || r.Context.DeviceID <= 0 {
		return 0, false
	}
	return r.Context.DeviceID, true
}

// surveyKea reads Kea's JSON, a whole configuration, a list or one reservation,
// wherever in it reservations, pools and subnets stand. What is included stands
// in other files.
func surveyKea(text string) survey {
	var out survey
	if strings.TrimSpace(text) == "" {
		return out // Kea reads an empty file as nothing
	}
	var doc any
	if err := json.Unmarshal(plainJSON(text), &doc); err != nil {
		return survey{opaque: true}
	}
	out.walkKea(doc)
	return out
}

func (s *survey) walkKea(doc any) {
	switch v := doc.(type) {
	case []any:
		for _, x := range v {
			s.walkKea(x)
		}
	case map[string]any:
		if mac, ok := v["hw-address"].(string); ok {
			if m, err := plan.ParseMAC(mac); err == nil {
				s.claims = append(s.claims, "MAC "+m.String())
			}
		}
		addresses, _ := v["ip-addresses"].([]any)
		for _, a := range append(addresses, v["ip-address"]) {
			text, _ := a.(string)
			if addr, err := netip.ParseAddr(text); err == nil {
				s.claims = append(s.claims, "address "+addr.String())
			}
		}
		if name, ok := v["hostname"].(string); ok && name != "" {
			s.claims = append(s.claims, "name "+lowerASCII(name))
		}
		if text, ok := v["subnet"].(string); ok {
			if p, err := netip.ParsePrefix(text); err == nil {
				s.subnets = append(s.subnets, p.Masked())
			}
		}
		if text, ok := v["pool"].(string); ok {
			if sp, ok := keaPool(text); ok {
				s.pools = append(s.pools, sp)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			s.walkKea(v[key])
		}
	}
}

// keaPool reads "first - last" and "prefix/length".
func keaPool(text string) (span, bool) {
	if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
		return span{p.Masked().Addr(), lastOf(p)}, true
	}
	first, last, found := strings.Cut(text, "-")
	from, errFrom := netip.ParseAddr(strings.TrimSpace(first))
	to, errTo := netip.ParseAddr(strings.TrimSpace(last))
	return span{from, to}, found && errFrom == nil && errTo == nil && from.Is4() == to.Is4()
}

// plainJSON takes from Kea's JSON what JSON does not have: comments (#, //, /*
// */), inclusions, which become null, and commas before a closing bracket.
func plainJSON(text string) []byte { return readKea(text, func(string) {}) }

// readKea is plainJSON; it calls visit with every directive, without its end.
func readKea(text string, visit func(directive string)) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			out = append(out, text[i:end]...)
			i = end
		case c == '#', strings.HasPrefix(text[i:], "//"):
			i += until(text[i:], "\n")
		case strings.HasPrefix(text[i:], "/*"):
			i += 2
			i += until(text[i:], "*/")
			i = min(i+2, len(text))
		case strings.HasPrefix(text[i:], "<?"):
			end := until(text[i:], "?>")
			visit(text[i : i+end])
			i = min(i+end+2, len(text))
			out = append(out, "null"...)
		case c == ']' || c == '}':
			out = bytes.TrimRight(out, " \t\r\n")
			out = append(bytes.TrimSuffix(out, []byte(",")), c)
			i++
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// until is how many bytes stand before end, all of them when it is not there.
func until(text, end string) int {
	if n := strings.Index(text, end); n >= 0 {
		return n
	}
	return len(text)
}
