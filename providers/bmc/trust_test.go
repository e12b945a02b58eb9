package bmc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

// A pin stands for the authority; a certificate that is neither is refused before
// anything is sent, and its fingerprint is told.
func TestPins(t *testing.T) {
	w := newWorld(t, machine(bmctest.Generic))
	none := filepath.Join(t.TempDir(), "ca.pem")
	other := bmctest.New(bmctest.Options{})
	defer other.Close()
	if err := os.WriteFile(none, other.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	w.scope.Site.BMC.CAFile = none
	w.scope.Site.BMC.Pins = []string{"sha256:00"}
	w.connect()
	live := w.live(w.read(), "credential")
	if live.Presence != plan.Unreadable || live.Fault.Code != plan.CodeBMCTLS || live.Fault.Evidence["fingerprint"] != w.bmcs[0].Fingerprint() {
		t.Errorf("a wrong pin: %s %s", live.Presence, faultText(live.Fault))
	}
	if n := len(w.fleet.Recorder().Records()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
	w.scope.Site.BMC.Pins = append(w.scope.Site.BMC.Pins, w.bmcs[0].Fingerprint())
	w.connect()
	if live := w.live(w.read(), "credential"); live.Presence != plan.Present || live.Evidence["certificate"] != w.bmcs[0].Fingerprint() {
		t.Errorf("pinned: %s %s %v", live.Presence, faultText(live.Fault), live.Evidence)
	}
	w.close()
}

// A new certificate of a pinned BMC is learned after enroll's own renaming, when
// the site file says so, and never otherwise.
func TestRelearnedPin(t *testing.T) {
	for _, tc := range []struct {
		name            string
		relearn, rename bool
		want            plan.Presence
	}{
		{"asked for, after a renaming", true, true, plan.Present},
		{"asked for, out of the blue", true, false, plan.Unreadable},
		{"not asked for", false, true, plan.Unreadable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, machine(bmctest.Generic))
			ca := filepath.Join(t.TempDir(), "ca.pem")
			other := bmctest.New(bmctest.Options{})
			defer other.Close()
			if err := os.WriteFile(ca, other.CA(), 0o600); err != nil {
				t.Fatal(err)
			}
			w.scope.Site.BMC.CAFile, w.scope.Site.BMC.Pins, w.scope.Site.BMC.RelearnPins = ca, []string{w.bmcs[0].Fingerprint()}, tc.relearn
			w.connect()
			p := w.build(w.read())
			if tc.rename {
				if r := w.apply(p.Steps[0]); r.Outcome != plan.OutcomeDone {
					t.Fatal(faultText(r.Fault))
				}
			}
			w.bmcs[0].SetReachable(false)
			w.bmcs[0].RenewCertificate()
			w.bmcs[0].SetReachable(true)
			live := w.live(w.read(), "credential")
			if live.Presence != tc.want || (live.Fault != nil && live.Fault.Code != plan.CodeBMCTLS) {
				t.Fatalf("%s %s", live.Presence, faultText(live.Fault))
			}
			if tc.want == plan.Present { // once: a second new one is not ours
				w.bmcs[0].SetReachable(false)
				w.bmcs[0].RenewCertificate()
				w.bmcs[0].SetReachable(true)
				if live := w.live(w.read(), "credential"); live.Presence != plan.Unreadable {
					t.Errorf("a second new certificate: %s", live.Presence)
				}
			}
		})
	}
}
