package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
)

func (s *rotationSite) remembering(dir string) (complaints *[]string) {
	complaints = &[]string{}
	s.refusals = newRefusals(dir, func(err error) { *complaints = append(*complaints, err.Error()) })
	return complaints
}

// Runs in a row, each with nothing but the files of the one before.
func TestRefusalsOutliveRuns(t *testing.T) {
	s := newRotationSite(t)
	s.bmc.Change(func(m *bmctest.Machine) { m.Password = "Nobody-Knows-1" })
	dir := filepath.Join(t.TempDir(), "state", "refusals")
	for range 4 {
		complaints := s.remembering(dir)
		if r, _ := s.run(); r.Outcome != plan.OutcomeFailed || r.Fault.Code != plan.CodeBMCCredential {
			t.Fatalf("%s %v", r.Outcome, r.Fault)
		}
		if len(*complaints) > 0 {
			t.Error(*complaints)
		}
	}
	if n := s.bmc.FailedLogins(); n != 2 { // the stored password and the factory's
		t.Errorf("%d logins were refused", n)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(raw), `"item":"bmc-gpu-001"`) || strings.Contains(string(raw), oldPassword) || strings.Contains(string(raw), factoryPassword) {
		t.Errorf("%s %v", raw, err)
	}
	// The vault gets the right one: it is tried at once, and what was remembered is gone.
	s.vault.Put("lon14/bmc-gpu-001", map[string]string{"username": "root", "password": "Nobody-Knows-1"})
	s.remembering(dir)
	if r, _ := s.run(); r.Outcome != plan.OutcomeAlready {
		t.Errorf("%s %v", r.Outcome, r.Fault)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(files) > 0 {
		t.Error(files)
	}
}

// A folder that cannot be used, and a file of something else, stop nothing and are
// told once.
func TestRefusalsWithoutFolder(t *testing.T) {
	at := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newRotationSite(t)
	complaints := s.remembering(filepath.Join(at, "refusals"))
	if r, _ := s.run(); r.Outcome != plan.OutcomeDone {
		t.Errorf("%s %v", r.Outcome, r.Fault)
	}
	if len(*complaints) != 1 || !strings.Contains((*complaints)[0], "may lock an account") {
		t.Error(*complaints)
	}
	complaints = s.remembering(t.TempDir())
	if err := os.WriteFile(s.refusals.path("https://bmc"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.refusals.Refused("https://bmc"); got != nil || len(*complaints) != 1 {
		t.Error(got, *complaints)
	}
	s.refusals.Update("https://bmc", func([]bmc.Refusal) []bmc.Refusal { return []bmc.Refusal{{Count: 1}} })
	if got := s.refusals.Refused("https://bmc"); len(got) != 1 || got[0].Count != 1 {
		t.Error(got)
	}
}

// Runs that are refused at once count together, and who reads meanwhile never sees
// half a file.
func TestRefusalsTogether(t *testing.T) {
	dir := t.TempDir()
	const runs, each = 8, 10
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			r := newRefusals(dir, func(err error) { t.Error(err) })
			for range each {
				r.Refused("https://bmc")
				r.Update("https://bmc", func(list []bmc.Refusal) []bmc.Refusal {
					if len(list) == 0 {
						list = []bmc.Refusal{{}}
					}
					list[0].Count++
					return list
				})
			}
		})
	}
	all.Wait()
	r := newRefusals(dir, func(err error) { t.Error(err) })
	if got := r.Refused("https://bmc"); len(got) != 1 || got[0].Count != runs*each {
		t.Error(got)
	}
}
