package schema

import (
	"time"

	"github.com/enroll-dev/enroll/plan"
)

func (r *reporter) bmcSettings(b *rawBlock) *plan.BMCSettings {
	s := &plan.BMCSettings{
		CAFile: get[string](b, "ca_file"), RestrictBoot: get[bool](b, "restrict_boot"),
		Timeout: get[time.Duration](b, "timeout"), ReadyBudget: get[time.Duration](b, "ready_budget"),
		Monitoring: get[plan.SecretRef](b, "monitoring"), MonitoringUser: get[plan.SecretRef](b, "monitoring_username"),
		TimeZone:       get[string](inner(b, "ntp"), "time_zone"),
		MonitoringRole: get[string](b, "monitoring_role"), VerifyIPMI: get[bool](b, "verify_ipmi"),
	}
	if s.MonitoringUser.IsZero() && !s.Monitoring.IsZero() {
		s.MonitoringUser = plan.SecretRef{Item: s.Monitoring.Item, Field: "username"}
	}
	if a := b.attr("monitoring_username"); a != nil && b.attr("monitoring") == nil && !b.meant["monitoring"] {
		r.error(a.at, "Missing attribute", "monitoring_username is the name of an account without a password. Write beside it: monitoring = %s", b.spec.attribute("monitoring").example)
	}
	tls := inner(b, "tls")
	r.tlsSettings(b, tls, s)
	for _, n := range b.named("ntp") {
		r.sayTwice(b.attr("ntp_servers"), n.attr("servers"), "ntp_servers", "ntp.servers")
	}
	for _, n := range b.named("syslog") {
		s.Syslog = &plan.SyslogSettings{Port: get[int](n, "port"), Protocol: get[string](n, "protocol")}
	}
	for _, n := range b.named("security") {
		s.Security = r.securitySettings(n)
	}
	for _, n := range b.named("bios") {
		s.BIOS = append(s.BIOS, plan.BIOSSettings{Class: n.label, Attributes: get[map[string]any](n, "attributes")})
	}
	s.IDRAC, s.XCC, s.AMI = r.vendorSettings(b, "idrac"), r.vendorSettings(b, "xcc"), r.vendorSettings(b, "ami")
	s.Supermicro, s.Generic = r.vendorSettings(b, "supermicro"), r.vendorSettings(b, "generic")
	return s
}

func (r *reporter) tlsSettings(b, tls *rawBlock, s *plan.BMCSettings) {
	if a := tls.attr("relearn_pins"); a != nil && tls.attr("pins") == nil {
		r.warn(a.at, "No effect", "relearn_pins has no effect without pins. Remove it.")
	}
	s.Pins, s.MinTLSVersion = get[[]string](tls, "pins"), get[string](tls, "min_version")
	s.RelearnPins, s.Ciphers = get[bool](tls, "relearn_pins"), get[[]string](tls, "ciphers")
	s.Insecure, s.InsecureReason = get[bool](tls, "insecure"), get[string](tls, "reason")
	ca := b.attr("ca_file")
	if inside := tls.attr("ca_file"); inside != nil {
		s.CAFile = get[string](tls, "ca_file")
		r.sayTwice(ca, inside, "ca_file", "tls.ca_file")
		ca = inside
	}
	insecure, reason := tls.attr("insecure"), tls.attr("reason")
	switch {
	case s.Insecure && reason == nil:
		r.error(insecure.expr.Range(), "Reason missing", "insecure = true switches the check of all BMC certificates off, and wants a reason. Write beside it: reason = %s", tls.spec.attribute("reason").example)
	case s.Insecure && ca != nil:
		r.error(ca.at, "Contradiction", "ca_file has no effect with insecure = true. Remove one of the two.")
	case s.Insecure && tls.attr("pins") != nil:
		r.error(tls.attr("pins").at, "Contradiction", "pins have no effect with insecure = true. Remove one of the two.")
	case s.Insecure:
		r.warn(insecure.expr.Range(), "Certificates are not checked", "Any certificate of a BMC is accepted (%s). Whoever answers at a BMC's address gets its password.", s.InsecureReason)
	case reason != nil:
		r.warn(reason.at, "No effect", "reason has no effect without insecure = true. Remove it.")
	}
}

// sayTwice refuses two attributes of different blocks that say the same thing.
func (r *reporter) sayTwice(one, two *rawAttr, first, second string) {
	if one != nil && two != nil {
		r.error(two.at, "Contradiction", "%s and %s say the same thing twice%s. Remove one of the two.", quote(first), quote(second), elsewhere(two, one, two))
	}
}

func (r *reporter) securitySettings(b *rawBlock) *plan.SecuritySettings {
	s := &plan.SecuritySettings{
		HTTP: optionalBool(b, "http"), SSH: optionalBool(b, "ssh"), Telnet: optionalBool(b, "telnet"), VNC: optionalBool(b, "vnc"),
		SSDP: optionalBool(b, "ssdp"), HostInterface: optionalBool(b, "host_interface"),
		SNMP: get[string](b, "snmp"), MinTLSVersion: get[string](b, "tls_min_version"), LockoutDuration: get[time.Duration](b, "lockout_duration"),
	}
	attempts, duration := b.attr("lockout_attempts"), b.attr("lockout_duration")
	if attempts != nil {
		n := get[int](b, "lockout_attempts")
		s.LockoutAttempts = &n
	}
	switch {
	case duration == nil:
	case attempts == nil && !b.meant["lockout_attempts"]:
		r.error(duration.at, "Missing attribute", "lockout_duration needs lockout_attempts. Write beside it: lockout_attempts = %s", b.spec.attribute("lockout_attempts").example)
	case attempts != nil && attempts.value == 0:
		r.error(duration.at, "Contradiction", "lockout_duration has no effect with lockout_attempts = 0, which never locks out. Remove one of the two.")
	}
	return s
}

// optionalBool tells not written from false.
func optionalBool(b *rawBlock, name string) *bool {
	a := b.attr(name)
	if a == nil || a.value == nil {
		return nil
	}
	v, ok := a.value.(bool)
	if !ok {
		return nil
	}
	return &v
}

// vendorSettings reads the block of one family. Families without a switch for
// each boot option cannot restrict the boot over Redfish (XCC has none, Supermicro's
// options do not name their NIC, others are unknown).
func (r *reporter) vendorSettings(b *rawBlock, name string) *plan.VendorSettings {
	rows := b.named(name)
	if len(rows) == 0 {
		return nil
	}
	n := rows[0]
	s := &plan.VendorSettings{RestrictBoot: optionalBool(n, "restrict_boot")}
	if a := n.attr("restrict_boot"); s.RestrictBoot != nil && *s.RestrictBoot && name != "idrac" && name != "ami" {
		r.error(a.expr.Range(), "Family cannot do this", "Boot options cannot be switched off one by one in the family %s, so boot cannot be restricted to one NIC. Only idrac and ami can. Remove the line, or write: restrict_boot = false", quote(name))
	}
	optional := func(attr string) *bool {
		if n.spec.attribute(attr) == nil {
			return nil
		}
		return optionalBool(n, attr)
	}
	s.Lockdown, s.IPBlocking, s.KCS = optional("lockdown"), optional("ip_blocking"), optional("kcs")
	s.FirmwareRollback, s.VirtualMedia = optional("firmware_rollback"), optional("virtual_media")
	if n.spec.attribute("attributes") != nil {
		s.Attributes = get[map[string]any](n, "attributes")
	}
	if n.spec.attribute("manager") != nil {
		s.Manager = get[string](n, "manager")
	}
	return s
}
