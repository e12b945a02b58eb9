package plan

// Drift says how much of a plan is a difference between the record and what is.
type Drift struct {
	Devices     int // devices that were looked at
	Drifted     int // of them, those that differ in anything
	Differences int // steps that would change something, blocked ones included; failed checks; what is observed and left alone
	Blocked     int // of them, what nobody may mend: on nodes that somebody holds, or denied
	Tolerated   int // differences that the site tolerates: they are no drift
	Unread      int // devices of which not everything could be read or judged

	devices map[string]bool
}

// Has reports whether the device differs; "" is what the devices share.
func (d Drift) Has(device string) bool { return d.devices[device] }

// Drift sums up a plan as drift. A look that nothing but apply can take (verify) is
// no drift, neither is what follows from mending one (a reload), nor a node that
// somebody holds.
func (p *Plan) Drift() Drift {
	d := Drift{Devices: len(p.Devices), devices: map[string]bool{}}
	found := func(device string) {
		d.Differences++
		d.devices[device] = true
	}
	for _, s := range p.Steps {
		if s.Action == ActionVerify || s.Reason == ReasonChanged {
			continue
		}
		found(s.Address.Device)
		if s.Blocked != nil {
			d.Blocked++
		}
	}
	for _, c := range p.FailedChecks() {
		found(c.Address.Device)
	}
	for _, o := range p.Observed {
		switch o.Rule {
		case RuleTolerated:
			d.Tolerated++
		case string(RuleUnsupported):
		default:
			found(o.Address.Device)
		}
	}
	unread := map[string]bool{}
	for _, e := range p.Errors() {
		if e.Fault.Code != CodeNodeOwned {
			unread[e.Device] = true
		}
	}
	d.Unread = len(unread)
	for _, dev := range p.Devices {
		if d.devices[dev.Name] {
			d.Drifted++
		}
	}
	return d
}
