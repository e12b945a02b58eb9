package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/enroll-dev/enroll/plan"
)

type obj = map[string]plan.Value

func items(list ...obj) plan.Value {
	vals := make([]any, len(list))
	for i, o := range list {
		m := map[string]any{}
		for k, v := range o {
			m[k] = v.AsString()
		}
		vals[i] = m
	}
	v, err := plan.FromAny(vals)
	if err != nil {
		panic(err) // texts always are values
	}
	return v
}

// printed is a step's detail, a line for each.
func printed(s *plan.Step, o TextOptions) string {
	t := &textWriter{o: o}
	t.difference(s)
	return t.b.String()
}

// One changed leaf shows one line, whatever list it stands in.
func TestDetails(t *testing.T) {
	nic := func(mac, name, speed string) obj {
		return obj{"name": plan.Str(name), "mac_address": plan.Str(mac), "speed": plan.Str(speed)}
	}
	many := func(n int, last string) plan.Value {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("syslog%02d.example.net", i))
		}
		return plan.Strs(append(list, last)...)
	}
	lines := func(n int, changed int) plan.Value {
		var b strings.Builder
		for i := range n {
			if i == changed {
				b.WriteString("changed ")
			}
			fmt.Fprintf(&b, "line %d\n", i+1)
		}
		return plan.Str(b.String())
	}
	for name, tc := range map[string]struct {
		before, after plan.Value
		full          bool
		want          string
	}{
		"a NIC by its MAC": {
			items(nic("02:00:00:00:00:01", "eth0", "100"), nic("02:00:00:00:00:02", "eth1", "100")),
			items(nic("02:00:00:00:00:01", "eth0", "100"), nic("02:00:00:00:00:02", "eth1", "200")), false,
			"      [02:00:00:00:00:02].speed  \"100\" → \"200\"\n",
		},
		"a NIC more": {
			items(nic("02:00:00:00:00:02", "eth1", "100")), items(nic("02:00:00:00:00:01", "eth0", "100"), nic("02:00:00:00:00:02", "eth1", "100")), false,
			"      [02:00:00:00:00:01].mac_address  \"02:00:00:00:00:01\"\n      [02:00:00:00:00:01].name         \"eth0\"\n      [02:00:00:00:00:01].speed        \"100\"\n",
		},
		"another order": {
			items(obj{"serial": plan.Str("A")}, obj{"serial": plan.Str("B")}), items(obj{"serial": plan.Str("B")}, obj{"serial": plan.Str("A")}), false,
			"      (order)  A, B → B, A\n",
		},
		"the first of a list": {
			plan.Obj(obj{"disks": plan.Strs()}), plan.Obj(obj{"disks": items(obj{"serial": plan.Str("A"), "size": plan.Str("1")})}), false,
			"      disks[A].serial  \"A\"\n      disks[A].size    \"1\"\n",
		},
		"a setting by its name": {
			plan.Obj(obj{"attributes": plan.Obj(obj{"BootMode": plan.Str("Bios"), "LogicalProc": plan.Str("Enabled")})}),
			plan.Obj(obj{"attributes": plan.Obj(obj{"BootMode": plan.Str("Uefi"), "LogicalProc": plan.Str("Enabled")})}), false,
			"      attributes.BootMode  \"Bios\" → \"Uefi\"\n",
		},
		"null and nothing": {
			plan.Obj(obj{"a": plan.Null, "c": plan.Int(1), "d": plan.Null}), plan.Obj(obj{"a": plan.Int(1), "b": plan.Null}), false,
			"      a  null → 1\n      b  null\n      c  1 → (nothing)\n",
		},
		"known later": {
			plan.Obj(obj{"id": plan.Null}), plan.Obj(obj{"id": plan.Unknown}), false,
			"      id  null → (known after apply)\n",
		},
		"a long list": {
			many(12, "old.example.net"), many(12, "new.example.net"), false,
			"        13 items → 13\n        @@ -10,4 +10,4 @@\n          \"syslog09.example.net\"\n          \"syslog10.example.net\"\n          \"syslog11.example.net\"\n        - \"old.example.net\"\n        + \"new.example.net\"\n",
		},
		"a file": {
			lines(20, -1), lines(20, 9), false,
			"        text\n        @@ -7,7 +7,7 @@\n          line 7\n          line 8\n          line 9\n        - line 10\n        + changed line 10\n          line 11\n          line 12\n          line 13\n",
		},
		"a file's last line end": {
			plan.Str("a\nb"), plan.Str("a\nb\n"), false,
			"        text\n          a\n        - b\n        \\  No newline at end of file\n        + b\n",
		},
		"the end of long values": {
			plan.Str(strings.Repeat("x", 300) + "old"), plan.Str(strings.Repeat("x", 300) + "new"), false,
			"        …(+297)xxxxold\" → …(+297)xxxxnew\"\n",
		},
		"long values whole": {
			plan.Str(strings.Repeat("x", 300)), plan.Str(strings.Repeat("y", 300)), true,
			"        \"" + strings.Repeat("x", 300) + "\" → \"" + strings.Repeat("y", 300) + "\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := printed(&plan.Step{Before: tc.before, After: tc.after}, TextOptions{Full: tc.full})
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// A long text is cut off and counted.
func TestLongTextIsCounted(t *testing.T) {
	text := plan.Str(strings.Repeat("line\n", 100))
	short, full := printed(&plan.Step{Before: plan.Null, After: text}, TextOptions{}), printed(&plan.Step{Before: plan.Null, After: text}, TextOptions{Full: true})
	if !strings.Contains(short, "… 60 more lines; --full shows all") || strings.Count(short, "+ line") != 40 {
		t.Errorf("%s", short)
	}
	if strings.Count(full, "+ line") != 100 {
		t.Errorf("%s", full)
	}
}

// Whatever is cut, the two sides differ where their values do.
func TestCutPairKeepsTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aabé")), 0, 80, -1)
		head, a, b := text.Draw(t, "head"), text.Draw(t, "a"), text.Draw(t, "b")
		a, b = head+a, head+b
		x, y := cutPair(a, b, rapid.IntRange(40, 120).Draw(t, "room"))
		if (a == b) != (x == y) && !strings.Contains(x+y, cutMark) {
			t.Fatalf("%q, %q: %q, %q", a, b, x, y)
		}
		if a != b && x == y {
			t.Fatalf("%q and %q both are shown as %q", a, b, x)
		}
	})
}

// A line breaks between its parts: no address and no value is ever broken.
func TestNothingIsBroken(t *testing.T) {
	long := plan.Address{Site: "s", Device: "d", System: "check", Kind: "lldp", Key: strings.Repeat("Ethernet1/1/", 12)}
	p := &plan.Plan{
		Devices: []plan.DevicePlan{{Name: "d", Verdict: plan.VerdictChanges}},
		Steps: []*plan.Step{{ID: "s1", Address: long, Action: plan.ActionUpdate, Reason: plan.ReasonDiffers, Effects: []plan.Effect{plan.EffectReboot}, Because: []string{"v"},
			Before: plan.Obj(obj{"v": plan.Str("old value of a setting")}), After: plan.Obj(obj{"v": plan.Str("new value of a setting")})}},
	}
	p.Recount()
	var b strings.Builder
	if err := Text(&b, p, TextOptions{Width: 60}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  ~ " + long.Local() + " update, differs\n      [reboots the host: v]\n", "      v  \"old value of a setting\" → \"new value of a setting\"\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
