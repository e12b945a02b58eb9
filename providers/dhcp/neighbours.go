package dhcp

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// folder is what the server's directory and its own configuration held at one
// moment.
type folder struct {
	fl    flavour
	dir   string
	files map[string]*file    // by name
	taken map[string][]string // who takes a claim: names of files, and paths of the configuration's
	dark  []string            // files of which nobody knows what they take, sorted
	main  survey              // subnets and pools of the configuration
	mains []string            // the paths of the configuration's files that were read
	// unread is what of the configuration nobody knows, sorted.
	unread []string
	// mainText are the lines of the configuration's files, by path.
	mainText map[string]string
}

// file is one file of the directory.
type file struct {
	sum   string // SHA-256 in hex, "" when it was not told
	text  string // its lines as far as they were told, each with a newline
	exact bool   // text is the content, byte for byte
	dir   bool
}

// listing is the raw material of a folder.
type listing struct {
	names  []string          // as ls -p writes them
	hashed bool              // the hash command ran: a file without a hash is one that could not be read
	sums   map[string]string // by name
	lines  map[string]string // by name
	config string            // the path of the server's own configuration
	mains  map[string]string // by path: what followScript told of it
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
// Where nothing was hashed an empty file looks like one that cannot be read, and
// none counts as such.
func newFolder(fl flavour, dir string, in listing) *folder {
	fo := &folder{fl: fl, dir: dir, files: map[string]*file{}, taken: map[string][]string{}, mainText: in.mains}
	for _, name := range in.names {
		if name == "" {
			continue
		}
		name, dir := strings.CutSuffix(name, "/")
		f := &file{text: in.lines[name], sum: in.sums[name], exact: hash(in.lines[name]) == in.sums[name], dir: dir}
		fo.files[name] = f
		if dir || !fl.reads(name) {
			continue
		}
		told := fl.survey(f.text)
		if told.opaque || in.hashed && f.sum == "" && f.text == "" {
			fo.dark = append(fo.dark, name)
		}
		fo.take(told.claims, name)
	}
	sources, unread := fl.follow(in.config, dir, in.mains)
	fo.unread = unread
	for _, s := range sources {
		told := fl.told(in.mains[s.at], s.hosts)
		fo.take(told.claims, s.at)
		fo.mains = append(fo.mains, s.at)
		fo.main.subnets = append(fo.main.subnets, told.subnets...)
		fo.main.pools = append(fo.main.pools, told.pools...)
	}
	sort.Strings(fo.dark)
	return fo
}

func (fo *folder) take(claims []string, by string) {
	for _, claim := range claims {
		if names := fo.taken[claim]; len(names) == 0 || names[len(names)-1] != by {
			fo.taken[claim] = append(names, by)
		}
	}
}

// at is the path of a file of the folder, or of the configuration.
func (fo *folder) at(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(fo.dir, name)
}

// text is a file's content as far as it is known.
func (fo *folder) text(name string) string {
	if f := fo.files[name]; f != nil {
		return f.text
	}
	return ""
}

// claims lists what the entry takes, in the same words.
func (e Entry) claims() []string {
	return []string{"MAC " + e.MAC.String(), "address " + e.Address.String(), "name " + e.Name}
}

// former finds the device's file under an earlier name: our mark, the same
// device id, and the same MAC or address. An id alone proves nothing where two
// NetBoxes share a server.
func (fo *folder) former(e Entry) string {
	own := e.Name + fo.fl.extension
	var names []string
	for _, claim := range e.claims()[:2] {
		for _, name := range fo.taken[claim] {
			if id, ours := fo.fl.owner(fo.text(name)); name != own && ours && id == e.DeviceID {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// conflict looks for another file that takes what the entry needs, and for what
// the server's configuration says about the address.
func (fo *folder) conflict(e Entry, former string) *plan.Fault {
	own := e.Name + fo.fl.extension
	for _, name := range fo.dark {
		if name != own {
			return plan.NewFault(plan.CodeDHCPConflict, "%s cannot be read, so nobody can tell whether it takes what %s needs: %s", fo.at(name), e.Device, strings.Join(e.claims(), ", ")).
				WithHint("Let the account of the dhcp block read the file (the server's own user has to read it too), mend it, or move it away.")
		}
	}
	for _, claim := range e.claims() {
		names := append([]string(nil), fo.taken[claim]...)
		sort.Strings(names)
		for _, name := range names {
			if name == own || name == former {
				continue
			}
			f := plan.NewFault(plan.CodeDHCPConflict, "%s needs %s, which %s already has", e.Device, claim, fo.at(name)).
				With("file", fo.at(name)).With("content", excerpt(fo.text(name)))
			if id, ours := fo.fl.owner(fo.text(name)); ours {
				return f.With("device of that file", strconv.FormatInt(id, 10)).
					WithHint("If that device still exists, correct one of the two in NetBox; if its entry is about to change as well, apply that device first. If it is gone: enroll plan --all --prune-dhcp.")
			}
			return f
		}
	}
	return fo.placed(e)
}

// placed holds the address against the subnets and pools of the server's own
// configuration. Kea does not start with a reservation outside its subnet; an
// address of a pool may be on another host already.
func (fo *folder) placed(e Entry) *plan.Fault {
	where := strings.Join(fo.mains, ", ")
	inside := slices.ContainsFunc(fo.main.subnets, func(p netip.Prefix) bool { return p.Contains(e.Address) })
	if len(fo.main.subnets) > 0 && !inside {
		var texts []string
		for _, p := range fo.main.subnets {
			texts = append(texts, p.String())
		}
		return plan.NewFault(plan.CodeDHCPConflict, "%s needs address %s, which lies outside every subnet that the server declares: %s", e.Device, e.Address, strings.Join(texts, ", ")).
			With("configuration", where).WithHint("Correct oob_ip in NetBox, or declare the subnet in the server's configuration.")
	}
	for _, pool := range fo.main.pools {
		if pool.contains(e.Address) {
			return plan.NewFault(plan.CodeDHCPConflict, "%s needs address %s, which lies in the dynamic pool %s: the server may give it to anybody", e.Device, e.Address, pool).
				With("configuration", where).WithHint("Give the BMC an address outside of the pool in NetBox, or make the pool smaller in the server's configuration.")
		}
	}
	return nil
}
