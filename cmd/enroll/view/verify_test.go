package view_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/enroll-dev/enroll/cmd/enroll/view"
	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/ironic/cabling"
)

// mistakes is one of each kind, and names that want to be obeyed.
func mistakes() []cabling.Finding {
	c := func(device, nic, recordedSwitch, recordedPort, seenSwitch, seenPort string) cabling.Cable {
		return cabling.Cable{Device: device, NIC: nic, Recorded: cabling.End{Switch: recordedSwitch, Port: recordedPort}, Seen: cabling.Announced{Switch: seenSwitch, PortID: seenPort}}
	}
	return cabling.Detect([]cabling.Cable{
		c("gpu-017", "eth2", "leaf-r02-1", "swp3", "leaf-r02-1", "swp4"), c("gpu-017", "eth3", "leaf-r02-1", "swp4", "leaf-r02-1", "swp3"),
		c("gpu-018", "eth0", "leaf-r02-1", "swp11", "leaf-r02-1", "swp12"), c("gpu-019", "eth0", "leaf-r02-1", "swp12", "leaf-r02-1", "swp13"), c("gpu-020", "eth0", "leaf-r02-1", "swp13", "leaf-r02-1", "swp14"),
		c("gpu-021", "eth0", "leaf-r02-1", "swp21", "leaf-r02-2", "swp21"),
		c("gpu-<b>\x1b[31m&\"'", "eth0", "leaf-r02-1", "swp31s0", "leaf-r02-1", "swp31s1"),
		c(strings.Repeat("long-", 40), "eth0", "leaf-r02-1", "swp40", "elsewhere", "x]]>|`"),
		c("gpu-022", strings.Repeat("W", 39), strings.Repeat("WM", 20), strings.Repeat("@", 30), strings.Repeat("交换机", 14), strings.Repeat("Ethernet", 30)),
	})
}

func verification() *view.Verification {
	a := func(key string) plan.Address {
		return plan.Address{Site: "demo", Device: "gpu-017", System: "check", Kind: "lldp", Key: key}
	}
	return view.NewVerification("demo", []view.Verified{
		{Device: "gpu-001", State: "available", Inspected: "2026-11-30T09:00:00+00:00", Checks: []plan.Check{{Address: a("eth0"), Verdict: plan.CheckPass, Expected: "x", Observed: "x"}, {Address: a("eth1"), Verdict: plan.CheckSkipped}}},
		{Device: "gpu-017", State: "manageable", Inspected: "2026-11-30T09:00:00+00:00", Checks: []plan.Check{
			{Address: a("eth2"), Verdict: plan.CheckFail, Expected: "leaf-r02-1 swp3", Observed: "leaf-r02-1 swp4|\n*", Text: "eth2 is cabled to another port than NetBox records"},
			{Address: a("eth3"), Verdict: plan.CheckUnknown, Expected: "leaf-r02-1 swp4", Observed: "no LLDP", Text: "no LLDP frame was reported"},
		}},
		{Device: "gpu-018", Fault: plan.NewFault(plan.CodeIronicUnreachable, "ironic did not answer")},
	}, mistakes())
}

func TestVerifyText(t *testing.T) {
	var b strings.Builder
	if err := verification().Text(&b, view.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `gpu-001  proven (available, inspected 2026-11-30 09:00 UTC)
  ✓ 1 check as recorded
  - 1 check skipped, as the record says

gpu-017  failed (manageable, inspected 2026-11-30 09:00 UTC)
  ✗ check.lldp[eth2]               fail
      expected  leaf-r02-1 swp3
      observed  leaf-r02-1 swp4|\n*
      eth2 is cabled to another port than NetBox records
  ? check.lldp[eth3]               unknown
      expected  leaf-r02-1 swp4
      observed  no LLDP
      no LLDP frame was reported

gpu-018  unreadable (not looked at)
`
	if got := b.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nVerify: 3 devices, 1 proven, 1 failed, 0 not proven, 1 unreadable; 1 checks passed, 1 failed, 1 unknown, 1 skipped.\n") ||
		!strings.Contains(got, "Cables\n  eth2 and eth3 are swapped at gpu-017.\n    1. swap eth2 and eth3 at gpu-017\n") || strings.Contains(got, "\x1b") {
		t.Error(got)
	}
}

func TestVerifyMarkdown(t *testing.T) {
	for _, most := range []int{view.MaxMarkdown, 2000} {
		var b strings.Builder
		if err := verification().Markdown(&b, most); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		if len(got) > most || strings.Contains(got, "\x1b") {
			t.Errorf("%d bytes of %d: %s", len(got), most, got)
		}
		if most == 2000 {
			if !strings.Contains(got, "left out") {
				t.Errorf("what is left out is not said: %s", got)
			}
			continue
		}
		for _, want := range []string{
			"- **eth2 and eth3 are swapped at gpu-017.**\n  1. swap eth2 and eth3 at gpu-017\n",
			"gpu-017 eth2 ┄┄ recorded ┄┄▷ leaf-r02-1 swp3\n             ━━ seen ━━━━━━▶ leaf-r02-1 swp4\n",
			`| gpu-017 | fail | ` + "`check.lldp[eth2]`" + ` | leaf-r02-1 swp3 | leaf-r02-1 swp4\|\\n\* |`,
			"| gpu-018 | unreadable | | | | IRONIC_UNREACHABLE: ironic did not answer |",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
}

// The drawing is well-formed whatever the names are, the same each time, and has
// a dashed and a drawn line for each cable.
func TestVerifySVG(t *testing.T) {
	draw := func() string {
		var b strings.Builder
		if err := verification().SVG(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := draw()
	if got != draw() {
		t.Error("not the same twice")
	}
	dec := xml.NewDecoder(strings.NewReader(got))
	recorded, seen := 0, 0
	var rooms []string // the widths of the svg elements around, the outermost first
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.EndElement); ok && e.Name.Local == "svg" {
			rooms = rooms[:len(rooms)-1]
		}
		e, ok := token.(xml.StartElement)
		if ok && e.Name.Local == "svg" {
			for _, a := range e.Attr {
				if a.Name.Local == "width" {
					rooms = append(rooms, a.Value)
				}
			}
		}
		if ok && e.Name.Local == "text" && len(rooms) != 2 {
			t.Errorf("a text has room %v: nothing cuts it off", rooms)
		}
		if ok && e.Name.Local == "path" {
			for _, a := range e.Attr {
				switch a.Value {
				case "recorded":
					recorded++
				case "seen":
					seen++
				}
			}
		}
	}
	cables := 0
	for _, f := range mistakes() {
		cables += len(f.Cables)
	}
	if recorded != cables+1 || seen != cables+1 { // and the legend
		t.Errorf("%d recorded and %d seen lines for %d cables", recorded, seen, cables)
	}
	if file := os.Getenv("ENROLL_TEST_SVG"); file != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Error(err)
		}
	}
}
