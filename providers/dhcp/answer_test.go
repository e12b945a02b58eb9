package dhcp

import (
	"reflect"
	"strings"
	"testing"
)

func TestSplitSections(t *testing.T) {
	parts := []part{{"a", "x"}, {"b", "y"}}
	good := "Welcome\n@m begin 0\n\n@m begin 0\none\ntwo\n@m a 0\n@m b 3\n"
	good = strings.Replace(good, "@m begin 0\n\n", "", 1)
	got, err := splitSections(good, "m", parts)
	want := map[string]section{"a": {"one\ntwo\n", 0}, "b": {"", 3}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for end := range len(good) { // cut anywhere, it is never taken for whole
		if got, err := splitSections(good[:end], "m", parts); err == nil {
			t.Errorf("%q was read as %+v", good[:end], got)
		}
	}
	for _, text := range []string{"", good[:20], strings.Replace(good, "@m a 0", "@n a 0", 1), strings.Replace(good, "@m b 3", "@m b x", 1)} {
		if got, err := splitSections(text, "m", parts); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
	if _, err := splitSections("\n@m begin 0\nno newline at the end\n@m a 0\n@m b 0\n", "m", parts); err != nil {
		t.Error(err)
	}
}

func FuzzSplitSections(f *testing.F) {
	f.Add("\n@m begin 0\none\n@m a 0\n@m b 3\n")
	f.Add("\n@m begin 0\n@m a 0\n@m b 3")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := splitSections(text, "m", []part{{"a", "x"}, {"b", "y"}})
		if err == nil && len(got) != 2 {
			t.Errorf("%q: %+v", text, got)
		}
	})
}

func TestQuote(t *testing.T) {
	if got := quote(`a'b $(c)`); got != `'a'\''b $(c)'` {
		t.Error(got)
	}
}

func TestParseSums(t *testing.T) {
	sum := hash("x")
	got := parseSums(sum + "  a b\n" + sum + " *bin\n\\" + sum + "  esc\\\\aped\nsha256sum: sub: Is a directory\n" + sum[:60] + "  short\n" + strings.ToUpper(sum) + "  upper\n")
	if want := map[string]string{"a b": sum, "bin": sum}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestParseLines(t *testing.T) {
	got := parseLines("a\x00one\na\x00\nb\x00two:\x00\nBinary file c matches\n")
	if want := map[string]string{"a": "one\n\n", "b": "two:\x00\n"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// TestComplaint judges logs as dnsmasq 2.90 writes them.
func TestComplaint(t *testing.T) {
	const dir = "/etc/enroll-hosts.d"
	ours := map[string]Entry{dir + "/gpu-001-bmc": goodEntry()}
	for name, c := range map[string]struct{ log, want string }{
		"quiet":             {"read D/gpu-001-bmc\nread D/old", ""},
		"bad name":          {"read D/gpu-001-bmc\nbad DHCP host name at line 2 of D/gpu-001-bmc", "bad DHCP host name at line 2 of D/gpu-001-bmc"},
		"somebody else's":   {"read D/old\nbad hex constant at line 2 of D/old", ""},
		"our address there": {"read D/gpu-001-bmc\nread D/old\nduplicate dhcp-host IP address 192.0.2.11 at line 1 of D/old", "duplicate dhcp-host IP address 192.0.2.11 at line 1 of D/old"},
		"address of others": {"read D/old\nduplicate dhcp-host IP address 192.0.2.110 at line 1 of D/old", ""},
		"unreadable":        {"read D/gpu-001-bmc\ncannot read D/gpu-001-bmc: Permission denied", "cannot read D/gpu-001-bmc: Permission denied"},
		"folder gone":       {"bad dynamic directory D: No such file or directory", "bad dynamic directory D: No such file or directory"},
		"late inotify":      {"inotify: D/gpu-001-bmc new or modified\nread D/gpu-001-bmc\nduplicate dhcp-host IP address 192.0.2.11 at line 2 of D/gpu-001-bmc\nread D/gpu-001-bmc", ""},
	} {
		h := health{state: stateActive, lines: strings.Split(strings.ReplaceAll(c.log, "D", dir), "\n")}
		if got := h.hostsComplaint(dir, ours); got != strings.ReplaceAll(c.want, "D", dir) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestUnread(t *testing.T) {
	ours := map[string]Entry{"/d/a": {}, "/d/b": {}, "/d/gone": {}}
	names := map[string]bool{"/d/a": true, "/d/b": true, "/d/c": true}
	for log, want := range map[string]string{
		"":                     "", // the log goes elsewhere: nothing follows
		"read /d/c":            "/d/a",
		"read /d/a\nread /d/c": "/d/b",
		"read /d/b\nread /d/a": "",
	} {
		if got := (health{lines: strings.Split(log, "\n"), names: names}).unread(ours); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

func TestUnitState(t *testing.T) {
	for show, want := range map[string]string{
		"LoadState=loaded\nActiveState=active\nSubState=running":   stateActive,
		"ActiveState=reloading\nSubState=reload\nLoadState=loaded": stateActive,
		"LoadState=loaded\nActiveState=active\nSubState=exited":    "active (exited)", // the process is gone
		"LoadState=loaded\nActiveState=failed\nSubState=failed":    "failed (failed)",
		"LoadState=loaded\nActiveState=inactive\nSubState=dead":    "inactive (dead)",
		"LoadState=not-found\nActiveState=inactive\nSubState=dead": "unknown to systemd",
		"something else": "without an ActiveState",
		"LoadState=loaded\nActiveState=activating\nSubState=auto-restart": "activating (auto-restart)",
	} {
		if got, _ := unitState(show); got != want {
			t.Errorf("%q: %q, want %q", show, got, want)
		}
	}
}
