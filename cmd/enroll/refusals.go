package main

import (
	"path/filepath"

	"github.com/enroll-dev/enroll/providers/bmc"
)

// refusals keeps which logins BMCs refused: a file for each BMC.
type refusals struct{ notes[[]bmc.Refusal] }

func newRefusals(dir string, warn func(error)) *refusals {
	return &refusals{notes[[]bmc.Refusal]{dir: dir, warn: warn, loss: "the logins that BMCs refuse are not remembered; too many runs in a row may lock an account"}}
}

func (a *app) refusals() *refusals {
	return newRefusals(filepath.Join(a.stateDir(), "refusals"), a.warn)
}

// Refused gives what is remembered of a BMC.
func (r *refusals) Refused(address string) []bmc.Refusal { return r.get(r.path(address)) }

// Place is its file.
func (r *refusals) Place(address string) string { return r.path(address) }

// Update changes it.
func (r *refusals) Update(address string, change func([]bmc.Refusal) []bmc.Refusal) {
	r.change(r.path(address), func(list []bmc.Refusal) ([]bmc.Refusal, bool) {
		list = change(list)
		return list, len(list) > 0
	})
}
