package bmc

import (
	"sync"
	"time"
)

// Restarts is what outlives a run of the restarts that changed passwords ask for: no
// BMC shows that one is due. Neither method fails: a run whose memory is gone goes
// on as one that has none.
type Restarts interface {
	// Restart gives that of a device; the zero value where none is due.
	Restart(device string) Restart
	// Keep changes it; the zero value ends it.
	Keep(device string, r Restart)
}

// Restart is what a BMC is due whose password was changed.
type Restart struct {
	Since time.Time `json:"since"`          // when the password was about to be changed
	Asked time.Time `json:"asked,omitzero"` // when the BMC was told to restart, and agreed; whether it is ready again is not known
}

// Due tells that there is one.
func (r Restart) Due() bool { return !r.Since.IsZero() }

// ownRestarts are remembered in this run only.
type ownRestarts struct {
	mu  sync.Mutex
	all map[string]Restart
}

func (o *ownRestarts) Restart(device string) Restart {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[device]
}

func (o *ownRestarts) Keep(device string, r Restart) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[device] = r
}

// oweRestart remembers, before a password is changed, that the BMC has to restart
// after it; what it owes already stays. A BMC that shows nothing before it has another
// password may be of any family: what that turns out to be is judged in due.
func (k *conn) oweRestart() (first bool) {
	if k.family.name != "" && !k.family.resets || k.client.opt.Restarts.Restart(k.device).Due() {
		return false
	}
	k.keepRestart(Restart{Since: k.client.opt.Now().UTC()})
	return true
}

func (k *conn) keepRestart(r Restart) { k.client.opt.Restarts.Keep(k.device, r) }

// dueRestart is what the BMC owes; one of a family that needs none owes nothing.
func (k *conn) dueRestart() Restart {
	r := k.client.opt.Restarts.Restart(k.device)
	if r.Due() && !k.family.resets {
		r = Restart{}
		k.keepRestart(r)
	}
	return r
}
