package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/bmc/bmctest"
	"github.com/enroll-dev/enroll/providers/exchange"
	"github.com/enroll-dev/enroll/providers/secrets"
	"github.com/enroll-dev/enroll/providers/secrets/secretstest"
)

const (
	oldPassword     = "Stored-2-Password"
	factoryPassword = "Factory-2-Password"
	readerToken     = "s.reads-only"
)

// rotationSite is a vault with one host's item, and its BMC as the factory leaves it.
type rotationSite struct {
	t     *testing.T
	vault *secretstest.Server
	fleet *bmctest.Server
	bmc   *bmctest.BMC
	scope *plan.Scope
	now   time.Time
	// refusals is what outlives a run; nil: a run of its own memory.
	refusals *refusals
	// keeps is where the secrets are, and options how it is reached.
	keeps   plan.SecretsSettings
	options secrets.Options
	planned bool // the last plan had a step for the password
}

func newRotationSite(t *testing.T) *rotationSite {
	t.Helper()
	s := &rotationSite{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.vault = secretstest.New(secretstest.Options{Tokens: []secretstest.Token{{Value: secretstest.DefaultToken}, {Value: readerToken, Read: []string{"secret/data/lon14/"}}}})
	t.Cleanup(s.vault.Close)
	s.keeps = plan.SecretsSettings{Backend: "vault", URL: s.vault.URL, Mount: "secret", Prefix: "lon14", TokenEnv: "T"}
	s.options.Getenv = func(string) (string, bool) { return secretstest.DefaultToken, true }
	s.vault.Put("lon14/bmc-gpu-001", map[string]string{"username": "root", "password": oldPassword})
	s.vault.Put("lon14/bmc-factory", map[string]string{"password": factoryPassword})
	s.fleet = bmctest.New(bmctest.Options{Now: func() time.Time { return s.now }})
	t.Cleanup(s.fleet.Close)
	s.bmc = s.fleet.Add(bmctest.Machine{Name: "gpu-001", Vendor: bmctest.XCC, Serial: "SVC0001", User: "root", Password: factoryPassword})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, s.fleet.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	site := &plan.Site{Name: "lon14", ConfigureBMC: true, BMC: &plan.BMCSettings{CAFile: ca, Timeout: 20 * time.Second, ReadyBudget: time.Minute}}
	ref := func(item, field string) plan.SecretRef { return plan.SecretRef{Item: item, Field: field} }
	s.scope = &plan.Scope{Site: site, Targets: []*plan.Target{{
		Site: site, Intent: &plan.Intent{Name: "gpu-001", ID: 1, Serial: "SVC0001", Ironic: plan.IronicContext{RedfishAddress: s.bmc.URL}},
		Settings: plan.Settings{Hostname: "gpu-001", BMCUsername: ref("bmc-gpu-001", "username"), BMCPassword: ref("bmc-gpu-001", "password"), BMCFactory: ref("bmc-factory", "password")},
	}}}
	return s
}

// run is one process that plans and runs the credential's step. It gives its last
// result, and what Ironic would be given afterwards.
func (s *rotationSite) run() (plan.Result, plan.Secret) {
	s.t.Helper()
	backend := s.backend()
	redactor := secrets.NewRedactor()
	credentials := hostCredentials{vault: newVault(backend, redactor), scope: s.scope}
	o := bmc.Options{Now: func() time.Time { return s.now }, Rotation: credentials}
	if s.refusals != nil {
		o.Refusals = s.refusals
	}
	client, err := bmc.New(*s.scope.Site.BMC, credentials, o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	p := plan.Build(plan.Input{Scope: s.scope, Kinds: bmc.Kinds(), World: client.Read(s.t.Context(), s.scope, plan.Desired(s.scope, bmc.Kinds()))})
	result := plan.Already()
	s.planned = false
	for _, step := range p.Steps {
		if step.Address.Kind != "credential" {
			continue
		}
		s.planned = true
		var memo plan.Memo
		for range 20 {
			if result = client.Run(s.t.Context(), s.scope, step, memo); result.Outcome != plan.OutcomeWait {
				break
			}
			s.now = s.now.Add(result.After)
			memo = result.Memo
		}
	}
	for _, d := range p.Diagnostics {
		if d.Severity == plan.SeverityError {
			result = plan.Failed(d.Fault)
		}
	}
	_, password, err := credentials.Credential(s.t.Context(), "gpu-001")
	if err == nil && password.Reveal() != oldPassword && !redactor.Holds(password.Reveal()) {
		s.t.Error("a password that was made is not kept out of output")
	}
	return result, password
}

func (s *rotationSite) backend() *secrets.Backend {
	s.t.Helper()
	backend, err := secrets.New(s.keeps, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	return backend
}

// field reads one of the item, "" where there is none.
func (s *rotationSite) field(name string) string {
	ref := plan.SecretRef{Item: "bmc-gpu-001", Field: name}
	values, _ := s.backend().Read(s.t.Context(), []plan.SecretRef{ref}) // a field that is missing is an error and no value
	return values[ref].Reveal()
}

// The vault and the BMC end with the same new password, which Ironic is given with
// its new version; a run that loses an exchange with the vault is finished by the
// next one.
func TestRotationInVault(t *testing.T) {
	for name, fault := range map[string]*exchange.Fault{
		"nothing":        nil,
		"reply lost":     {Kind: exchange.LostReply, Method: http.MethodPost, Times: 1},
		"both lost":      {Kind: exchange.LostReply, Method: http.MethodPost, Times: 2},
		"not reached":    {Kind: exchange.Reset, Method: http.MethodPost, Times: 1},
		"changed by one": {Kind: exchange.Status, Method: http.MethodPost, Times: 1, Status: 400, Body: `{"errors":["check-and-set parameter did not match the current version"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRotationSite(t)
			if fault != nil {
				s.vault.Recorder.Inject(fault)
			}
			var r plan.Result
			var password plan.Secret
			for range 3 {
				r, password = s.run()
				if r.Outcome != plan.OutcomeFailed {
					break
				}
				s.now = s.now.Add(10 * time.Minute)
			}
			if r.Outcome != plan.OutcomeDone && r.Outcome != plan.OutcomeAlready {
				t.Fatal(r.Outcome, r.Fault)
			}
			stored, staged := s.field("password"), s.field("password.staged")
			if stored == oldPassword || staged != "" || s.field("username") != "root" || stored != password.Reveal() || !s.bmc.Accepts("root", password.Reveal()) {
				t.Errorf("the old one: %v, staged: %v, Ironic gets the vault's: %v, the BMC takes it: %v", stored == oldPassword, staged != "", stored == password.Reveal(), s.bmc.Accepts("root", password.Reveal()))
			}
			if s.bmc.PasswordChanges() != 1 {
				t.Errorf("%d changes", s.bmc.PasswordChanges())
			}
			if _, again := s.run(); again.Version != password.Version || again.Reveal() != password.Reveal() {
				t.Errorf("version %s, then %s", password.Version, again.Version)
			}
		})
	}
}
