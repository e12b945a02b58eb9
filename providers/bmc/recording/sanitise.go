package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Hidden stands for what was a secret.
const Hidden = "(secret)"

// OwnAddress stands for the address under which the BMC was asked: it is the one
// that the embedded lab gives its first BMC.
const OwnAddress = "198.18.0.2"

// Sanitiser takes out of answers what names a machine, its place or its people.
// The same original becomes the same replacement everywhere, in every spelling,
// so that a NIC still matches its boot option. Nothing leads back: replacements
// are numbered in the order of the paths.
type Sanitiser struct {
	redact func(string) string // hides the secrets of this run
	own    netip.Addr

	macs, wide, uuids, addresses, serials, hosts, domains, users, places map[string]string
	literal                                                              *strings.Replacer // serials and names, wherever they stand
}

// NewSanitiser makes one. redact hides known secrets in whatever form; own is the
// address that the BMC was asked at.
func NewSanitiser(redact func(string) string, own netip.Addr) *Sanitiser {
	s := &Sanitiser{redact: redact, own: own.Unmap()}
	for _, m := range []*map[string]string{&s.macs, &s.wide, &s.uuids, &s.addresses, &s.serials, &s.hosts, &s.domains, &s.users, &s.places} {
		*m = map[string]string{}
	}
	return s
}

// Clean rewrites a recording in place.
func (s *Sanitiser) Clean(r *Recording) {
	slices.SortFunc(r.Answers, func(a, b Answer) int { return strings.Compare(a.URI, b.URI) })
	for _, a := range r.Answers {
		s.learn("", nothing, a.Body)
	}
	s.arm()
	for i := range r.Answers {
		a := &r.Answers[i]
		a.URI = s.plain(a.URI)
		a.ETag, a.Allow, a.Type = s.plain(cut(a.ETag, 100)), s.plain(cut(a.Allow, 100)), s.plain(cut(a.Type, 100))
		a.Body = s.value("", nothing, a.Body)
	}
	for i, text := range r.Left {
		r.Left[i] = s.plain(text)
	}
	r.replaced = map[string]string{}
	for _, m := range []map[string]string{s.serials, s.users, s.hosts, s.domains, s.places, s.addresses, s.uuids, s.macs, s.wide} {
		maps.Copy(r.replaced, m)
	}
}

// class is what a property is by its name.
type class int

const (
	nothing class = iota
	secret
	serial
	host
	user
	place
	version
)

// classes are told by the end of a property's name, without registry and index:
// Users.2.UserName is UserName. The first that fits counts.
var classes = []struct { //nolint:gochecknoglobals // a constant table
	name  *regexp.Regexp
	class class
}{
	{regexp.MustCompile(`passw(or)?d|passphrase|pwd$|secret|token|community|credential|key$|hash$|salt$|certificatestring|csrstring`), secret},
	{regexp.MustCompile(`serial(number|no|num)?$|servicetag$|servicecode$|svctag$|assettag$|^sku$|^sparepartnumber$|nodeid$|engineid$|systemid$|tagid$`), serial},
	{regexp.MustCompile(`host_?name$|fqdn$|dnsracname$|domainname$|dnsname$|ntp(servers?|[0-9])$|ntpserver(address(es)?)?$|ntpserveraddresses$|^server[0-9]?$|syslogserver[0-9]?$|smtpserver|servername$|serviceaddress(es)?$|^address$|trapdestination|^destination$|sysname$`), host},
	{regexp.MustCompile(`username$|^user$|accountname$|loginname$|bindname$`), user},
	{regexp.MustCompile(`contact|^location$|physicallocation$|postaladdress$|syslocation|rackname|roomname|datacenter|asset.?owner|recipientname|^(street|city|building|room|rack|row|site|aisle|postalcode|territory|country|division|additionalinfo|emailaddress|to|from)$`), place},
	{regexp.MustCompile(`version$|revision$|^release`), version},
}

// tells are endings of names that speak about a secret and do not hold it: a rule
// or a state. words is what such a property may say.
var (
	tells = regexp.MustCompile(`(length|score|policy|mode|status|state|type|enabled?|requir(ed?|es?[a-z0-9]*)|days|hours|minutes|seconds|count|period|cycle|expiration|algorithm|lifetime|timeout|threshold|access|interval[a-z]*)$`)
	words = regexp.MustCompile(`^[A-Za-z]+( [A-Za-z]+)*$`)
)

// switches are what a property says that switches something.
var switches = map[string]bool{"True": true, "False": true, "true": true, "false": true, "Enabled": true, "Disabled": true, "Enable": true, "Disable": true, "Yes": true, "No": true, "None": true}

// classOf tells what a property is. Below a secret everything is one, and below a
// place everything is a place.
func classOf(key string, above class) class {
	if strings.ContainsAny(key, "@#") {
		return nothing // annotations and actions: types, links, allowable values
	}
	name := strings.ToLower(key[strings.LastIndexByte(key, '.')+1:])
	for _, c := range classes {
		if c.name.MatchString(name) {
			if c.class == nothing || above == secret {
				return above
			}
			return c.class
		}
	}
	if above == secret || above == place {
		return above
	}
	return nothing
}

// factory are the names that makers give their accounts and machines.
var factory = map[string]bool{ //nolint:gochecknoglobals // a constant table
	"": true, "root": true, "userid": true, "admin": true, "administrator": true, "anonymous": true, "none": true, "n/a": true, "(null)": true,
	"localhost": true, "not specified": true, "unknown": true, "to be filled by o.e.m.": true, "default string": true, "0": true, "na": true, "bmc": true, "sushy": true,
}

// learn collects what is replaced wherever it stands.
func (s *Sanitiser) learn(key string, c class, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range keysOf(v) {
			s.learn(k, classOf(k, under(c)), v[k])
		}
	case []any:
		for _, item := range v {
			s.learn(key, ofItem(c), item)
		}
	case string:
		trimmed := strings.TrimSpace(v)
		if factory[strings.ToLower(trimmed)] || strings.HasPrefix(trimmed, "/") {
			return
		}
		switch c { //nolint:exhaustive // the others are replaced where they stand
		case serial:
			s.number(s.serials, trimmed, func(n int) string { return fmt.Sprintf("SN%06d", n) })
		case user:
			s.number(s.users, trimmed, func(n int) string { return "user-" + strconv.Itoa(n) })
		case host:
			s.hostname(trimmed)
		}
		if macWhole.MatchString(trimmed) || bareMAC.MatchString(trimmed) && strings.Contains(strings.ToLower(key), "address") {
			s.mac(trimmed)
		}
		for _, m := range inPath.FindAllStringSubmatch(v, -1) {
			s.mac(m[1])
		}
	}
}

// under is the class that a property hands down.
func under(c class) class {
	if c == secret || c == place {
		return c
	}
	return nothing
}

// ofItem is the class of the items of a list. The list Location of a registry
// says where its files are.
func ofItem(c class) class {
	if c == place {
		return nothing
	}
	return c
}

// arm makes the replacer of serials and names. Short ones and plain words would
// hit what they do not mean; those are replaced where they stand only.
func (s *Sanitiser) arm() {
	var pairs [][2]string
	for _, m := range []map[string]string{s.serials, s.users, s.hosts} {
		for from, to := range m {
			if len(from) >= 6 && strings.ContainsFunc(from, func(r rune) bool { return unicode.IsDigit(r) || r == '-' || r == '.' }) {
				pairs = append(pairs, [2]string{from, to})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int {
		if len(a[0]) != len(b[0]) {
			return len(b[0]) - len(a[0])
		}
		return strings.Compare(a[0], b[0])
	})
	var flat []string
	for _, p := range pairs {
		flat = append(flat, p[0], p[1])
	}
	s.literal = strings.NewReplacer(flat...)
}

func (s *Sanitiser) value(key string, c class, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range keysOf(v) {
			out[s.plain(k)] = s.value(k, classOf(k, under(c)), v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.value(key, ofItem(c), item)
		}
		return out
	case string:
		return s.text(key, c, v)
	}
	if _, number := v.(json.Number); number && c == secret && !tells.MatchString(strings.ToLower(key)) {
		return Hidden
	}
	return v
}

func (s *Sanitiser) text(key string, c class, text string) string {
	trimmed := strings.TrimSpace(text)
	lead, tail, _ := strings.Cut(text, trimmed)
	switch {
	case trimmed == "":
		return text
	case c == secret:
		if switches[trimmed] || tells.MatchString(strings.ToLower(key)) && words.MatchString(trimmed) {
			return text
		}
		return Hidden
	case factory[strings.ToLower(trimmed)]:
		return text
	case c == place && strings.HasPrefix(trimmed, "/"):
		c = nothing
	}
	switch c { //nolint:exhaustive // secrets are done with
	case serial:
		return lead + s.number(s.serials, trimmed, func(n int) string { return fmt.Sprintf("SN%06d", n) }) + tail
	case user:
		return lead + s.number(s.users, trimmed, func(n int) string { return "user-" + strconv.Itoa(n) }) + tail
	case host:
		return lead + s.hostname(trimmed) + tail
	case place:
		return lead + s.number(s.places, trimmed, func(n int) string { return "place-" + strconv.Itoa(n) }) + tail
	case version:
		return s.plainVersion(text)
	}
	if !strings.HasPrefix(trimmed, "/") && !strings.HasPrefix(key, "@") && hides(trimmed) {
		return Hidden
	}
	return s.plain(text)
}

// plain replaces what is told by its form or was learned.
func (s *Sanitiser) plain(text string) string {
	return ipv4.ReplaceAllStringFunc(s.plainVersion(text), s.address)
}

// plainVersion is plain without IPv4 addresses: versions look like them.
func (s *Sanitiser) plainVersion(text string) string {
	text = s.redact(text)
	text = assigned.ReplaceAllString(text, "${1}"+Hidden)
	text = inURL.ReplaceAllString(text, "://"+Hidden+"@")
	if strings.HasPrefix(text, "/") {
		parts := strings.Split(text, "/")
		for i, p := range parts {
			for _, m := range []map[string]string{s.users, s.serials} {
				if to, ok := m[p]; ok {
					parts[i] = to
				}
			}
		}
		text = strings.Join(parts, "/")
	}
	text = s.literal.Replace(text)
	text = hostInURL.ReplaceAllStringFunc(text, func(found string) string {
		m := hostInURL.FindStringSubmatch(found)
		if strings.HasSuffix(m[2], "dmtf.org") { // where schemas are kept
			return found
		}
		return m[1] + s.hostname(m[2])
	})
	text = s.guids(text)
	text = ipv6.ReplaceAllStringFunc(text, s.address)
	text = wide.ReplaceAllStringFunc(text, s.mac)
	text = groups.ReplaceAllStringFunc(text, s.grouped)
	return bareMACs.ReplaceAllStringFunc(text, func(found string) string {
		if _, known := s.macs[bare(found)]; !known {
			return found
		}
		return s.mac(found)
	})
}

var (
	macWhole = regexp.MustCompile(`^(?:[0-9A-Fa-f]{1,2}:){5}[0-9A-Fa-f]{1,2}$|^(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}$`)
	bareMAC  = regexp.MustCompile(`^[0-9A-Fa-f]{12}$`)
	bareMACs = regexp.MustCompile(`[0-9A-Fa-f]{12}`)
	inPath   = regexp.MustCompile(`MAC\(([0-9A-Fa-f]{12})`)
	wide     = regexp.MustCompile(`\b(?:[0-9A-Fa-f]{1,2}:){5,19}[0-9A-Fa-f]{1,2}\b|\b(?:[0-9A-Fa-f]{2}-){5,19}[0-9A-Fa-f]{2}\b`)
	groups   = regexp.MustCompile(`\b(?:[0-9A-Fa-f]{4}:){3}[0-9A-Fa-f]{4}\b`)
	uuid     = regexp.MustCompile(`\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b`)
	// A protocol's own GUID in a device path names no machine, and readers go by it.
	wellKnown = regexp.MustCompile(`(?:VenHw|VenMsg|VenMedia|VenPcieHw|Fv|FvFile)[(_][0-9A-Fa-f-]{36}`)
	ipv4      = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)
	ipv6      = regexp.MustCompile(`[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*`)

	assigned   = regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|community|api_?key)["']?\s*[=:]\s*)[^\s,;&]+`)
	eightPairs = regexp.MustCompile(`^(?:[0-9A-Fa-f]{2}:){7}[0-9A-Fa-f]{2}$`)

	hostInURL = regexp.MustCompile(`(://(?:\(secret\)@)?)([^/:@\s\[\]"'()]+)`)
	inURL     = regexp.MustCompile(`://[^/@\s]+@`)
	pem       = regexp.MustCompile(`-----BEGIN [A-Z ]+-----`)
	crypted   = regexp.MustCompile(`\$[0-9a-z]{1,8}\$[./A-Za-z0-9$=,+-]{8,}`)
	webToken  = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+`)
	longHex   = regexp.MustCompile(`\b[0-9A-Fa-f]{32,}\b`)
	long64    = regexp.MustCompile(`[A-Za-z0-9+/_-]{32,}={0,2}`)
)

// hides tells that a text looks like a secret: a key, a hash of a password, a
// token, or a long run of letters and digits without sense.
func hides(text string) bool {
	if pem.MatchString(text) || crypted.MatchString(text) || webToken.MatchString(text) || longHex.MatchString(text) {
		return true
	}
	for _, run := range long64.FindAllString(text, -1) {
		if uuid.MatchString(run) {
			continue
		}
		var upper, lower, digit int
		for _, r := range run {
			switch {
			case unicode.IsUpper(r):
				upper++
			case unicode.IsLower(r):
				lower++
			case unicode.IsDigit(r):
				digit++
			}
		}
		// Names are written in words: few digits, and most letters small.
		if digit >= 4 && upper >= 4 && lower >= 4 && 2*upper > lower {
			return true
		}
	}
	return false
}

// number gives the replacement of an original, a new one for a new original.
func (s *Sanitiser) number(in map[string]string, from string, nth func(int) string) string {
	to, ok := in[from]
	if !ok {
		to = nth(len(in) + 1)
		in[from] = to
	}
	return to
}

// hostname replaces a name, with its domain, or an address, with its port.
func (s *Sanitiser) hostname(text string) string {
	if macWhole.MatchString(text) {
		return s.mac(text)
	}
	name, port, found := text, "", false
	if strings.Count(text, ":") == 1 {
		name, port, found = strings.Cut(text, ":")
		port = ":" + port
	}
	if found && strings.Trim(port[1:], "0123456789") != "" {
		name, port = text, ""
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return s.address(name) + port
	}
	if factory[strings.ToLower(name)] {
		return text
	}
	first, domain, dotted := strings.Cut(name, ".")
	out := s.number(s.hosts, first, func(n int) string { return "host-" + strconv.Itoa(n) })
	if dotted {
		out += "." + s.number(s.domains, domain, func(n int) string {
			if n == 1 {
				return "example.org"
			}
			return "net" + strconv.Itoa(n) + ".example.org"
		})
	}
	return out + port
}

func bare(mac string) string {
	sep := ":"
	if strings.Contains(mac, "-") {
		sep = "-"
	}
	var b strings.Builder
	for _, part := range strings.Split(mac, sep) {
		if len(part) == 1 {
			b.WriteByte('0')
		}
		b.WriteString(strings.ToLower(part))
	}
	return b.String()
}

// mac replaces a hardware address of any length in its spelling.
func (s *Sanitiser) mac(text string) string {
	from := bare(text)
	if strings.Trim(from, "0") == "" || strings.Trim(from, "f") == "" {
		return text
	}
	var to string
	if len(from) == 12 {
		to = s.number(s.macs, from, func(n int) string { return fmt.Sprintf("02005e%06x", n) })
	} else { // a world wide name, an InfiniBand address
		to = s.number(s.wide, from, func(n int) string { return fmt.Sprintf("20%0*x", len(from)-2, n) })
	}
	sep := ""
	for _, c := range []string{":", "-"} {
		if strings.Contains(text, c) {
			sep = c
		}
	}
	if sep != "" {
		var pairs []string
		for i := 0; i < len(to); i += 2 {
			pairs = append(pairs, to[i:i+2])
		}
		to = strings.Join(pairs, sep)
	}
	if strings.ToUpper(text) == text && strings.ContainsAny(text, "ABCDEF") {
		to = strings.ToUpper(to)
	}
	return to
}

// grouped replaces an EUI-64 in groups of four digits; HPE writes MACs so.
func (s *Sanitiser) grouped(text string) string {
	from := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	if strings.Trim(from, "0") == "" || strings.Trim(from, "f") == "" {
		return text
	}
	to := ""
	if middle := from[6:10]; middle == "ffff" || middle == "fffe" {
		mac := s.mac(from[:6] + from[10:])
		to = mac[:6] + middle + mac[6:]
	} else {
		to = s.mac(from)
	}
	return to[:4] + ":" + to[4:8] + ":" + to[8:12] + ":" + to[12:]
}

// guids replaces identifiers, but for those that a protocol has for itself.
func (s *Sanitiser) guids(text string) string {
	var out strings.Builder
	at := 0
	for _, known := range append(wellKnown.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		out.WriteString(uuid.ReplaceAllStringFunc(text[at:known[0]], s.guid))
		out.WriteString(text[known[0]:known[1]])
		at = known[1]
	}
	return out.String()
}

func (s *Sanitiser) guid(text string) string {
	from := strings.ToLower(text)
	if strings.Trim(from, "0-") == "" || strings.Trim(from, "f-") == "" {
		return text
	}
	return s.number(s.uuids, from, func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) })
}

// address replaces an IP address. Those that name nobody stay.
func (s *Sanitiser) address(text string) string {
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil || eightPairs.MatchString(text) { // the latter is a world wide name
		return text
	}
	a = a.Unmap()
	mask := a.Is4() && a.As4()[0] == 255
	switch {
	case a == s.own && !a.IsLoopback():
		return OwnAddress
	case a.IsUnspecified(), a.IsLoopback(), a.IsMulticast(), mask, a.Is4() && a.IsLinkLocalUnicast():
		return text
	}
	return s.number(s.addresses, a.String(), func(n int) string {
		if a.Is4() { // 192.0.2.0/24 is for documentation, 198.19.0.0/16 for benchmarks
			if n < 255 {
				return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}).String()
			}
			return netip.AddrFrom4([4]byte{198, 19, byte(n >> 8), byte(n)}).String()
		}
		if a.IsLinkLocalUnicast() {
			return "fe80::" + strconv.FormatInt(int64(n), 16)
		}
		return "2001:db8::" + strconv.FormatInt(int64(n), 16)
	})
}

func keysOf(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
