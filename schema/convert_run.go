package schema

import (
	"strings"
	"time"

	"github.com/enroll-dev/enroll/plan"
)

func (r *reporter) limits(b *rawBlock) plan.Limits {
	l := plan.Limits{
		Devices: get[int](b, "devices"), RequestsPerBMC: get[int](b, "requests_per_bmc"),
		Reboots: get[int](b, "reboots"), RebootsPerRack: get[int](b, "reboots_per_rack"), DHCPBatch: get[int](b, "dhcp_batch"),
	}
	rack := b.attr("reboots_per_rack")
	switch {
	case l.RebootsPerRack <= l.Reboots || l.Reboots == 0:
	case isSet(b, "reboots_per_rack") && isSet(b, "reboots"):
		r.error(rack.expr.Range(), "Contradiction", "reboots_per_rack is larger than reboots (%d), so it limits nothing. Write a number that is not larger.", l.Reboots)
	case isSet(b, "reboots"): // defaults follow what is written
		l.RebootsPerRack = l.Reboots
	default:
		l.Reboots = l.RebootsPerRack
	}
	return l
}

// isSet reports whether an attribute is written, and not wrong.
func isSet(b *rawBlock, name string) bool {
	a := b.attr(name)
	return a != nil && a.value != nil
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
func dhcpUnit(service string, v6 bool) string {
	switch {
	case service == "kea" && v6:
		return "kea-dhcp6-server"
	case service == "kea":
		return "kea-dhcp4-server"
	case service == "isc": // one unit for both families
		return "isc-dhcp-server"
	}
	return service
}

// checkService refuses what a kind of server does not have, and fills in where
// its configuration stands.
func (r *reporter) checkService(b *rawBlock, s *plan.DHCPSettings) {
	contradiction := func(name, format string, args ...any) {
		if a := b.attr(name); a != nil {
			r.error(a.at, "Contradiction", format, args...)
		}
	}
	family := "4"
	if s.IPv6 {
		family = "6"
	}
	configs := map[string]string{"kea": "/etc/kea/kea-dhcp" + family + ".conf", "isc": "/etc/dhcp/dhcpd.conf", "dnsmasq": "/etc/dnsmasq.conf"}
	if s.Service == "isc" && s.IPv6 {
		configs["isc"] = "/etc/dhcp/dhcpd6.conf"
	}
	if s.Config == "" {
		s.Config = configs[s.Service]
	}
	if s.Service == "isc" && s.Apply == "reload" {
		contradiction("apply", "dhcpd cannot reload its configuration. Write apply = \"restart\", or leave it out.")
	}
	if s.Service == "isc" || s.Service == "dnsmasq" {
		contradiction("control", "control has no effect with service = %s: Kea alone takes commands. Remove it.", quote(s.Service))
	}
	if s.Service == "dnsmasq" {
		if s.IPv6 {
			contradiction("family", "DHCPv6 is served with service = \"kea\" and \"isc\", not with dnsmasq. Write another service, or leave family out.")
		}
		for _, o := range b.named("option") {
			r.error(o.at, "Contradiction", "dnsmasq takes no option in a host's file. Set it in dnsmasq's own configuration.")
		}
	}
}

// checkDurations refuses budgets that cannot hold what they are for. A default
// follows what is written.
func (r *reporter) checkDurations(b *rawBlock, s *plan.IronicSettings) {
	lock := inner(b, "node_lock")
	switch backoff, wait := isSet(lock, "backoff"), isSet(lock, "max_wait"); {
	case s.LockMaxWait == 0 || s.LockBackoffMax <= s.LockMaxWait:
	case backoff && wait:
		r.error(lock.attr("backoff").expr.Range(), "Durations contradict each other", "The longest pause (%s) is longer than the budget of all pauses together, max_wait (%s). Write a shorter pause or a longer budget.", shortDuration(s.LockBackoffMax), shortDuration(s.LockMaxWait))
	case wait:
		s.LockBackoffMin, s.LockBackoffMax = min(s.LockBackoffMin, s.LockMaxWait), s.LockMaxWait
	default:
		s.LockMaxWait = s.LockBackoffMax
	}
	for _, deadline := range []struct {
		name  string
		value *time.Duration
	}{{"cleaning_deadline", &s.CleaningDeadline}, {"inspection_deadline", &s.InspectDeadline}} {
		switch long, short := isSet(b, deadline.name), isSet(b, "timeout"); {
		case *deadline.value == 0 || s.Timeout <= *deadline.value:
		case long && short:
			r.error(b.attr(deadline.name).expr.Range(), "Durations contradict each other", "One request may take longer (timeout, %s) than all of it (%s, %s). Write a shorter timeout or a longer deadline.", shortDuration(s.Timeout), deadline.name, shortDuration(*deadline.value))
		case long:
			s.Timeout = *deadline.value
		default:
			*deadline.value = s.Timeout
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
