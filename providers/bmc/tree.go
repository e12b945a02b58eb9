package bmc

import (
	"context"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// tree is what was proven since the last login, and what was found on the way.
type tree struct {
	root   document
	family family
	system document
	fresh  bool // the system was read in this call of Read or Run

	manager *document // once it was needed
}

// prove makes sure that the BMC answers, takes the login, and belongs to the
// machine that NetBox records.
//
// A refused password is followed by the next that the vault has, if a rotation may
// have left it on the BMC.
func (k *conn) prove(ctx context.Context, t *plan.Target) *plan.Fault {
	for {
		known := k.refused != nil
		fault := k.proveOnce(ctx, t)
		if known || !isCode(fault, plan.CodeBMCCredential) {
			return fault
		}
		k.tried[k.using] = true
		k.refusals++
		if taken, _ := k.another(ctx); !taken {
			return fault
		}
	}
}

func (k *conn) proveOnce(ctx context.Context, t *plan.Target) *plan.Fault {
	if k.refused != nil {
		return k.refused
	}
	if k.tree != nil && (k.login.basic || k.login.token != "") {
		return nil
	}
	// First, so that the password can be kept out of whatever the BMC says.
	if fault := k.credential(ctx); fault != nil {
		return fault
	}
	root, fault := k.read(ctx, rootPath, k.anonymous)
	if fault != nil {
		if fault.Code == plan.CodeBMCUnsupported {
			fault.Code = plan.CodeBMCProtocol
			fault.Summary = "what answers for the BMC of " + k.device + " at " + k.base + " has no Redfish service"
		}
		return fault
	}
	if !root.key("RedfishVersion") && !root.key("Systems") && !root.key("@odata.type") {
		return k.fault(plan.CodeBMCProtocol, request{method: "GET", path: rootPath}, "what answers for the BMC of %s at %s is no Redfish service", k.device, k.base)
	}
	found := &tree{root: root, fresh: true}
	sure := false
	if found.family, sure = familyOf(root); sure {
		k.family = found.family
	}
	if fault := k.session(ctx, root); fault != nil {
		return fault
	}
	if found.system, fault = k.findSystem(ctx, found, t.Intent); fault != nil {
		return fault
	}
	if !sure {
		m, fault := k.managerOf(ctx, found)
		if fault != nil && k.login.token == "" && !k.login.basic {
			return fault
		}
		found.family = familyOfParts(m, found.system)
	}
	if fault := k.identify(found, t.Intent); fault != nil {
		return fault
	}
	k.tree, k.family = found, found.family
	if k.login.basic {
		k.loggedIn()
	}
	return nil
}

// anonymous sends without a login: DSP0266 leaves the service root open, and
// some BMCs refuse a root request with a session that has ended.
func (k *conn) anonymous(ctx context.Context, r request) (*answer, *plan.Fault) {
	ans, _, fault := k.exchange(ctx, r)
	return ans, fault
}

// findSystem gives the host's system: the one that the record names, else the
// one there is. Makers list parts of a machine, and members that do not exist,
// beside it.
func (k *conn) findSystem(ctx context.Context, found *tree, intent *plan.Intent) (document, *plan.Fault) {
	if k.wanted != "" {
		d, fault := k.get(ctx, k.wanted)
		if fault != nil && fault.Code == plan.CodeBMCUnsupported {
			fault.Code = plan.CodeIntentInvalid
			fault.Summary = "redfish_address_override of " + k.device + " names a system that the BMC does not have"
		}
		return d, fault
	}
	path := found.root.link("Systems")
	if path == "" {
		path = rootPath + "Systems" // some roots have no links until the BMC is reset
	}
	all, fault := k.get(ctx, path)
	if fault != nil {
		if fault.Code == plan.CodeBMCUnsupported {
			fault.Code = plan.CodeBMCProtocol
		}
		return all, fault
	}
	var members []string
	for _, m := range all.links("Members") {
		if !strings.HasPrefix(name(m), "HGX_") { // the GPU board of an NVIDIA machine
			members = append(members, m)
		}
	}
	if len(members) == 1 {
		d, fault := k.get(ctx, members[0])
		if isCode(fault, plan.CodeBMCUnsupported) {
			fault.Code = plan.CodeBMCProtocol // it is listed
		}
		return d, fault
	}
	var hosts []document
	for _, m := range members {
		d, fault := k.get(ctx, m)
		switch {
		case fault != nil && fault.Code == plan.CodeBMCUnsupported:
			continue
		case fault != nil:
			return d, fault
		case serialFits(d, intent.Serial, found.family):
			return d, nil
		case d.key("Bios") || d.key("Boot"):
			hosts = append(hosts, d)
		}
	}
	if len(hosts) == 1 {
		return hosts[0], nil
	}
	return document{}, k.fault(plan.CodeBMCAmbiguous, request{method: "GET", path: resolve(path)}, "the BMC of %s shows %d systems and %d of them could be the host", k.device, len(members), len(hosts)).
		With("systems", cut(strings.Join(members, " "), 300))
}

// identify compares the serial number with NetBox's. A record or a BMC without
// one proves nothing and stops nothing.
func (k *conn) identify(found *tree, intent *plan.Intent) *plan.Fault {
	serials := serialsOf(found.system, found.family)
	if strings.TrimSpace(intent.Serial) == "" || len(serials) == 0 || serialFits(found.system, intent.Serial, found.family) {
		return nil
	}
	return k.fault(plan.CodeBMCIdentity, request{method: "GET", path: found.system.path}, "the BMC at %s belongs to the machine with serial number %s; NetBox records %s for %s", k.base, cut(strings.Join(serials, " / "), 100), intent.Serial, k.device).
		With("device", intent.URL)
}

// serialsOf are the numbers by which a record may call the machine.
func serialsOf(system document, f family) []string {
	var out []string
	for _, key := range f.serials {
		if s := strings.TrimSpace(system.text(key)); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func serialFits(system document, serial string, f family) bool {
	serial = strings.TrimSpace(serial)
	for _, s := range serialsOf(system, f) {
		if serial != "" && strings.EqualFold(s, serial) {
			return true
		}
	}
	return false
}

// freshSystem gives the system as it is now.
func (k *conn) freshSystem(ctx context.Context) (document, *plan.Fault) {
	if !k.tree.fresh {
		d, fault := k.get(ctx, k.tree.system.path)
		if fault != nil {
			return d, fault
		}
		k.tree.system, k.tree.fresh = d, true
	}
	return k.tree.system, nil
}

// members reads the members of a collection, in one request where the BMC says
// that it can; those that do not exist are left out, those that cannot be read
// say so. AMI's expanded members lack their own address: their id gives it.
func (k *conn) members(ctx context.Context, collection string) (document, []document, *plan.Fault) {
	path := strings.TrimSuffix(resolve(collection), "/")
	told, _ := k.tree.root.yes("ProtocolFeaturesSupported", "ExpandQuery", "ExpandAll")
	if told || k.family.expands {
		path += "?$expand=*($levels=1)"
	}
	all, fault := k.get(ctx, path)
	if fault != nil {
		return all, nil, fault
	}
	all.path, _, _ = strings.Cut(all.path, "?")
	items, _ := all.top["Members"].([]any)
	var out []document
	for _, item := range items {
		m, _ := item.(map[string]any)
		link := linkOf(item)
		if id, _ := m["Id"].(string); link == "" && id != "" {
			link = all.path + "/" + id
		}
		if link == "" {
			continue
		}
		if len(m) > 1 {
			d := document{path: resolve(link), top: m, expanded: true}
			d.etag = d.text("@odata.etag")
			out = append(out, d)
			continue
		}
		d, fault := k.get(ctx, link)
		switch {
		case fault == nil:
			out = append(out, d)
		case k.tree == nil: // the connection or the session is gone
			return all, nil, fault
		case !isCode(fault, plan.CodeBMCUnsupported):
			out = append(out, document{path: resolve(link), unread: fault})
		}
	}
	return all, out, nil
}

// manager gives the manager of the system as it was when it was first needed.
func (k *conn) manager(ctx context.Context) (document, *plan.Fault) {
	return k.managerOf(ctx, k.tree)
}

// managerOf finds the manager: the one that the site file names, the one that
// the system names, the one that serves Redfish, or the only one.
func (k *conn) managerOf(ctx context.Context, found *tree) (document, *plan.Fault) {
	if found.manager != nil {
		return *found.manager, nil
	}
	path, fault := k.managerPath(ctx, found)
	if fault != nil {
		return document{}, fault
	}
	d, fault := k.get(ctx, path)
	if fault == nil {
		found.manager = &d
	}
	return d, fault
}

func (k *conn) managerPath(ctx context.Context, found *tree) (string, *plan.Fault) {
	wanted := ""
	if s := k.client.settings.Generic; s != nil && found.family.name == genericFamily().name {
		wanted = s.Manager
	}
	by := found.system.links("Links", "ManagedBy")
	serving := found.root.link("Links", "ManagerProvidingService")
	if wanted == "" && len(by) == 1 {
		return by[0], nil
	}
	if wanted == "" && serving != "" {
		return serving, nil
	}
	all := found.root.link("Managers")
	if all == "" && len(by) == 0 {
		return "", k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: rootPath}, "the BMC of %s shows no manager", k.device)
	}
	members := by
	if len(members) == 0 || wanted != "" {
		d, fault := k.get(ctx, all)
		if fault != nil {
			return "", fault
		}
		members = d.links("Members")
	}
	var own []string
	for _, m := range members {
		if wanted != "" && name(m) == wanted {
			return m, nil
		}
		if !strings.HasPrefix(name(m), "HGX_") {
			own = append(own, m)
		}
	}
	switch {
	case wanted != "":
		return "", k.fault(plan.CodeConfigInvalid, request{method: "GET", path: all}, "the BMC of %s has no manager %q, which bmc.generic.manager names", k.device, wanted)
	case len(own) != 1:
		return "", k.fault(plan.CodeBMCAmbiguous, request{method: "GET", path: all}, "the BMC of %s shows %d managers and none is surely its own", k.device, len(own))
	}
	return own[0], nil
}
