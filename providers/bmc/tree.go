package bmc

import (
	"context"
	"strings"

	"github.com/enroll-dev/enroll/plan"
)

// tree is what was proven since the last login, and what was found on the way.
type tree struct {
	root   document
	vendor vendor
	system document
	fresh  bool // the system was read in this call of Read or Run

	manager *document // once it was needed
}

// prove makes sure that the BMC answers, takes the login, and belongs to the
// machine that NetBox records.
func (k *conn) prove(ctx context.Context, t *plan.Target) *plan.Fault {
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
	if fault := k.session(ctx, root); fault != nil {
		return fault
	}
	found := &tree{root: root, vendor: vendorOf(root), fresh: true}
	if found.system, fault = k.findSystem(ctx, root, t.Intent); fault != nil {
		return fault
	}
	if fault := k.identify(found, t.Intent); fault != nil {
		return fault
	}
	k.tree = found
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
func (k *conn) findSystem(ctx context.Context, root document, intent *plan.Intent) (document, *plan.Fault) {
	if k.wanted != "" {
		d, fault := k.get(ctx, k.wanted)
		if fault != nil && fault.Code == plan.CodeBMCUnsupported {
			fault.Code = plan.CodeIntentInvalid
			fault.Summary = "redfish_address_override of " + k.device + " names a system that the BMC does not have"
		}
		return d, fault
	}
	path := root.link("Systems")
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
		case serialFits(d, intent.Serial, vendorOf(root)):
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
	serials := serialsOf(found.system, found.vendor)
	if strings.TrimSpace(intent.Serial) == "" || len(serials) == 0 || serialFits(found.system, intent.Serial, found.vendor) {
		return nil
	}
	return k.fault(plan.CodeBMCIdentity, request{method: "GET", path: found.system.path}, "the BMC at %s belongs to the machine with serial number %s; NetBox records %s for %s", k.base, cut(strings.Join(serials, " / "), 100), intent.Serial, k.device).
		With("device", intent.URL)
}

// serialsOf are the numbers by which a record may call the machine.
func serialsOf(system document, v vendor) []string {
	var out []string
	keys := []string{"SerialNumber"}
	if v.serviceTag {
		keys = []string{"SKU", "SerialNumber"}
	}
	for _, key := range keys {
		if s := strings.TrimSpace(system.text(key)); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func serialFits(system document, serial string, v vendor) bool {
	serial = strings.TrimSpace(serial)
	for _, s := range serialsOf(system, v) {
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

// manager gives the manager of the system: the one that the system names, the
// one that serves Redfish, or the only one.
func (k *conn) manager(ctx context.Context) (document, *plan.Fault) {
	if k.tree.manager != nil {
		return *k.tree.manager, nil
	}
	path := ""
	by := k.tree.system.links("Links", "ManagedBy")
	serving := k.tree.root.link("Links", "ManagerProvidingService")
	switch {
	case len(by) == 1:
		path = by[0]
	case serving != "":
		path = serving
	case k.tree.root.link("Managers") != "":
		all, fault := k.get(ctx, k.tree.root.link("Managers"))
		if fault != nil {
			return all, fault
		}
		var members []string
		for _, m := range all.links("Members") {
			if !strings.HasPrefix(name(m), "HGX_") {
				members = append(members, m)
			}
		}
		if len(members) != 1 {
			return document{}, k.fault(plan.CodeBMCAmbiguous, request{method: "GET", path: all.path}, "the BMC of %s shows %d managers and none is surely its own", k.device, len(members))
		}
		path = members[0]
	default:
		return document{}, k.fault(plan.CodeBMCUnsupported, request{method: "GET", path: rootPath}, "the BMC of %s shows no manager", k.device)
	}
	d, fault := k.get(ctx, path)
	if fault == nil {
		k.tree.manager = &d
	}
	return d, fault
}
