package plan

import "fmt"

// Summarize counts a plan's steps and effects.
func Summarize(p *Plan) Summary {
	sum := Summary{Devices: len(p.Devices)}
	reboots, erases := map[string]bool{}, map[string]bool{}
	for _, s := range p.Steps {
		if s.Blocked != nil {
			sum.Blocked++
			continue
		}
		switch s.Action {
		case ActionCreate, ActionUpdate:
			sum.Change++
		case ActionRun, ActionTransition, ActionWait:
			sum.Run++
		case ActionVerify:
			sum.Verify++
		}
		if s.BeforeUnknown {
			sum.UpTo = true
		}
		for _, e := range s.Effects {
			switch e {
			case EffectReboot:
				reboots[s.Address.Device] = true
			case EffectErase:
				erases[s.Address.Device] = true
			case EffectServiceRestart:
				sum.ServiceRestarts++
			case EffectPower, EffectBMCReset, EffectCredential, EffectIrreversible:
				// Shown at the step; the last line counts only the three above.
			}
		}
	}
	sum.HostReboots, sum.DiskErases = len(reboots), len(erases)
	return sum
}

// String is the last line of a plan's text form. It is an interface: its words
// are fixed, always printed, and zeros are written.
func (s Summary) String() string {
	return fmt.Sprintf("Plan: %d devices, %d to change, %d to run, %d to verify, %d blocked; %d host reboots, %d disk erase, %d service restart.",
		s.Devices, s.Change, s.Run, s.Verify, s.Blocked, s.HostReboots, s.DiskErases, s.ServiceRestarts)
}
