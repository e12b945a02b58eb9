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
	s.Limits = r.limits(inner(b, "limits"))
	for _, n := range b.named("owned_nodes") {
		s.OwnedNodes.Release = get[[]string](n, "release")
	}
	for _, n := range b.named("verification") {
		s.Verification = verification(n)
	}
	s.Policies, s.Tolerations = r.policies(b), r.tolerations(b, r.now)
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
		URL: baseURL(b), Token: get[plan.SecretRef](b, "token"), Site: get[string](b, "site"), AllowUnplaced: get[bool](b, "allow_unplaced"),
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
		SwitchToIPMI: get[bool](b, "switch_to_ipmi_after_inspection"), SwitchPlatforms: get[[]string](b, "switch_to_ipmi_platforms"),
	}
	r.exactlyOne(b, "cloud", "endpoint")
	r.checkDurations(b, &s)
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
		Passphrase: get[plan.SecretRef](b, "passphrase"), Agent: get[bool](b, "agent"), ProxyJump: get[string](b, "proxy_jump"),
		Service: get[string](b, "service"), Directory: strings.TrimRight(get[string](b, "directory"), "/"), Unit: get[string](b, "unit"),
		NameSuffix: get[string](b, "name_suffix"), Subnets: get[[]string](b, "subnets"),
		Timeouts: plan.DHCPTimeouts{
			Connect: get[time.Duration](deadlines, "connect"), Login: get[time.Duration](deadlines, "login"),
			Command: get[time.Duration](deadlines, "command"), Transfer: get[time.Duration](deadlines, "transfer"),
		},
		Settle: get[time.Duration](b, "settle"), Config: get[string](b, "config"),
		IPv6: get[string](b, "family") == "ipv6", Apply: get[string](b, "apply"), Control: get[string](b, "control"),
	}
	for _, o := range b.named("option") {
		s.Options = append(s.Options, plan.DHCPOption{Name: o.label, Value: get[string](o, "value")})
	}
	if s.Unit == "" {
		s.Unit = dhcpUnit(s.Service, s.IPv6)
	}
	r.checkService(b, s)
	hasKey := b.attr("identity") != nil || b.attr("identity_file") != nil
	if hasKey || !s.Agent {
		r.exactlyOne(b, "identity", "identity_file")
	}
	if a := b.attr("passphrase"); a != nil && s.Agent && !hasKey {
		r.error(a.at, "Contradiction", "passphrase opens a key of this block, and there is none: the agent's keys are open. Remove it, or write identity too.")
	}
	r.exactlyOne(b, "known_hosts", "known_hosts_file")
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
		r.error(later.at, "Contradiction", "%s and %s say the same thing twice%s. Remove one of the two.", quote(first), quote(second), elsewhere(later, one, two))
	case one == nil && two == nil && !r.broken && !b.meant[first] && !b.meant[second]:
		r.error(b.at, "Missing attribute", "%s needs %s or %s. Write: %s = %s, or: %s = %s", blockTitle(b.spec),
			quote(first), quote(second), first, b.spec.attribute(first).example, second, b.spec.attribute(second).example)
	}
}

// elsewhere tells the other place when it is in another file.
func elsewhere(here, one, two *rawAttr) string {
	other := one
	if here == one {
		other = two
	}
	if other.at.Filename == here.at.Filename {
		return ""
	}
	return " (" + quote(other.name) + " stands at " + place(other.at) + ")"
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
// Ironic only, and every class to belong to one where nodes are enrolled.
func (r *reporter) checkClasses(site *rawBlock) {
	var classes []string
	for _, b := range site.named("device_class") {
		classes = append(classes, b.label)
	}
	managed := map[string]bool{} // also by a misspelt name
	first := map[string]listElement{}
	for _, e := range listElements(site.named("ironic"), "device_classes") {
		before, seen := first[e.text]
		switch {
		case seen:
			r.error(e.at, "Class of two Ironics", "The device class %s already belongs to ironic %s at %s. A class belongs to one Ironic; remove it from one of them.", quote(e.text), quote(before.block.label), place(before.at))
			continue
		case !slices.Contains(classes, e.text) && !r.broken:
			meant := plan.Suggest(e.text, classes)
			managed[meant] = true
			r.suggested(e.at, meant, "Unknown device class", "There is no device_class %s; there is %s.", quote(e.text), shownNames(classes))
		}
		first[e.text], managed[e.text] = e, true
	}
	if r.broken || len(site.named("ironic")) == 0 {
		return
	}
	for _, b := range site.named("ironic") {
		if a := b.attr("device_classes"); a == nil || a.value == nil {
			return // it was reported, and may name any class
		}
	}
	for _, b := range site.named("device_class") {
		if !managed[b.label] {
			r.error(b.at, "Class without an Ironic", "No ironic block lists the device class %s, so its devices cannot be planned. Add it to device_classes of an ironic block, or remove the device_class.", quote(b.label))
		}
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

// get reads an attribute of a block: what is written, else the table's default,
// else the zero value. It panics for a name that the table does not have.
func get[T string | bool | int | time.Duration | [2]time.Duration | []string | map[string]any | plan.SecretRef](b *rawBlock, name string) T {
	if a := b.attr(name); a != nil {
		v, _ := a.value.(T) // not set: it was reported, and the File will not exist
		return v
	}
	spec := b.spec.attribute(name)
	if spec == nil {
		panic("schema: the table has no attribute " + b.spec.name + "." + name)
	}
	v, _ := spec.defaultValue().(T)
	return v
}
