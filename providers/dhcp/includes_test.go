package dhcp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// followed runs the script in a real shell, over files of a folder that stands for
// the root of the server; names in texts begin with ROOT.
func followed(t *testing.T, fl flavour, files map[string]string) (sources []source, unread []string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(strings.ReplaceAll(text, "ROOT", root)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, config := filepath.Join(root, "enroll.d"), filepath.Join(root, "main.conf")
	command := exec.Command("/bin/sh", "-c", script("m", "/", []part{mainsPart(fl, dir, config)}))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	sections, err := splitSections(string(out), "m", []part{{name: "mains"}})
	if err != nil {
		t.Fatal(err)
	}
	sources, unread = fl.follow(config, dir, parseLines(sections["mains"].body))
	for i := range sources {
		sources[i].at = strings.TrimPrefix(sources[i].at, root+"/")
	}
	for i := range unread {
		unread[i] = strings.ReplaceAll(unread[i], root+"/", "")
	}
	return sources, unread
}

// TestFollow: the command finds what the configuration names, and the grammar
// says what of it counts.
func TestFollow(t *testing.T) {
	long := map[string]string{"main.conf": `include "ROOT/1";`}
	for i, name := range strings.Split("123456789", "") {
		long[name] = `include "ROOT/` + string(rune('2'+i)) + `";`
	}
	many := map[string]string{"main.conf": "conf-dir=ROOT/many\n"}
	for i := range mostSources + 5 {
		many["many/"+strings.Repeat("x", i+1)] = "\n"
	}
	main := source{at: "main.conf"}
	for name, c := range map[string]struct {
		fl      flavour
		files   map[string]string
		sources []source
		unread  []string
	}{
		"ISC": {iscFlavour(false), map[string]string{
			"main.conf":           "# include \"ROOT/commented\";\ninclude \"ROOT/a\"; include \"ROOT/enroll.d/index.conf\";\ninclude \"ROOT/missing\"; include \"relative\"; include \"ROOT/odd name\";\n",
			"a":                   "subnet 192.0.2.0 netmask 255.255.255.0 { include \"ROOT/b\"; }\ninclude \"ROOT/a\"; include \"ROOT/main.conf\";\n",
			"b":                   "",
			"commented":           "host x { }\n",
			"odd name":            "host x { }\n",
			"enroll.d/index.conf": "include \"ROOT/not-followed\";\n",
			"not-followed":        "",
		}, []source{main, {at: "a"}, {at: "b"}}, []string{`"odd name"`, `"relative"`, "missing"}},
		"Kea": {keaFlavour(false), map[string]string{
			"main.conf": "{ \"Dhcp4\": { // <?include \"ROOT/commented\"?>\n \"reservations\": <?include \"ROOT/enroll.d/index.json\"?>, \"subnet4\": <?include   \"ROOT/subnets\"?>, \"x\": <?include \"ROOT/part\"?> } }\n",
			"commented": "{}", "subnets": "[ <?include \"ROOT/one\"?> ]", "one": "{ \"subnet\": \"192.0.2.0/24\" }", "part": "\"a\": 1, \"b\": 2",
		}, []source{main, {at: "subnets"}, {at: "part"}, {at: "one"}}, []string{"part"}},
		"dnsmasq": {dnsmasqFlavour(), map[string]string{
			"main.conf": " conf-file = ROOT/more # why\n#conf-file=ROOT/commented\nconf-dir=ROOT/c,*.conf\nconf-dir=ROOT/d,.bak,.old\ndhcp-hostsfile=ROOT/hosts\ndhcp-hostsdir=ROOT/h\ndhcp-hostsdir=ROOT/enroll.d\nconf-dir=ROOT/none\n",
			"more":      "conf-file=ROOT/deep\n", "deep": "\n", "commented": "\n", "hosts": "02:00:5e:10:00:01,192.0.2.9\n",
			"c/1.conf": "\n", "c/2.txt": "\n", "c/sub/3.conf": "\n", "d/4": "\n", "d/5.bak": "\n", "d/.6": "\n", "d/7~": "\n", "h/8": "\n", "h/9": "", "d/odd name": "\n",
			"main.d/10.conf": "\n", "main.d/11.dpkg-old": "\n", "enroll.d/12": "\n",
		}, []source{main, {at: "more"}, {at: "hosts", hosts: true}, {at: "main.d/10.conf"}, {at: "deep"}, {at: "c/1.conf"}, {at: "d/4"}, {at: "h/8", hosts: true}, {at: "h/9", hosts: true}},
			[]string{`"d/odd name"`, "none"}},
		"no configuration": {iscFlavour(false), nil, nil, []string{"main.conf"}},
		"too deep":         {iscFlavour(false), long, []source{main, {at: "1"}, {at: "2"}, {at: "3"}, {at: "4"}, {at: "5"}}, []string{"6", "more than 200 files in 6 levels"}},
	} {
		t.Run(name, func(t *testing.T) {
			sources, unread := followed(t, c.fl, c.files)
			if diff := cmp.Diff(c.sources, sources, cmp.AllowUnexported(source{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.unread, unread); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		sources, unread := followed(t, dnsmasqFlavour(), many)
		if len(sources) > mostSources || len(unread) == 0 || !strings.Contains(strings.Join(unread, " "), "more than 200 files") {
			t.Errorf("%d sources, not read: %v", len(sources), unread)
		}
	})
	t.Run("too large", func(t *testing.T) {
		sources, unread := followed(t, iscFlavour(false), map[string]string{"main.conf": `include "ROOT/large";`, "large": strings.Repeat("# nothing\n", mostSource/10+1)})
		if diff := cmp.Diff([]string{"large"}, unread); diff != "" || len(sources) != 1 {
			t.Error(sources, diff)
		}
	})
}
