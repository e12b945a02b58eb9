package main

import (
	"path/filepath"

	"github.com/enroll-dev/enroll/providers/bmc"
)

// restarts keeps which BMCs of a site are to be restarted because their password was
// changed: a file for each device.
type restarts struct {
	notes[bmc.Restart]
	site string
}

func (a *app) restarts(site string) *restarts {
	return &restarts{site: site, notes: notes[bmc.Restart]{dir: filepath.Join(a.stateDir(), "restarts"), warn: a.warn, loss: "the restarts that BMCs need after their password was changed are not remembered; if this run is killed, --force-bmc-restart is up to you"}}
}

// Restart gives that of a device.
func (r *restarts) Restart(device string) bmc.Restart { return r.get(r.path(r.site, device)) }

// Keep changes it.
func (r *restarts) Keep(device string, now bmc.Restart) {
	r.change(r.path(r.site, device), func(bmc.Restart) (bmc.Restart, bool) { return now, now.Due() })
}
