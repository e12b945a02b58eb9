package ironic

import (
	"github.com/enroll-dev/enroll/plan"
)

// The addresses of this package's resources.
const (
	systemIronic = "ironic"
	systemCheck  = "check"

	kindNode          = "node"
	kindPort          = "port"
	kindPortgroup     = "portgroup"
	kindProvision     = "provision"
	kindPower         = "power"
	kindMaintenance   = "maintenance"
	kindCredential    = "credential"
	kindTrait         = "trait"
	kindRAIDInterface = "raid_interface"
	kindRAIDConfig    = "raid_config"
	kindRootDevice    = "root_device"
	kindDriver        = "driver"
	kindInspection    = "inspection"
	kindLLDP          = "lldp"

	keyBond    = "bond"
	keyCarrier = "carrier"
	keyManage  = "manage"
	keyInspect = "inspect"
	keyProvide = "provide"
)

// Kinds are the rules of Ironic and of the checks on its inventory.
func Kinds() []plan.Kind {
	return []plan.Kind{
		nodeKind(),
		portgroupKind(),
		portKind(),
		credentialKind(),
		provisionKind(keyManage, plan.PhaseManage, "the BMC is reachable for Ironic: enroll → manageable"),
		maintenanceKind(),
		traitKind(),
		raidInterfaceKind(),
		rootDeviceKind(),
		raidConfigKind(),
		provisionKind(keyInspect, plan.PhaseInspect, "the ramdisk reports the hardware; the host reboots"),
		inspectionKind(),
		lldpKind(),
		driverKind(),
		provisionKind(keyProvide, plan.PhaseClean, "cleaning: manageable → available; disks are erased"),
		powerKind(),
	}
}

// enrols reports whether the target is enrolled in an Ironic by this run.
func enrols(t *plan.Target) bool { return t.Site.IronicEnrol && t.Ironic != nil }

// earlierBlocked finds a step of this device's walk that is shown but will not
// run: nothing that builds on it may run either.
func earlierBlocked(d plan.Decision) *plan.Step {
	for _, s := range d.Steps {
		if s.Blocked != nil && s.Address.System == systemIronic {
			return s
		}
	}
	return nil
}

// settled reports whether the enrolment of the node is achieved (reference: the
// Nova guard): active, available, or manageable with an instance. Nothing but
// its power is then touched; differences are observed.
func settled(d plan.Decision) bool { return d.Owner.Satisfied }

// kept observes a difference that is left alone because the node is settled.
func kept(d plan.Decision, live plan.Value, text string) plan.Verdict {
	return plan.Verdict{Observed: []plan.Observation{{
		Address: d.Resource.Address, Rule: "kept", Text: text, Want: d.Resource.Want, Live: live,
	}}}
}

// unreadable is the verdict of a resource that could not be read. A conflict is
// no reading problem: it was read well and somebody has to resolve it.
func unreadable(d plan.Decision) plan.Verdict {
	f := d.Live.Fault
	return plan.Verdict{Fault: f, Unreadable: f == nil || f.Code != plan.CodeIronicConflict}
}
