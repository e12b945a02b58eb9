package bmctest

import (
	"net/http"
	"strings"
	"time"
)

// hostState is the server behind the BMC.
type hostState struct {
	powered bool
	booting time.Time // until then it is in POST
	resets  int       // how often it was reset or switched on
	last    time.Time // when that was
}

func (b *BMC) inPOST() bool { return b.host.powered && b.now().Before(b.host.booting) }

// boot starts the host. What waits for a boot takes effect when POST is over.
func (b *BMC) boot() {
	b.host.powered = true
	b.host.resets++
	b.host.last = b.now()
	b.host.booting = b.now().Add(b.machine.Profile.BootTime)
	b.startJobs()
	b.late = append(b.late, lateChange{at: b.host.booting, apply: b.applyPending})
}

// applyPending is what the BIOS does at a boot with what was stored for it.
func (b *BMC) applyPending() {
	b.endJobs()
	if b.machine.Vendor != IDRAC { // an iDRAC's jobs apply
		b.applyBIOS()
		b.applyBoot()
	}
}

// action answers a POST.
type action func(w http.ResponseWriter, body object)

func (b *BMC) actionAt(path string) action {
	switch path {
	case b.systemPath() + "/Actions/ComputerSystem.Reset":
		return b.resetHost
	case b.managerPath() + "/Actions/Manager.Reset":
		return b.resetManager
	case accountsPath:
		if b.machine.Vendor != IDRAC && !b.machine.Profile.NoAccounts {
			return b.createAccount
		}
		return nil
	}
	if b.maker.action != nil {
		return b.maker.action(b, path)
	}
	return nil
}

func resetTypes() []any {
	return []any{"On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"}
}

func allowed(list []any, v string) bool {
	for _, item := range list {
		if item == v {
			return true
		}
	}
	return false
}

func (b *BMC) parameterError(w http.ResponseWriter, name string) {
	b.refuse(w, http.StatusBadRequest, b.base("ActionParameterNotSupported"), "The parameter "+name+" for the action is not supported on the target resource.", "Use an allowable value.")
}

func (b *BMC) resetHost(w http.ResponseWriter, body object) {
	kind, _ := body["ResetType"].(string)
	if !allowed(resetTypes(), kind) || kind == "GracefulRestart" && b.machine.Profile.NoGracefulRestart {
		b.parameterError(w, "ResetType")
		return
	}
	off := kind == "ForceOff" || kind == "GracefulShutdown"
	if b.machine.Vendor == IDRAC && (off && !b.host.powered || kind == "On" && b.host.powered) {
		b.refuse(w, http.StatusConflict, "IDRAC.2.8.PSU501", "Server is already powered "+strings.ToUpper(power(b.host.powered))+".", "No response action is required.")
		return
	}
	if b.machine.Vendor == AMI && (off && !b.host.powered || kind == "On" && b.host.powered) {
		b.refuse(w, http.StatusBadRequest, b.base("ActionNotSupported"), "The action is not supported in this state.", "Use another action.")
		return
	}
	switch {
	case kind == "Nmi" || (kind == "On" || kind == "PushPowerButton") && b.host.powered:
	case off:
		b.host.powered = false
	case kind == "GracefulRestart" && b.machine.Profile.NoOS: // nobody hears the button
	case kind == "GracefulRestart" && b.machine.Profile.Shutdown > 0:
		b.late = append(b.late, lateChange{at: b.now().Add(b.machine.Profile.Shutdown), apply: b.boot})
	default:
		b.boot()
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *BMC) resetManager(w http.ResponseWriter, body object) {
	kind, _ := body["ResetType"].(string)
	if !allowed(b.maker.managerResets, kind) {
		b.parameterError(w, "ResetType")
		return
	}
	b.restarts++
	b.lcPolls = b.machine.Profile.LCPolls
	b.sessions = map[string]*session{}
	p := b.machine.Profile
	b.away, b.warming = b.now().Add(p.RestartTime), b.now().Add(p.RestartTime+p.WarmupTime)
	b.late = append(b.late, lateChange{at: b.away, apply: func() {}})
	if p.NewCertificate {
		b.renewCertificate()
	}
	w.WriteHeader(http.StatusNoContent)
}

// Resets is how often the host was reset or switched on.
func (b *BMC) Resets() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host.resets
}

// Restarts is how often the BMC itself was reset.
func (b *BMC) Restarts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.restarts
}

// ResetHost is somebody else's reset of the host.
func (b *BMC) ResetHost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	b.boot()
}

// Powered tells whether the host is on.
func (b *BMC) Powered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host.powered
}

func power(on bool) string {
	if on {
		return "On"
	}
	return "Off"
}
