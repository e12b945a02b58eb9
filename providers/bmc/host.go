package bmc

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// What a step remembers about the reset of the host that it waits for.
const (
	memoStaged = "staged" // when all was stored that waits for a boot
	memoReset  = "reset"  // when the host was reset
	memoType   = "reset_type"
	memoLast   = "last"  // LastResetTime before it
	memoLost   = "lost"  // the BMC did not answer it
	memoBegun  = "begun" // the host was seen to boot since
)

const gracefulRestart = "GracefulRestart"

// The pauses around a reset.
const (
	gatherPause = 2 * time.Second  // lets the device's other steps store theirs
	bootPause   = 15 * time.Second // between looks at a host that boots
	// gracefulWait is how long a host may take to obey the power button before it
	// is reset the hard way.
	gracefulWait = 5 * time.Minute
	// lostWait is how long a host may take to begin to boot after it was reset the
	// hard way.
	lostWait = 2 * time.Minute
	// bootGuess is how long a boot lasts at most on a BMC that does not tell how far
	// the host is.
	bootGuess = 10 * time.Minute
)

// host is what a BMC tells about the server at one moment.
type host struct {
	system  document
	on      bool
	booting bool   // in POST
	told    bool   // the BMC tells whether the host is in POST
	os      bool   // an operating system runs
	last    string // LastResetTime
}

// host looks at the host, and at AMI's BIOS inventory, which tells the end of POST.
func (k *conn) host(ctx context.Context) (host, *plan.Fault) {
	d, fault := k.get(ctx, k.tree.system.path)
	if fault != nil {
		return host{}, fault
	}
	k.tree.system, k.tree.fresh = d, true
	h := host{system: d, on: d.text("PowerState") != "Off" && d.text("PowerState") != "PoweringOff", last: d.text("LastResetTime")}
	switch state := d.text("BootProgress", "LastState"); state {
	case "", k.family.lastProgress:
	case "OSRunning", "OSBootStarted":
		h.told, h.os = true, state == "OSRunning"
	case "None", "SetupEntered":
		h.told = true
	default:
		h.told, h.booting = true, h.on
	}
	if status := d.text("Oem", "Lenovo", "SystemStatus"); status != "" && !h.told {
		h.told = true
		h.os = strings.Contains(status, "OSBooted") || strings.Contains(status, "BootingOSOrInUndetectedOS")
		h.booting = h.on && strings.Contains(status, "Starting")
	}
	if inventory := k.tree.root.link("Oem", "Ami", "InventoryDataStatus"); inventory != "" {
		s, fault := k.get(ctx, inventory)
		if fault != nil && !isCode(fault, plan.CodeBMCUnsupported) {
			return h, fault
		}
		if word := s.text("InventoryData", "Status"); word != "" {
			h.told, h.booting = true, h.on && word != "Completed"
		}
	}
	return h, nil
}

// resetTypes are those that the BMC takes for its host.
func (k *conn) resetTypes(ctx context.Context, d document, action string) (target string, types []string, fault *plan.Fault) {
	target = d.text("Actions", action, "target")
	if target == "" {
		return "", nil, k.lacks(d, "action "+action)
	}
	types = d.list("Actions", action, "ResetType@Redfish.AllowableValues")
	info := d.text("Actions", action, "@Redfish.ActionInfo")
	if len(types) > 0 || info == "" {
		return target, types, nil
	}
	a, fault := k.get(ctx, info)
	if isCode(fault, plan.CodeBMCUnsupported) {
		return target, nil, nil
	}
	if fault != nil {
		return "", nil, fault
	}
	parameters, _ := a.at("Parameters")
	list, _ := parameters.([]any)
	for _, item := range list {
		p, _ := item.(map[string]any)
		if p["Name"] == "ResetType" {
			return target, document{top: p}.list("AllowableValues"), nil
		}
	}
	return target, nil, nil
}

// reboot takes a step that has stored all it wants through the one reset of its
// device: first it lets the others store theirs, then it resets the host with
// the mildest type that works, unless another reset came meanwhile. nil means
// that the host was reset since and is past POST: the caller looks at its value.
func (k *conn) reboot(ctx context.Context, h host, memo plan.Memo, what string) *plan.Result {
	now := k.client.opt.Now()
	staged := memoTime(memo, memoStaged)
	if staged.IsZero() {
		memo[memoStaged] = now.Format(time.RFC3339Nano)
		return waiting(gatherPause, what+"; the host is reset next", memo)
	}
	reset := memoTime(memo, memoReset)
	if reset.IsZero() && k.lastReset.at.After(staged) { // for another step of the device
		reset = k.lastReset.at
		k.lastReset.into(memo)
	}
	if reset.IsZero() {
		if h.booting {
			return waiting(bootPause, "the host boots; it is not reset meanwhile", memo)
		}
		return k.reset(ctx, h, memo, what)
	}
	since := now.Sub(reset)
	if h.booting || !h.on && since < lostWait {
		memo[memoBegun] = "yes"
	}
	begun := memo[memoBegun] != "" || h.last != "" && h.last != memo[memoLast]
	switch {
	case h.booting, !h.on && since < lostWait, !h.told && since < bootGuess:
		return waiting(bootPause, "the host boots", memo)
	case !h.told, begun:
		return nil
	case memo[memoType] == gracefulRestart && since < gracefulWait, memo[memoType] != gracefulRestart && since < lostWait:
		return waiting(bootPause, "the host was told to restart and has not begun", memo)
	case memo[memoType] == gracefulRestart: // nobody obeyed
		memo[memoReset] = ""
		return k.reset(ctx, host{system: h.system, on: h.on, last: h.last}, memo, what)
	case memo[memoLost] != "":
		k.lastReset = hostReset{}
		return failedWith(k.fault(plan.CodeBMCUnreachable, request{method: http.MethodPost, path: k.tree.system.path}, "the BMC of %s did not answer the reset of its host, and the host was not reset", k.device).With("last_reset", h.last))
	}
	return nil // a BMC that does not show its resets; the value tells
}

// hostReset is a reset of the host by this process.
type hostReset struct {
	at         time.Time
	kind, last string // ResetType; LastResetTime before it
	lost       bool   // the BMC did not answer it
}

// into notes the reset for a step.
func (r hostReset) into(memo plan.Memo) {
	memo[memoReset], memo[memoType], memo[memoLast], memo[memoLost], memo[memoBegun] = r.at.Format(time.RFC3339Nano), r.kind, r.last, "", ""
	if r.lost {
		memo[memoLost] = "yes"
	}
}

func (k *conn) reset(ctx context.Context, h host, memo plan.Memo, what string) *plan.Result {
	const action = "#ComputerSystem.Reset"
	target, types, fault := k.resetTypes(ctx, h.system, action)
	if fault != nil {
		return failedWith(fault)
	}
	kind := mildest(h, types)
	if kind == "" {
		return failedWith(k.lacks(h.system, "way to restart the host; it takes "+strings.Join(types, ", ")))
	}
	ans, fault := k.ask(ctx, http.MethodPost, target, map[string]any{"ResetType": kind})
	done := hostReset{at: k.client.opt.Now(), kind: kind, last: h.last}
	switch {
	case fault != nil && ans != nil && ans.status == http.StatusConflict:
		return waiting(bootPause, "the host takes no reset just now", memo)
	case isCode(fault, plan.CodeBMCUnreachable):
		// It may have arrived. Counting it as sent keeps a second one from a host that
		// boots; one that shows no sign of it is reset again by the next try.
		if ans == nil && !k.answered {
			return failedWith(fault)
		}
		done.lost = true
	case fault != nil:
		return failedWith(fault)
	}
	k.lastReset = done
	done.into(memo)
	return waiting(bootPause, what+"; the host was told to restart ("+kind+")", memo)
}

// mildest is the type of reset that does the least and works: a host that is off
// is switched on, one with an operating system is asked, one without cannot hear.
func mildest(h host, types []string) string {
	order := []string{"ForceRestart", "PowerCycle"}
	if h.os {
		order = []string{gracefulRestart, "ForceRestart", "PowerCycle"}
	}
	if !h.on {
		order = []string{"On", "ForceOn"}
	}
	if len(types) == 0 { // not told: these two every BMC knows
		if !h.on {
			return "On"
		}
		return "ForceRestart"
	}
	for _, t := range order {
		if slices.Contains(types, t) {
			return t
		}
	}
	return ""
}

func waiting(after time.Duration, observed string, memo plan.Memo) *plan.Result {
	r := plan.Wait(after, observed, memo)
	return &r
}

func failedWith(f *plan.Fault) *plan.Result {
	r := plan.Failed(f)
	return &r
}

func memoTime(memo plan.Memo, key string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, memo[key])
	if err != nil {
		return time.Time{}
	}
	return t
}
