package plan

import (
	"fmt"
	"strconv"
)

// Parameters are what an operator asks of one run, beside what the record says.
// They are decided on while planning, stand in the plan, and are taken from there
// when it is applied. The zero value asks for nothing.
type Parameters struct {
	SkipInspection     bool // run_inspection = false: no inspection, and no verification of what one found
	ForceInspection    bool // inspect again although there is an inventory
	ClearMaintenance   bool // clear maintenance that somebody else set
	RewriteCredentials bool // write the BMC's credential into Ironic again, whatever version is there
	ForceBMCRestart    bool // restart the BMC before anything is set on it
	PruneDHCP          bool // remove entries on the DHCP server that give an address to no device
	MaxAttempts        int  // attempts at inspection and cleaning; 0: as the site says
}

// The names by which parameters stand in a plan: those of the reference workflow
// where it has them.
const (
	paramRunInspection      = "run_inspection"
	paramForceInspection    = "force_inspection"
	paramClearMaintenance   = "clear_maintenance"
	paramRewriteCredentials = "rewrite_credentials"
	paramForceBMCRestart    = "force_bmc_restart"
	paramPruneDHCP          = "prune_dhcp"
	paramMaxAttempts        = "max_attempts"
)

// Record gives the parameters as a plan keeps them; nil when nothing is asked.
func (p Parameters) Record() map[string]string {
	out := map[string]string{}
	flag := func(name string, set bool, value string) {
		if set {
			out[name] = value
		}
	}
	flag(paramRunInspection, p.SkipInspection, "false")
	flag(paramForceInspection, p.ForceInspection, "true")
	flag(paramClearMaintenance, p.ClearMaintenance, "true")
	flag(paramRewriteCredentials, p.RewriteCredentials, "true")
	flag(paramForceBMCRestart, p.ForceBMCRestart, "true")
	flag(paramPruneDHCP, p.PruneDHCP, "true")
	flag(paramMaxAttempts, p.MaxAttempts > 0, strconv.Itoa(p.MaxAttempts))
	if len(out) == 0 {
		return nil
	}
	return out
}

// ParseParameters reads what Record wrote. The error is a PLAN_INVALID fault: a
// parameter that this version does not know would be left out in silence.
func ParseParameters(record map[string]string) (Parameters, error) {
	var p Parameters
	for name, value := range record {
		var err error
		switch name {
		case paramRunInspection:
			p.SkipInspection = value == "false"
		case paramForceInspection:
			p.ForceInspection = value == "true"
		case paramClearMaintenance:
			p.ClearMaintenance = value == "true"
		case paramRewriteCredentials:
			p.RewriteCredentials = value == "true"
		case paramForceBMCRestart:
			p.ForceBMCRestart = value == "true"
		case paramPruneDHCP:
			p.PruneDHCP = value == "true"
		case paramMaxAttempts:
			p.MaxAttempts, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("there is no parameter %q", name)
		}
		if err != nil {
			return Parameters{}, NewFault(CodePlanInvalid, "the plan's parameter %s = %q cannot be used", name, value).Because(err)
		}
	}
	return p, nil
}
