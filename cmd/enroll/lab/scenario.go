package lab

// MaxDevices is how many devices a lab takes: two descriptors per BMC must fit
// the usual limit of a process.
const MaxDevices = 2000

// Scenario is what the devices have been through before the lab is ready.
type Scenario struct {
	Name string
	Doc  string
	// Converge gives the arguments of the apply with which enroll itself brings
	// devices on their way; nil when nobody has touched them.
	Converge func(*Lab) []string
	// Change is what happened after that.
	Change func(*Lab) error
}

// Scenarios lists the scenarios in the order in which people meet them.
func Scenarios() []Scenario {
	nothing := func(*Lab) error { return nil }
	return []Scenario{
		{"fresh", "racked and recorded in NetBox, nothing else: DHCP, BMCs and Ironic know nothing of them", nil, nothing},
		{"delivered", "fresh, and the BMCs still have the password of the factory, which the site's files name", nil, (*Lab).deliver},
		{"halfway", "brought as far as manageable, as after a run that was narrowed or interrupted: not inspected, not cleaned", manageable, nothing},
		{"clean", "enrolled: every device is available and as recorded", all, nothing},
		{"owned", "enrolled; then Nova put an instance on gpu-001, and its BMC's settings were changed by hand", all, (*Lab).own},
		{"drifted", "enrolled; then somebody changed gpu-001's BMC settings and its DHCP entry by hand", all, (*Lab).drift},
		{"retired", "enrolled; then a machine was taken out of NetBox, and its DHCP entry stayed", all, (*Lab).retire},
		{"tolerated", "drifted, and the site's files tolerate the BMC's name until a date", all, (*Lab).tolerate},
		{"denied", "fresh, and policies of the site's files deny disk erases, want approval of reboots and warn about racks", nil, (*Lab).deny},
		{"faulty", "racked and recorded, but gpu-001's cables are swapped and the BMC of gpu-002, if there is one, has another password than the vault", nil, (*Lab).spoil},
		{"unreachable", "enrolled; then the BMC of gpu-001 stopped answering", all, (*Lab).unplug},
		{"gaps", "racked, but NetBox lacks gpu-001's out-of-band address, its position and the cable of eth1", nil, (*Lab).forget},
		{"mixed", "a fleet in use: gpu-001 is held by Nova and changed by hand, gpu-002 drifted, the BMC of gpu-003 does not answer, NetBox has gaps for gpu-004, the last ones are fresh and the others as recorded", allButSome, (*Lab).mix},
	}
}

func all(*Lab) []string { return []string{"--all"} }

func manageable(*Lab) []string { return []string{"--all", "--target", "ironic.provision[manage]"} }

// freshOnes is how many devices of the scenario mixed nobody has touched, of those
// behind the first four.
const freshOnes = 3

func allButSome(l *Lab) []string {
	var names []string
	for i, h := range l.Hosts {
		if i < 4 || i < len(l.Hosts)-freshOnes {
			names = append(names, h.Name)
		}
	}
	return names
}

// FindScenario gives a scenario by name.
func FindScenario(name string) (Scenario, bool) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
