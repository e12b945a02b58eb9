package dhcp

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// The server's main configuration may name further files, and those more. What
// they give to other hosts counts as well, so the command that reads the main
// configuration follows them by itself, in the same exchange. It takes whatever
// looks like the name of a file; which of them count, the flavour's own grammar
// says afterwards.

// inclusion is what a configuration takes from elsewhere.
type inclusion struct {
	at     string // as it is written
	folder bool   // every file of it that takes accepts
	hosts  bool   // dnsmasq: the language of a host's file, not of the configuration
	takes  func(name string) bool
	may    bool // whether it is there is nobody's business
}

// Limits of following them.
const (
	mostLevels  = 6
	mostSources = 200
	mostSource  = 4 << 20 // bytes of one file
	mostAll     = 8 << 20 // bytes of all
)

// namesFile finds names of files in the language of any of the servers.
const namesFile = `(include|conf-file|conf-dir|dhcp-hostsfile|dhcp-hostsdir)[[:space:]]*[="][[:space:]]*/[A-Za-z0-9._/-]+`

// followScript writes the lines of files, and of those that they name, the way
// grep -HZ does. Its arguments are a folder that is left out, namesFile, and where
// to begin. Files without a line and folders have an empty one, folders with a
// slash after their name; what is there and cannot be read begins with "!"; "+"
// says that a limit was met. It has no single quote, being one word itself.
var followScript = fmt.Sprintf(`own=$1; names=$2; shift 2; seen=:; n=0; all=0; depth=0; `+
	`while [ $# -gt 0 ]; do depth=$((depth+1)); [ $depth -le %d ] || { printf "+\0\n"; break; }; old=$#; `+
	`for f in "$@"; do case $f in "$own"|"$own"/*) continue;; esac; [ -e "$f" ] || continue; `+
	`case $seen in *:"$f":*) continue;; esac; seen=$seen$f:; `+
	`case $f in *[!A-Za-z0-9._/-]*) printf "!%%s\0\n" "$f"; continue;; esac; `+
	`[ -r "$f" ] || { printf "!%%s\0\n" "$f"; continue; }; `+
	`if [ -d "$f" ]; then printf "%%s/\0\n" "$f"; for g in "$f"/*; do [ -d "$g" ] || set -- "$@" "$g"; done; continue; fi; `+
	`[ -f "$f" ] || continue; size=$(wc -c <"$f"); n=$((n+1)); [ $n -le %d ] || { printf "+\0\n"; break 2; }; `+
	`[ $size -le %d ] && [ $((all+size)) -le %d ] || { printf "!%%s\0\n" "$f"; continue; }; all=$((all+size)); `+
	`[ $size -gt 0 ] || printf "%%s\0\n" "$f"; grep -HaZ "" -- "$f"; `+
	`set -- "$@" $(grep -aoE "$names" -- "$f" | grep -oE "/.*"); done; shift $old; done`,
	mostLevels, mostSources, mostSource, mostAll)

// mainsPart reads the server's own configuration, with all that it includes.
func mainsPart(fl flavour, dir, config string) part {
	words := []string{"sh", "-c", quote(followScript), "follow", dir, quote(namesFile)}
	for _, root := range fl.roots(config) {
		words = append(words, root.at)
	}
	return part{"mains", strings.Join(words, " ")}
}

// roots are the main configuration and what the unit of Debian adds to it.
func (fl flavour) roots(config string) []inclusion {
	roots := []inclusion{{at: config}}
	if fl.beside != nil {
		roots = append(roots, fl.beside(config))
	}
	return roots
}

// source is a file of the server's configuration.
type source struct {
	at    string
	hosts bool
}

// follow gives the files that the configuration consists of, in order, and what
// of it is not known: names of files that could not be read, or not in full.
func (fl flavour) follow(config, dir string, mains map[string]string) (sources []source, unread []string) {
	next := fl.roots(config)
	seen := map[string]bool{}
	for len(next) > 0 {
		one := next[0]
		next = next[1:]
		at := path.Clean(one.at)
		if at == dir || path.Dir(at) == dir && safePath.MatchString(at) || seen[at] {
			continue // the folder is looked at as a whole
		}
		seen[at] = true
		text, read := mains[at]
		_, listed := mains[at+"/"]
		switch {
		case read:
			sources = append(sources, source{at, one.hosts})
			told := fl.told(text, one.hosts)
			if told.opaque {
				unread = append(unread, at)
			}
			if !one.hosts && fl.includes != nil {
				next = append(next, fl.includes(text)...)
			}
		case listed && one.folder:
			for _, name := range slices.Sorted(namesIn(mains, at)) {
				if one.takes == nil || one.takes(name) {
					next = append(next, inclusion{at: path.Join(at, name), hosts: one.hosts})
				}
			}
		case one.may && mains["!"+at] == "":
		default:
			unread = append(unread, shown(one.at))
		}
	}
	if _, cut := mains["+"]; cut {
		unread = append(unread, fmt.Sprintf("more than %d files in %d levels", mostSources, mostLevels))
	}
	slices.Sort(unread)
	return sources, slices.Compact(unread)
}

// evidenceUnread is where a look at the service says what of its configuration
// nobody knows.
const evidenceUnread = "not read"

// unreadFault says in one line what is not compared; nil where all is.
func unreadFault(s plan.DHCPSettings, unread string) *plan.Fault {
	if unread == "" {
		return nil
	}
	return plan.NewFault(plan.CodeDHCPUnread, "of the configuration of %s on %s this is not read, so whom it gives a MAC, an address or a name to is not compared: %s", s.Unit, s.Host, unread).
		WithHint("Let user %s read the files, and name them by absolute paths of letters, digits and ._/-; or see to it that they hold no host.", s.User)
}

// told surveys a text in the language that it is written in.
func (fl flavour) told(text string, hosts bool) survey {
	if hosts {
		return fl.survey(text)
	}
	return fl.surveyMain(text)
}

// shown is a name as a person may see it: it comes from the server and may hold
// anything.
func shown(at string) string {
	if safePath.MatchString(at) {
		return at
	}
	return strconv.Quote(excerpt(at))
}

// namesIn gives the names of the files of a folder, those among them that
// could not be read.
func namesIn(mains map[string]string, folder string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for at := range mains {
			at = strings.TrimPrefix(at, "!")
			if path.Dir(at) == folder && !strings.HasSuffix(at, "/") && !yield(path.Base(at)) {
				return
			}
		}
	}
}

// iscIncludes are the include statements of dhcpd's language.
func iscIncludes(text string) []inclusion {
	var out []inclusion
	walkISC(text, func(_ []string, words []string) {
		if len(words) == 2 && words[0] == "include" {
			out = append(out, inclusion{at: words[1]})
		}
	})
	return out
}

var keaInclude = regexp.MustCompile(`^<\?include\s*"([^"]*)"\s*$`)

// keaIncludes are the inclusions in Kea's JSON, but for those in comments.
func keaIncludes(text string) []inclusion {
	var out []inclusion
	readKea(text, func(directive string) {
		if m := keaInclude.FindStringSubmatch(directive); m != nil {
			out = append(out, inclusion{at: m[1]})
		}
	})
	return out
}

// dnsmasqIncludes are the options with which dnsmasq reads more: its own language
// (conf-file, conf-dir) or that of hosts (dhcp-hostsfile, which may be a folder
// too, and dhcp-hostsdir).
func dnsmasqIncludes(text string) []inclusion {
	var out []inclusion
	for key, value := range dnsmasqOptions(text) {
		at, filters, _ := strings.Cut(value, ",")
		switch key {
		case "conf-file":
			out = append(out, inclusion{at: value})
		case "conf-dir":
			out = append(out, inclusion{at: at, folder: true, takes: confDir(filters)})
		case "dhcp-hostsfile", "dhcp-hostsdir":
			out = append(out, inclusion{at: value, folder: true, hosts: true, takes: read})
		}
	}
	return out
}

// confDir tells which files dnsmasq reads in a conf-dir: filters are suffixes that
// are left out, and, after an asterisk, suffixes of which one is wanted.
func confDir(filters string) func(name string) bool {
	var without, with []string
	for _, filter := range strings.Split(filters, ",") {
		filter = strings.TrimSpace(filter)
		if suffix, wanted := strings.CutPrefix(filter, "*"); wanted && suffix != "" {
			with = append(with, suffix)
		} else if filter != "" && !wanted {
			without = append(without, filter)
		}
	}
	return func(name string) bool {
		ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
		return read(name) && !slices.ContainsFunc(without, ends) && (len(with) == 0 || slices.ContainsFunc(with, ends))
	}
}
