package main

import (
	"context"
	"errors"

	"github.com/enroll-dev/enroll/plan"
	"github.com/enroll-dev/enroll/providers"
	"github.com/enroll-dev/enroll/providers/bmc"
	"github.com/enroll-dev/enroll/providers/secrets"
)

// rotator gives the backend as one in which a reference can be written, nil when it
// cannot.
func (v *vault) rotator(ctx context.Context, ref plan.SecretRef) providers.Rotator {
	r, ok := v.backend.(interface {
		providers.Rotator
		Writable(ctx context.Context, ref plan.SecretRef) bool
	})
	if !ok || !r.Writable(ctx, ref) {
		return nil
	}
	return r
}

// writer is rotator, or why there is none.
func (v *vault) writer(ctx context.Context, ref plan.SecretRef) (providers.Rotator, error) {
	if r := v.rotator(ctx, ref); r != nil {
		return r, nil
	}
	return nil, plan.NewFault(plan.CodeSecretDenied, "%s can only be read", ref)
}

// optional reads a reference that may not be there; zero where it is not. It is
// asked for anew each time: another run may have staged or published it.
func (v *vault) optional(ctx context.Context, ref plan.SecretRef) (plan.Secret, error) {
	if ref.IsZero() {
		return plan.Secret{}, nil
	}
	values, err := v.backend.Read(ctx, []plan.SecretRef{ref})
	if errors.Is(err, plan.CodeSecretMissing) {
		return plan.Secret{}, nil
	}
	if err == nil {
		v.redactor.Add(values[ref])
	}
	return values[ref], err
}

// renew takes the value of a reference that was published.
func (v *vault) renew(ref plan.SecretRef, value plan.Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values[ref] = value
}

// Passwords gives what a device's BMC may take beside the host's credential.
func (h hostCredentials) Passwords(ctx context.Context, device string) (bmc.Passwords, error) {
	t := h.scope.Target(device)
	p := bmc.Passwords{ReadOnly: h.vault.rotator(ctx, t.Settings.BMCPassword) == nil, FactoryRef: t.Settings.BMCFactory, StagedRef: secrets.Staged(t.Settings.BMCPassword)}
	var err error
	if p.Factory, err = h.vault.optional(ctx, t.Settings.BMCFactory); err != nil || p.ReadOnly {
		return p, err
	}
	p.Staged, err = h.vault.optional(ctx, p.StagedRef)
	return p, err
}

// Stage stores the next password of a device's BMC beside the current one.
func (h hostCredentials) Stage(ctx context.Context, device string, next plan.Secret) error {
	h.vault.redactor.Add(next)
	w, err := h.vault.writer(ctx, h.Ref(device))
	if err != nil {
		return err
	}
	_, err = w.Stage(ctx, h.Ref(device), next)
	return err
}

// Publish makes the staged password of a device's BMC the current one. An earlier
// try of which only the answer was lost is found done.
func (h hostCredentials) Publish(ctx context.Context, device string) error {
	ref := h.Ref(device)
	to := secrets.Staged(ref)
	next, err := h.vault.optional(ctx, to)
	if err != nil {
		return err
	}
	if next.Reveal() != "" {
		w, err := h.vault.writer(ctx, ref)
		if err != nil {
			return err
		}
		version, err := w.Publish(ctx, plan.StagedSecret{Ref: ref, Staged: to, Version: next.Version})
		if err != nil {
			return err
		}
		h.vault.renew(ref, plan.NewSecret(next.Reveal(), version))
		return nil
	}
	current, err := h.vault.optional(ctx, ref)
	if err != nil {
		return err
	}
	known, err := h.vault.get(ref)
	if err != nil {
		return err
	}
	if current.Version == known.Version {
		return plan.NewFault(plan.CodeSecretConflict, "the staged password of %s is gone", ref).WithHint("Find out who removed it: the BMC may have it.")
	}
	h.vault.renew(ref, current)
	return nil
}
