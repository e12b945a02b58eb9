package ironictest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

// provision starts a transition.
func (r *request) provision(n *simNode) answer {
	body, refused := r.target()
	if refused != nil {
		return *refused
	}
	verb := body
	start, legal := r.verbs(n)[verb]
	switch {
	case n.locked():
		// Whether the verb would be legal is only looked at with the lock in hand.
		return locked(n)
	case !legal:
		return fault(http.StatusBadRequest, "The requested action \"%s\" can not be performed on node \"%s\" while it is in state \"%s\".", verb, n.uuid(), n.state())
	}
	start()
	n.verbs = append(n.verbs, verb)
	return answer{status: http.StatusAccepted, body: nil, location: r.server.URL + "/v1/nodes/" + r.path[1] + "/states"}
}

func (r *request) target() (string, *answer) {
	var body struct {
		Target string `json:"target"`
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		a := fault(http.StatusInternalServerError, "Expecting value: line 1 column 1 (char 0)")
		return "", &a
	}
	return body.Target, nil
}

// verbs is the legal part of Ironic's state machine for the node's state. Verbs
// on nodes that a deployment holds are not played here.
func (r *request) verbs(n *simNode) map[string]func() {
	s, now := r.server, r.now
	manageable := func() { n.rest(now, plan.StateManageable) }
	switch n.state() { //nolint:exhaustive // all others have no verb that enrolment uses
	case plan.StateEnroll:
		return map[string]func(){"manage": func() { s.verify(n, now) }}
	case plan.StateManageable:
		return map[string]func(){"inspect": func() { s.inspect(n, now) }, "provide": func() { s.clean(n, now) }}
	case plan.StateInspectFailed:
		return map[string]func(){"manage": manageable, "inspect": func() { s.inspect(n, now) }}
	case plan.StateCleanFailed, plan.StateAdoptFailed, plan.StateAvailable:
		return map[string]func(){"manage": manageable}
	case plan.StateInspectWait:
		return map[string]func(){"abort": func() {
			n.events = nil
			n.set("inspection_started_at", nil)
			s.fail(n, now, plan.StateInspectFailed, plan.StateManageable, "introspection", "Inspection was aborted by request.")
		}}
	case plan.StateCleanWait, plan.StateCleanHold:
		return map[string]func(){"abort": func() {
			n.events = nil
			s.fail(n, now, plan.StateCleanFailed, plan.StateAvailable, "cleaning", "Cleaning operation aborted for node "+n.uuid()+": By request, the clean operation was aborted during or after the completion of clean step")
			n.set("power_state", "power off")
		}}
	}
	return nil
}

// move puts the node into a state on the way to another, with the lock held.
func (n *simNode) move(at time.Time, to, target plan.ProvisionState) {
	n.set("provision_state", string(to))
	n.set("target_provision_state", string(target))
	n.set("provision_updated_at", stamp(at))
	n.set("reservation", conductor)
}

// rest puts the node into a state in which nothing goes on.
func (n *simNode) rest(at time.Time, to plan.ProvisionState) {
	n.move(at, to, "")
	n.set("reservation", nil)
}

// settle reaches the final state; the lock is released a little later, as in
// reality.
func (s *Server) settle(n *simNode, at time.Time, to plan.ProvisionState) {
	n.move(at, to, "")
	s.release(n, at)
}

func (s *Server) release(n *simNode, at time.Time) {
	n.later(at.Add(s.options.Release), func(time.Time) { n.set("reservation", nil) })
}

// fail ends in a failed state, which keeps its target, with last_error and a
// line in the history.
func (s *Server) fail(n *simNode, at time.Time, to, target plan.ProvisionState, what, text string) {
	n.move(at, to, target)
	n.set("last_error", text)
	n.history = append(n.history, map[string]any{
		"uuid": s.newUUID(sortHistory), "created_at": stamp(at), "severity": "ERROR", "event": text, "event_type": what, "conductor": conductor, "user": nil,
	})
	s.release(n, at)
}

// verify asks whether the BMC is reachable. A failure is no error of the
// request: the node falls back to enroll.
func (s *Server) verify(n *simNode, now time.Time) {
	n.set("last_error", nil)
	n.move(now, plan.StateVerifying, plan.StateManageable)
	n.later(now.Add(s.options.Durations.Verify), func(at time.Time) {
		info, _ := n.fields["driver_info"].(map[string]any)
		if s.options.Verify != nil {
			if err := s.options.Verify(info); err != nil {
				s.fail(n, at, plan.StateEnroll, "", "verify", "Failed to get power state for node "+n.uuid()+". Error: "+err.Error())
				return
			}
		}
		if n.text("power_state") == "" && n.text("power_interface") != "fake" {
			n.set("power_state", "power off")
		}
		s.settle(n, at, plan.StateManageable)
	})
}

// inspect boots the ramdisk and stores what it posts. With the interface fake
// there is nothing to post, and nothing is stored.
func (s *Server) inspect(n *simNode, now time.Time) {
	n.set("last_error", nil)
	n.set("inspection_started_at", stamp(now))
	n.set("inspection_finished_at", nil)
	n.move(now, plan.StateInspecting, plan.StateManageable)
	if n.text("inspect_interface") == "fake" {
		n.later(now.Add(s.options.Inspect), func(at time.Time) { s.inspectionDone(n, at) })
		return
	}
	n.later(now.Add(s.options.Inspect/4), func(at time.Time) {
		n.move(at, plan.StateInspectWait, plan.StateManageable)
		n.set("reservation", nil)
		s.setPower(n, "power on")
		n.later(at.Add(s.options.Inspect-s.options.Inspect/4), func(at time.Time) {
			var data json.RawMessage
			ok := false
			if s.options.Inventory != nil {
				data, ok = s.options.Inventory(s.view(n))
			}
			if !ok {
				n.set("inspection_started_at", nil)
				s.fail(n, at, plan.StateInspectFailed, plan.StateManageable, "introspection", "Timeout reached while inspecting the node")
				return
			}
			n.inventory = data
			s.inspectionDone(n, at)
		})
	})
}

func (s *Server) inspectionDone(n *simNode, at time.Time) {
	n.set("inspection_started_at", nil)
	n.set("inspection_finished_at", stamp(at))
	if n.losePXE {
		for _, p := range s.ports {
			if p.text("node_uuid") == n.uuid() {
				p.fields["pxe_enabled"] = false
			}
		}
	}
	if s.options.PowerOffAfterInspection {
		s.setPower(n, "power off")
	}
	s.settle(n, at, plan.StateManageable)
}

// clean erases and makes available. A node in maintenance with a ramdisk stays
// in clean wait for ever: its heartbeats are ignored.
func (s *Server) clean(n *simNode, now time.Time) {
	n.set("last_error", nil)
	n.move(now, plan.StateCleaning, plan.StateAvailable)
	if n.fields["automated_clean"] == false {
		n.later(now, func(at time.Time) { s.settle(n, at, plan.StateAvailable) })
		return
	}
	done := func(at time.Time) {
		if n.failClean != "" {
			s.fail(n, at, plan.StateCleanFailed, plan.StateAvailable, "cleaning", n.failClean)
			n.set("maintenance", true)
			n.set("maintenance_reason", n.failClean)
			n.set("fault", "clean failure")
			return
		}
		s.settle(n, at, plan.StateAvailable)
	}
	if n.text("deploy_interface") == "fake" {
		n.later(now.Add(s.options.Clean), done)
		return
	}
	n.later(now.Add(s.options.Clean/4), func(at time.Time) {
		n.move(at, plan.StateCleanWait, plan.StateAvailable)
		n.set("reservation", nil)
		s.setPower(n, "power on")
		if n.fields["maintenance"] == true {
			return
		}
		n.later(at.Add(s.options.Clean/2), func(at time.Time) {
			n.move(at, plan.StateCleaning, plan.StateAvailable)
			n.later(at.Add(s.options.Clean-s.options.Clean/4-s.options.Clean/2), func(at time.Time) {
				s.setPower(n, "power off")
				done(at)
			})
		})
	})
}

func (s *Server) setPower(n *simNode, state string) {
	n.set("power_state", state)
	if s.options.OnPower != nil {
		s.options.OnPower(s.view(n))
	}
}

// power starts a power change. Cleaning refuses it, whoever has the lock.
func (r *request) power(n *simNode) answer {
	target, refused := r.target()
	if refused != nil {
		return *refused
	}
	to := map[string]string{
		"power on": "power on", "power off": "power off", "rebooting": "power on", "soft power off": "power off", "soft rebooting": "power on",
	}[target]
	shown := n.text("power_state")
	if state := string(n.state()); strings.HasPrefix(state, "clean") && n.state() != plan.StateCleanFailed {
		shown, to = state, ""
	}
	switch {
	case to == "":
		return fault(http.StatusBadRequest, "The requested action \"%s\" can not be performed on node \"%s\" while it is in state \"%s\".", target, r.path[1], shown)
	case n.locked():
		return locked(n)
	}
	n.set("target_power_state", to)
	n.set("reservation", conductor)
	n.set("last_error", nil)
	n.later(r.now.Add(r.server.options.Power), func(at time.Time) {
		n.set("target_power_state", nil)
		r.server.setPower(n, to)
		r.server.release(n, at)
	})
	return answer{status: http.StatusAccepted, body: nil, location: r.server.URL + "/v1/nodes/" + r.path[1] + "/states"}
}
