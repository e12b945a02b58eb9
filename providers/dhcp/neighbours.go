package dhcp

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// folder is what the server's directory held at one moment.
type folder struct {
	dir   string
	files map[string]*file    // by name
	taken map[string][]string // who takes a claim: names of files
	dark  []string            // files that could not be read, sorted
}

// file is one file of the directory.
type file struct {
	sum   string // SHA-256 in hex, "" when it was not told
	text  string // its lines as far as they were told, each with a newline
	exact bool   // text is the content, byte for byte
	dir   bool
}

// hash is the SHA-256 of a content in hex.
func hash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

var hexSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseSums reads the output of sha256sum: 64 hex digits, a space, a space or
// asterisk, the name. A line with an escaped name begins with a backslash; such
// names are never ours and are left out, as is everything else that does not fit.
func parseSums(output string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(output, "\n") {
		if len(line) < 67 || line[64] != ' ' || line[65] != ' ' && line[65] != '*' || !hexSum.MatchString(line[:64]) {
			continue
		}
		out[line[66:]] = line[:64]
	}
	return out
}

// parseLines reads the output of grep -HZ: the name, a zero byte, the line.
func parseLines(output string) map[string]string {
	out := map[string]*strings.Builder{}
	for _, record := range strings.Split(strings.TrimSuffix(output, "\n"), "\n") {
		name, line, found := strings.Cut(record, "\x00")
		if !found {
			continue
		}
		if out[name] == nil {
			out[name] = &strings.Builder{}
		}
		out[name].WriteString(line)
		out[name].WriteByte('\n')
	}
	texts := make(map[string]string, len(out))
	for name, b := range out {
		texts[name] = b.String()
	}
	return texts
}

// newFolder joins the listings and notes who has which MAC, address and name.
// hashed says that the hash command ran: a file without a hash then is one that
// could not be read. Else an empty file looks like that too, and none counts.
func newFolder(dir string, names []string, hashed bool, sums, lines map[string]string) *folder {
	fo := &folder{dir: dir, files: map[string]*file{}, taken: map[string][]string{}}
	for _, name := range names {
		if name == "" {
			continue
		}
		name, dir := strings.CutSuffix(name, "/")
		fo.files[name] = &file{text: lines[name], sum: sums[name], exact: hash(lines[name]) == sums[name], dir: dir}
		if hashed && !dir && sums[name] == "" && lines[name] == "" && read(name) {
			fo.dark = append(fo.dark, name)
		}
	}
	sort.Strings(fo.dark)
	for name, f := range fo.files {
		if !read(name) {
			continue
		}
		for _, claim := range claims(f.text) {
			fo.taken[claim] = append(fo.taken[claim], name)
		}
	}
	return fo
}

// read reports whether dnsmasq reads a file of that name in a hostsdir.
func read(name string) bool {
	return name != "" && name[0] != '.' && !strings.HasSuffix(name, "~") && (name[0] != '#' || !strings.HasSuffix(name, "#"))
}

// claims lists what the lines of a hostsdir file, anybody's, take: "MAC …",
// "address …", "name …". The grammar is that of dhcp-host: fields in any order,
// several MACs, a hardware type before one, tags, a client id, a lease time.
func claims(text string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, field := range strings.Split(line, ",") {
			field = strings.TrimSpace(field)
			switch {
			case field == "", notAName.MatchString(field):
			case strings.Contains(field, ":"):
				if kind, rest, found := strings.Cut(field, "-"); found && len(kind) <= 2 {
					field = rest
				}
				if mac, err := plan.ParseMAC(field); err == nil {
					out = append(out, "MAC "+mac.String())
				} // else id:, set:, tag:, or an IPv6 address
			default:
				if addr, err := netip.ParseAddr(field); err == nil {
					out = append(out, "address "+addr.String())
				} else {
					out = append(out, "name "+lowerASCII(field))
				}
			}
		}
	}
	return out
}

// claims lists what the entry takes, in the same words.
func (e Entry) claims() []string {
	return []string{"MAC " + e.MAC.String(), "address " + e.Address.String(), "name " + e.Name}
}

// former finds the device's file under an earlier name: our marker, the same
// device id, and the same MAC or address. An id alone proves nothing where two
// NetBoxes share a server.
func (fo *folder) former(e Entry) string {
	var names []string
	for _, claim := range e.claims()[:2] {
		for _, name := range fo.taken[claim] {
			if id, ours := owner(fo.files[name].text); name != e.Name && ours && id == e.DeviceID {
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// conflict looks for another file that takes what the entry needs.
func (fo *folder) conflict(e Entry, former string) *plan.Fault {
	for _, name := range fo.dark {
		if name != e.Name {
			return plan.NewFault(plan.CodeDHCPConflict, "%s cannot be read, so nobody can tell whether it takes what %s needs: %s", path.Join(fo.dir, name), e.Device, strings.Join(e.claims(), ", ")).
				WithHint("Let the account of the dhcp block read the file (dnsmasq's own user has to read it too), or move it away.")
		}
	}
	for _, claim := range e.claims() {
		names := append([]string(nil), fo.taken[claim]...)
		sort.Strings(names)
		for _, name := range names {
			if name == e.Name || name == former {
				continue
			}
			f := plan.NewFault(plan.CodeDHCPConflict, "%s needs %s, which %s already has", e.Device, claim, path.Join(fo.dir, name)).
				With("file", path.Join(fo.dir, name)).With("content", excerpt(fo.files[name].text))
			if id, ours := owner(fo.files[name].text); ours {
				return f.With("device of that file", strconv.FormatInt(id, 10)).
					WithHint("If that device still exists, correct one of the two in NetBox; if its entry is about to change as well, apply that device first. If it is gone, remove the file.")
			}
			return f
		}
	}
	return nil
}
