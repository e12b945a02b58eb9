package schema

import (
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/enroll-dev/enroll/plan"
)

func (r *reporter) limits(b *rawBlock) plan.Limits {
	l := plan.Limits{
		Devices: get[int](b, "devices"), RequestsPerBMC: get[int](b, "requests_per_bmc"),
		Reboots: get[int](b, "reboots"), RebootsPerRack: get[int](b, "reboots_per_rack"), DHCPBatch: get[int](b, "dhcp_batch"),
	}
	rack, site := b.attr("reboots_per_rack"), b.attr("reboots")
	switch {
	case l.RebootsPerRack <= l.Reboots || l.Reboots == 0:
	case rack != nil && rack.value != nil:
		r.error(rack.expr.Range(), "Contradiction", "reboots_per_rack is larger than reboots (%d), so it limits nothing. Write a number that is not larger.", l.Reboots)
	case site != nil && site.value != nil:
		l.RebootsPerRack = l.Reboots // the default follows
	}
	return l
}

func verification(b *rawBlock) plan.Verification {
	ignored := func(name string) map[string][]string {
		var out map[string][]string
		for _, n := range b.named(name) {
			if out == nil {
				out = map[string][]string{}
			}
			out[n.label] = get[[]string](n, "ignore")
		}
		return out
	}
	return plan.Verification{PortNames: ignored("port_names"), SwitchNames: ignored("switch_names")}
}

// dhcpUnit is the unit's name in the packages of Debian and its kin.
func dhcpUnit(service string) string {
	switch service {
	case "kea":
		return "kea-dhcp4-server"
	case "isc":
		return "isc-dhcp-server"
	}
	return service
}

// checkService says early what the provider will refuse.
func (r *reporter) checkService(b *rawBlock, s *plan.DHCPSettings) {
	config := b.attr("config")
	switch s.Service {
	case "":
	case "dnsmasq":
		if config != nil {
			r.error(config.at, "Contradiction", "config has no effect with service = \"dnsmasq\", which reads its folder by itself. Remove it.")
		}
	default:
		if s.Config == "" {
			s.Config = map[string]string{"kea": "/etc/kea/kea-dhcp4.conf", "isc": "/etc/dhcp/dhcpd.conf"}[s.Service]
		}
		r.warn(b.attr("service").expr.Range(), "Not served by this version", "The DHCP server %s is part of the language, and what is written about it was checked. This version serves \"dnsmasq\": with configure_dhcp = true it refuses to plan.", quote(s.Service))
	}
}

// checkDurations refuses budgets that cannot hold what they are for.
func (r *reporter) checkDurations(b *rawBlock, s plan.IronicSettings) {
	lock := inner(b, "node_lock")
	if backoff := lock.attr("backoff"); backoff != nil && backoff.value != nil && s.LockMaxWait > 0 && s.LockBackoffMax > s.LockMaxWait {
		r.error(backoff.expr.Range(), "Durations contradict each other", "The longest pause (%s) is longer than the budget of all pauses together, max_wait (%s). Write a shorter pause or a longer budget.", shortDuration(s.LockBackoffMax), shortDuration(s.LockMaxWait))
	} else if wait := lock.attr("max_wait"); wait != nil && wait.value != nil && backoff == nil && s.LockBackoffMin > s.LockMaxWait {
		r.error(wait.expr.Range(), "Durations contradict each other", "The budget of all pauses together is shorter than the first pause, backoff (%s unless it is set). Write a longer budget, or set backoff too.", shortDuration(s.LockBackoffMin))
	}
	for _, deadline := range []struct {
		name  string
		value time.Duration
	}{{"cleaning_deadline", s.CleaningDeadline}, {"inspection_deadline", s.InspectDeadline}} {
		a, timeout := b.attr(deadline.name), b.attr("timeout")
		if deadline.value == 0 || s.Timeout <= deadline.value {
			continue
		}
		at := a
		if at == nil || at.value == nil {
			at = timeout
		}
		if at != nil && at.value != nil {
			r.error(at.expr.Range(), "Durations contradict each other", "One request may take longer (timeout, %s) than all of it (%s, %s). Write a shorter timeout or a longer deadline.", shortDuration(s.Timeout), deadline.name, shortDuration(deadline.value))
		}
	}
}

// shortDuration writes a duration as people do: 90s is 1m30s, 1h0m0s is 1h.
func shortDuration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// sayUnused warns once about everything that is set and not acted on.
func (r *reporter) sayUnused(site *rawBlock) {
	unused := unusedBelow(site, nil)
	if len(unused) == 0 {
		return
	}
	first := unused[0]
	var paths []string
	for _, u := range unused {
		paths = append(paths, u.path)
		if u.at.Filename == first.at.Filename && u.at.Start.Byte < first.at.Start.Byte {
			first = u
		}
	}
	sort.Strings(paths)
	r.warn(first.at, "Not used by this version", "These settings were checked, and this version of enroll does nothing with them: %s.", strings.Join(paths, ", "))
}

// unusedSetting is an attribute, or a whole block, that nothing acts on.
type unusedSetting struct {
	path string
	at   hcl.Range
}

func unusedBelow(b *rawBlock, out []unusedSetting) []unusedSetting {
	if b.spec.unused {
		return append(out, unusedSetting{b.path, b.at})
	}
	for _, a := range b.attrs {
		if a.spec != nil && a.spec.unused && a.value != false { // a switch that is off asks for nothing
			out = append(out, unusedSetting{a.path, a.at})
		}
	}
	for _, child := range b.blocks {
		out = unusedBelow(child, out)
	}
	return out
}
