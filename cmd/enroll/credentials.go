package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// vault reads references once per run and tells the redactor every value
// before anybody else sees it.
type vault struct {
	backend  providers.Secrets
	redactor *secrets.Redactor

	mu     sync.Mutex
	values map[plan.SecretRef]plan.Secret
	// open are references to what is kept in the vault and is no secret: user
	// names, host keys. Hiding them would hide every "root" in a plan.
	open map[plan.SecretRef]bool
}

// backend makes the site's secrets backend. Whatever credential it uses itself is
// known to the redactor before it is sent anywhere.
func (a *app) backend(site *plan.Site) (*secrets.Backend, error) {
	if site.Secrets.Backend == "env" && !a.inLab() {
		a.warn(errors.New(`secrets "env" is for laboratories: every program that this user starts can read these secrets. Use another backend for a real site`))
	}
	return secrets.New(site.Secrets, secrets.Options{
		Getenv: a.sys.lookupEnv, UserAgent: "enroll/" + version, Learn: a.redactor.Add,
		Warn: func(sentence string) { a.warn(errors.New(sentence)) },
	})
}

// labVariable is set in the environment of a laboratory: the files that `enroll
// lab run` and the lab of real services write for the shell have it, beside the
// addresses and secrets of that lab.
const labVariable = "ENROLL_LAB"

func (a *app) inLab() bool {
	value, set := a.sys.lookupEnv(labVariable)
	return set && value != ""
}

func newVault(backend providers.Secrets, redactor *secrets.Redactor) *vault {
	return &vault{backend: backend, redactor: redactor, values: map[plan.SecretRef]plan.Secret{}, open: map[plan.SecretRef]bool{}}
}

// Close lets go of the backend's connections.
func (v *vault) Close(ctx context.Context) error {
	if c, ok := v.backend.(providers.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

// show marks references whose values may be printed. It is called before load.
func (v *vault) show(refs ...plan.SecretRef) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range refs {
		v.open[r] = true
	}
}

// load resolves the references that are not known yet, in one batch.
func (v *vault) load(ctx context.Context, refs []plan.SecretRef) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var missing []plan.SecretRef
	asked := map[plan.SecretRef]bool{}
	for _, r := range refs {
		if _, known := v.values[r]; !known && !r.IsZero() && !asked[r] {
			asked[r] = true
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	values, err := v.backend.Read(ctx, missing)
	for r, s := range values {
		if !v.open[r] {
			v.redactor.Add(s)
		}
		v.values[r] = s
	}
	return err
}

// get gives a value that load resolved.
func (v *vault) get(r plan.SecretRef) (plan.Secret, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.values[r]
	if !ok {
		return plan.Secret{}, plan.NewFault(plan.CodeSecretMissing, "%s was not read from the vault", r)
	}
	return s, nil
}

// hostCredentials are the per-host BMC credentials that both the BMC client and
// Ironic use. The shared monitoring user is never among them.
type hostCredentials struct {
	vault *vault
	scope *plan.Scope
}

// Credential gives the user name and password of a device's BMC.
func (h hostCredentials) Credential(ctx context.Context, device string) (string, plan.Secret, error) {
	t := h.scope.Target(device)
	if t == nil {
		return "", plan.Secret{}, fmt.Errorf("device %s is not in scope", device)
	}
	h.vault.show(t.Settings.BMCUsername)
	if err := h.vault.load(ctx, []plan.SecretRef{t.Settings.BMCUsername, t.Settings.BMCPassword}); err != nil {
		return "", plan.Secret{}, err
	}
	user, err := h.vault.get(t.Settings.BMCUsername)
	if err != nil {
		return "", plan.Secret{}, err
	}
	password, err := h.vault.get(t.Settings.BMCPassword)
	return user.Reveal(), password, err
}

// Monitoring gives the account that monitoring uses on all BMCs of the site.
func (h hostCredentials) Monitoring(ctx context.Context) (string, plan.Secret, error) {
	b := h.scope.Site.BMC
	h.vault.show(b.MonitoringUser)
	if err := h.vault.load(ctx, []plan.SecretRef{b.MonitoringUser, b.Monitoring}); err != nil {
		return "", plan.Secret{}, err
	}
	user, err := h.vault.get(b.MonitoringUser)
	if err != nil {
		return "", plan.Secret{}, err
	}
	password, err := h.vault.get(b.Monitoring)
	return user.Reveal(), password, err
}

// Ref names the device's password for display.
func (h hostCredentials) Ref(device string) plan.SecretRef {
	if t := h.scope.Target(device); t != nil {
		return t.Settings.BMCPassword
	}
	return plan.SecretRef{}
}
