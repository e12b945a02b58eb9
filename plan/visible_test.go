package plan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A plan file spells what a terminal would obey or an eye not see as escapes, it
// means the same, and however it is spelt it has the same hash.
func TestPlanFileShowsWhatIsInvisible(t *testing.T) {
	const text = "a\x1b[2J\u202eb\u2066\u200f\x7f\u009b\u2028\u00ad\ue000\U000e0041é漢\t\n"
	sc := testScope("gpu-001")
	p := Build(Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent())})
	p.Steps[1].After = Obj(map[string]Value{text: Str(text)})
	p.Diagnostics = append(p.Diagnostics, Diagnostic{Severity: SeverityWarning, Fault: NewFault(CodeInternal, "%s", text)})
	p.PlanID = "0123456789ab"
	p.ContentHash = ContentHash(p)
	raw := encoded(t, p)
	for _, r := range raw {
		if r != '\n' && Invisible(r) {
			t.Fatalf("%U stands raw in the file", r)
		}
	}
	for _, spelt := range []string{`\u202e`, `\u007f`, `\u009b`, `\udb40\udc41`, "é漢", `\t\n`} {
		if !strings.Contains(raw, spelt) {
			t.Errorf("the file does not spell %s", spelt)
		}
	}
	back, err := Decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Steps[1].After; !got.RawEquals(p.Steps[1].After) {
		t.Errorf("%#v came back", got)
	}
	if encoded(t, back) != raw {
		t.Error("the second encoding differs")
	}
	for _, spelt := range []string{`\u202e`, `\u2066`} {
		r := spelt
		if err := json.Unmarshal([]byte(`"`+spelt+`"`), &r); err != nil {
			t.Fatal(err)
		}
		if _, err := Decode([]byte(strings.ReplaceAll(raw, spelt, r))); err != nil {
			t.Errorf("spelt raw: %v", err)
		}
	}
}

// What the content hash was taken of is what is written, and a plan that changed
// since is written as it is now.
func TestEncodeReusesTheContent(t *testing.T) {
	sc := testScope("gpu-001")
	in := Input{Scope: sc, Kinds: testKinds, World: world(sc, LiveAbsent()), Statistics: map[string]int{"netbox": 7}}
	p := Build(in)
	p.PlanID, p.Created, p.SiteDir = "0123456789ab", time.Unix(1, 0).UTC(), "elsewhere"
	if p.content == nil {
		t.Fatal("nothing was kept")
	}
	reused := encoded(t, p)
	fresh := *p
	fresh.content = nil
	if encoded(t, &fresh) != reused {
		t.Errorf("reused:\n%s", reused)
	}
	p.Enforce([]PolicyResult{{Policy: "p", Action: PolicyDeny, Outcome: PolicyHolds, Holds: []string{"lon14"}}})
	if raw := encoded(t, p); raw == reused || !strings.Contains(raw, `"rule": "policy"`) {
		t.Errorf("the plan changed and was written as before:\n%s", raw)
	}
}

func FuzzVisibleJSON(f *testing.F) {
	for _, s := range []string{"\u202e", "a\U000e0041", "\xff", "\u007f\u0080\u009f", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		raw, err := json.Marshal([]string{s})
		if err != nil {
			t.Fatal(err)
		}
		shown := VisibleJSON(raw)
		var back []string
		if err := json.Unmarshal(shown, &back); err != nil || len(back) != 1 || back[0] != s {
			t.Fatalf("%q became %q: %v", s, back, err)
		}
		if bytes.ContainsFunc(shown, Invisible) {
			t.Fatalf("%q", shown)
		}
	})
}
