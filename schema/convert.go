package schema

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/enroll-dev/enroll/plan"
)

// site builds the plain struct and checks what single attributes cannot: blocks
// that contradict each other.
func (r *reporter) site(b *rawBlock) *plan.Site {
	s := &plan.Site{
		Name:                b.label,
		ConfigureDHCP:       get[bool](b, "configure_dhcp"),
		ConfigureBMC:        get[bool](b, "configure_bmc"),
		IronicEnrol:         get[bool](b, "ironic_enrol"),
		RecordPlatformClass: get[bool](b, "record_platform_class"),
		Set:                 map[string]string{},
	}
	whereSet(b, s.Set)
	for _, n := range b.named("netbox") {
		s.NetBox = netBoxSettings(n, s.Name)
	}
	for _, n := range b.named("secrets") {
		s.Secrets = r.secretsSettings(n)
	}
	for _, n := range b.named("device_class") {
		s.Classes = append(s.Classes, plan.DeviceClass{Name: n.label, Roles: get[[]string](n, "roles"), GPU: get[bool](n, "gpu")})
	}
	for _, n := range b.named("ironic") {
		s.Ironics = append(s.Ironics, r.ironicSettings(n))
	}
	for _, n := range b.named("dhcp") {
		s.DHCP = r.dhcpSettings(n)
	}
	for _, n := range b.named("bmc") {
		s.BMC = r.bmcSettings(n)
	}
	r.checkRoles(b)
	r.checkClasses(b)
	r.checkNeeds(b, s)
	return s
}

// whereSet collects the places of all attributes.
func whereSet(b *rawBlock, set map[string]string) {
	for _, a := range b.attrs {
		set[a.path] = place(a.at)
	}
	for _, child := range b.blocks {
		whereSet(child, set)
	}
}

// inner gives the one block of a name, or an empty one, whose attributes are the
// defaults.
func inner(b *rawBlock, name string) *rawBlock {
	for _, child := range b.named(name) {
		return child
	}
	return &rawBlock{spec: b.spec.named(name)[0]}
}

func netBoxSettings(b *rawBlock, site string) plan.NetBoxSettings {
	n := plan.NetBoxSettings{
		URL: baseURL(b), Token: get[plan.SecretRef](b, "token"), Site: get[string](b, "site"),
		CAFile: get[string](b, "ca_file"), Timeout: get[time.Duration](b, "timeout"),
	}
	if n.Site == "" {
		n.Site = site
	}
	return n
}

// baseURL is the address without the slash that people append.
func baseURL(b *rawBlock) string { return strings.TrimRight(get[string](b, "url"), "/") }

func (r *reporter) ironicSettings(b *rawBlock) plan.IronicSettings {
	lock := inner(b, "node_lock")
	backoff := get[[2]time.Duration](lock, "backoff")
	s := plan.IronicSettings{
		Name: b.label, Endpoint: strings.TrimRight(get[string](b, "endpoint"), "/"), Cloud: get[string](b, "cloud"),
		DeviceClasses: get[[]string](b, "device_classes"), EnrolProject: get[string](b, "enrol_project"), SchedulerTrait: get[string](b, "scheduler_trait"),
		CleaningDeadline: get[time.Duration](b, "cleaning_deadline"), InspectDeadline: get[time.Duration](b, "inspection_deadline"),
		LockMaxWait: get[time.Duration](lock, "max_wait"), LockBackoffMin: backoff[0], LockBackoffMax: backoff[1],
		Attempts: get[int](b, "attempts"), CAFile: get[string](b, "ca_file"), Timeout: get[time.Duration](b, "timeout"),
	}
	r.exactlyOne(b, "cloud", "endpoint")
	s.Clouds, s.CloudsFile = get[plan.SecretRef](b, "clouds"), get[string](b, "clouds_file")
	s.Secure, s.SecureFile = get[plan.SecretRef](b, "secure"), get[string](b, "secure_file")
	r.checkClouds(b)
	return s
}

func (r *reporter) dhcpSettings(b *rawBlock) *plan.DHCPSettings {
	deadlines := inner(b, "timeouts")
	s := &plan.DHCPSettings{
		Host: get[string](b, "host"), Port: get[int](b, "port"), User: get[string](b, "user"),
		Identity: get[plan.SecretRef](b, "identity"), KnownHosts: get[plan.SecretRef](b, "known_hosts"),
		IdentityFile: get[string](b, "identity_file"), KnownHostsFile: get[string](b, "known_hosts_file"),
		Service: get[string](b, "service"), Directory: strings.TrimRight(get[string](b, "directory"), "/"), Unit: get[string](b, "unit"),
		NameSuffix: get[string](b, "name_suffix"), Subnets: get[[]string](b, "subnets"),
		Timeouts: plan.DHCPTimeouts{
			Connect: get[time.Duration](deadlines, "connect"), Login: get[time.Duration](deadlines, "login"),
			Command: get[time.Duration](deadlines, "command"), Transfer: get[time.Duration](deadlines, "transfer"),
		},
		Settle: get[time.Duration](b, "settle"),
	}
	if s.Unit == "" {
		s.Unit = s.Service
	}
	if a := b.attr("service"); a != nil && s.Service != "" && s.Service != "dnsmasq" {
		r.error(a.expr.Range(), "Not supported by this version", "The DHCP server %s is part of the language but is not supported by this version of enroll. Write: service = \"dnsmasq\", or set configure_dhcp = false and leave the dhcp block out.", quote(s.Service))
	}
	r.exactlyOne(b, "identity", "identity_file")
	r.exactlyOne(b, "known_hosts", "known_hosts_file")
	return s
}

func (r *reporter) bmcSettings(b *rawBlock) *plan.BMCSettings {
	s := &plan.BMCSettings{
		CAFile: get[string](b, "ca_file"), Insecure: get[bool](b, "insecure"), InsecureReason: get[string](b, "insecure_reason"),
		RestrictBoot: get[bool](b, "restrict_boot"), Timeout: get[time.Duration](b, "timeout"), ReadyBudget: get[time.Duration](b, "ready_budget"),
	}
	insecure, reason, ca := b.attr("insecure"), b.attr("insecure_reason"), b.attr("ca_file")
	switch {
	case s.Insecure && reason == nil:
		r.error(insecure.expr.Range(), "Reason missing", "insecure = true switches the check of all BMC certificates off, and wants a reason. Write beside it: insecure_reason = %s", b.spec.attribute("insecure_reason").example)
	case s.Insecure && ca != nil:
		r.error(ca.at, "Contradiction", "ca_file has no effect with insecure = true. Remove one of the two.")
	case s.Insecure:
		r.warn(insecure.expr.Range(), "Certificates are not checked", "Any certificate of a BMC is accepted (%s). Whoever answers at a BMC's address gets its password.", s.InsecureReason)
	case reason != nil:
		r.warn(reason.at, "No effect", "insecure_reason has no effect without insecure = true. Remove it.")
	}
	return s
}

// exactlyOne wants one of two attributes.
func (r *reporter) exactlyOne(b *rawBlock, first, second string) {
	one, two := b.attr(first), b.attr(second)
	switch {
	case one != nil && two != nil:
		later := two
		if one.at.Start.Byte > two.at.Start.Byte {
			later = one
		}
		r.error(later.at, "Contradiction", "%s and %s say the same thing twice. Remove one of the two.", quote(first), quote(second))
	case one == nil && two == nil && !r.broken && !b.meant[first] && !b.meant[second]:
		r.error(b.at, "Missing attribute", "%s needs %s or %s. Write: %s = %s, or: %s = %s", blockTitle(b.spec),
			quote(first), quote(second), first, b.spec.attribute(first).example, second, b.spec.attribute(second).example)
	}
}

// listElement is a text of a list attribute with its place.
type listElement struct {
	block *rawBlock
	text  string
	at    hcl.Range
}

func listElements(blocks []*rawBlock, name string) []listElement {
	var out []listElement
	for _, b := range blocks {
		a := b.attr(name)
		if a == nil || a.value == nil {
			continue
		}
		list := a.value.([]string)
		places := listPlaces(a.expr, len(list))
		for i, text := range list {
			out = append(out, listElement{b, text, places[i]})
		}
	}
	return out
}

// checkRoles wants a role in one class only.
func (r *reporter) checkRoles(site *rawBlock) {
	first := map[string]listElement{}
	for _, e := range listElements(site.named("device_class"), "roles") {
		if before, seen := first[e.text]; seen {
			r.error(e.at, "Role of two classes", "The role %s already belongs to device_class %s at %s. A role belongs to one class; remove it from one of them.", quote(e.text), quote(before.block.label), place(before.at))
			continue
		}
		first[e.text] = e
	}
}

// checkClasses wants every class of an Ironic to exist, and to belong to one
// Ironic only.
func (r *reporter) checkClasses(site *rawBlock) {
	var classes []string
	for _, b := range site.named("device_class") {
		classes = append(classes, b.label)
	}
	first := map[string]listElement{}
	for _, e := range listElements(site.named("ironic"), "device_classes") {
		before, seen := first[e.text]
		switch {
		case seen:
			r.error(e.at, "Class of two Ironics", "The device class %s already belongs to ironic %s at %s. A class belongs to one Ironic; remove it from one of them.", quote(e.text), quote(before.block.label), place(before.at))
			continue
		case !slices.Contains(classes, e.text) && !r.broken:
			r.suggested(e.at, suggest(e.text, classes), "Unknown device class", "There is no device_class %s; there is %s.", quote(e.text), shownNames(classes))
		}
		first[e.text] = e
	}
}

// checkNeeds wants the blocks of what is switched on.
func (r *reporter) checkNeeds(b *rawBlock, s *plan.Site) {
	if r.broken {
		return
	}
	for _, need := range []struct {
		block string
		flags []string // switches that need it
		on    []bool
	}{
		{"dhcp", []string{"configure_dhcp"}, []bool{s.ConfigureDHCP}},
		{"bmc", []string{"configure_bmc", "ironic_enrol"}, []bool{s.ConfigureBMC, s.IronicEnrol}},
		{"ironic", []string{"ironic_enrol"}, []bool{s.IronicEnrol}},
	} {
		var on []string
		at := b.at
		for i, name := range need.flags {
			if !need.on[i] {
				continue
			}
			on = append(on, name)
			if a := b.attr(name); a != nil {
				at = a.at
			}
		}
		if len(on) == 0 || len(b.named(need.block)) > 0 || b.meant[need.block] {
			continue
		}
		verb := "needs"
		if len(on) > 1 {
			verb = "need"
		}
		r.error(at, "Missing "+need.block+" block", "The site has no %s block, which %s (true unless it is set) %s. Write: %s, or set: %s = false",
			need.block, strings.Join(on, " and "), verb, blockExample(b.spec.named(need.block)[0]), strings.Join(on, " = false and "))
	}
}
