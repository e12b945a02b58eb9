package lab

// MaxDevices is how many devices a lab takes: two descriptors per BMC must fit
// the usual limit of a process.
const MaxDevices = 2000

// Scenario is what the devices have been through before the lab is ready.
type Scenario struct {
	Name string
	Doc  string
	// Converged: enroll itself has brought every device to available.
	Converged bool
	// Change is what happened after that.
	Change func(*Lab)
}

// Scenarios lists the scenarios in the order in which people meet them.
func Scenarios() []Scenario {
	return []Scenario{
		{"fresh", "racked and recorded in NetBox, nothing else: DHCP, BMCs and Ironic know nothing of them", false, func(*Lab) {}},
		{"clean", "enrolled: every device is available and as recorded", true, func(*Lab) {}},
		{"owned", "enrolled; then Nova put an instance on gpu-001, and its BMC's settings were changed by hand", true, (*Lab).own},
		{"drifted", "enrolled; then somebody changed gpu-001's BMC settings and its DHCP entry by hand", true, (*Lab).drift},
		{"faulty", "racked and recorded, but gpu-001's cables are swapped and the BMC of gpu-002, if there is one, has another password than the vault", false, (*Lab).spoil},
	}
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
