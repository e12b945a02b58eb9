package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

// backends are the ways in which a site keeps items, by name. Each is told to keep
// some, and to be read by the runs that follow.
func backends() map[string]func(*rotationSite, map[string]map[string]string) {
	environment := func(s *rotationSite, of map[string]string) {
		s.options.Getenv = func(name string) (string, bool) { v, ok := of[name]; return v, ok }
	}
	printed := func(s *rotationSite, items map[string]map[string]string) []byte {
		raw, err := json.Marshal(items)
		if err != nil {
			s.t.Fatal(err)
		}
		return raw
	}
	inVault := func(s *rotationSite, items map[string]map[string]string) {
		for name, fields := range items {
			s.vault.Put("lon14/"+name, fields)
		}
	}
	write := func(s *rotationSite, raw []byte, mode os.FileMode) string {
		path := filepath.Join(s.t.TempDir(), "kept")
		if err := os.WriteFile(path, raw, mode); err != nil {
			s.t.Fatal(err)
		}
		return path
	}
	return map[string]func(*rotationSite, map[string]map[string]string){
		"vault": inVault,
		"vault that this token reads only": func(s *rotationSite, items map[string]map[string]string) {
			inVault(s, items)
			s.options.Getenv = func(string) (string, bool) { return readerToken, true }
		},
		"env": func(s *rotationSite, items map[string]map[string]string) {
			s.keeps = plan.SecretsSettings{Backend: "env"}
			of := map[string]string{}
			for item, fields := range items {
				for field, value := range fields {
					of[secrets.Variable("", plan.SecretRef{Item: item, Field: field})] = value
				}
			}
			environment(s, of)
		},
		"onepassword": func(s *rotationSite, items map[string]map[string]string) {
			c := secretstest.NewConnect(secretstest.ConnectOptions{})
			s.t.Cleanup(c.Close)
			for item, fields := range items {
				c.Put("lon14", item, fields)
			}
			s.keeps = plan.SecretsSettings{Backend: "onepassword", URL: c.URL, Vault: "lon14", TokenEnv: "T"}
			environment(s, map[string]string{"T": c.Token})
		},
		"age": func(s *rotationSite, items map[string]map[string]string) {
			identity, err := age.GenerateX25519Identity()
			if err != nil {
				s.t.Fatal(err)
			}
			var sealed bytes.Buffer
			w, err := age.Encrypt(&sealed, identity.Recipient())
			if err != nil {
				s.t.Fatal(err)
			}
			if _, err := w.Write(printed(s, items)); err != nil {
				s.t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				s.t.Fatal(err)
			}
			s.keeps = plan.SecretsSettings{Backend: "age", File: write(s, sealed.Bytes(), 0o600), IdentityEnv: "I"}
			environment(s, map[string]string{"I": identity.String()})
		},
		"command": func(s *rotationSite, items map[string]map[string]string) {
			s.keeps = plan.SecretsSettings{Backend: "command", Argv: []string{"/bin/cat", write(s, printed(s, items), 0o600)}}
		},
	}
}

// Whatever keeps the secrets: a BMC is given no password that is stored nowhere.
// Where a new one cannot be stored, the BMC gets the one that is, and what needs
// another is refused by the plan, before anything is sent.
func TestRotationOfEachBackend(t *testing.T) {
	const tooLong = "Longer-2-than-IPMI-takes"
	for backend, keep := range backends() {
		writable := backend == "vault"
		for name, tc := range map[string]struct {
			stored   string
			has      string // the BMC
			demanded bool
			fault    plan.Code // where the backend is only read
		}{
			"factory":                             {oldPassword, factoryPassword, false, ""},
			"factory, another demanded":           {oldPassword, factoryPassword, true, ""},
			"stored":                              {oldPassword, oldPassword, false, ""},
			"stored, another demanded":            {oldPassword, oldPassword, true, plan.CodeBMCPasswordChange},
			"factory, the stored one is too long": {tooLong, factoryPassword, false, plan.CodeSecretInvalid},
		} {
			t.Run(backend+", "+name, func(t *testing.T) {
				s := newRotationSite(t)
				s.bmc.Change(func(m *bmctest.Machine) { m.Password, m.Profile.PasswordChange = tc.has, tc.demanded })
				keep(s, map[string]map[string]string{"bmc-gpu-001": {"username": "root", "password": tc.stored}, "bmc-factory": {"password": factoryPassword}})
				r, password := s.run()
				same := tc.has == tc.stored && !tc.demanded
				switch {
				case tc.fault != "" && !writable:
					if s.planned || r.Outcome != plan.OutcomeFailed || r.Fault.Code != tc.fault || r.Fault.WayOut() == "" {
						t.Errorf("a step: %v, %s %v", s.planned, r.Outcome, r.Fault)
					}
					if n := s.fleet.Recorder().Count(func(r exchange.Record) bool { return r.Mutating }); n > 0 || !s.bmc.Accepts("root", tc.has) {
						t.Errorf("%d writes", n)
					}
				case same && (s.planned || s.bmc.PasswordChanges() != 0):
					t.Errorf("a step: %v, %d changes", s.planned, s.bmc.PasswordChanges())
				case !same && (r.Outcome != plan.OutcomeDone || s.bmc.PasswordChanges() != 1):
					t.Errorf("%s %v, %d changes", r.Outcome, r.Fault, s.bmc.PasswordChanges())
				case !s.bmc.Accepts("root", s.field("password")) || password.Reveal() != s.field("password"):
					t.Error("the BMC has not what the backend has")
				case (s.field("password") == tc.stored) == (writable && !same):
					t.Errorf("the stored one is the old one: %v", s.field("password") == tc.stored)
				}
				if r.Fault != nil && strings.Contains(r.Fault.Error()+r.Fault.WayOut(), tc.stored) {
					t.Error("a password is told")
				}
			})
		}
	}
}
