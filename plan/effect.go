package plan

// Effect is what a step does to the world besides its value. The list is
// closed: a reviewer decides by these words.
type Effect string

// The effects, in the order in which people care about them.
const (
	EffectErase          Effect = "erase"           // disks are wiped (cleaning)
	EffectReboot         Effect = "reboot"          // the host reboots
	EffectPower          Effect = "power"           // the host's power state changes
	EffectBMCReset       Effect = "bmc_reset"       // the BMC restarts
	EffectCredential     Effect = "credential"      // a password is written
	EffectServiceRestart Effect = "service_restart" // a service shared by many hosts is restarted or reloaded
	EffectIrreversible   Effect = "irreversible"    // no later run can undo it
)

// Effects lists all effects in their order.
func Effects() []Effect {
	return []Effect{EffectErase, EffectReboot, EffectPower, EffectBMCReset, EffectCredential, EffectServiceRestart, EffectIrreversible}
}
