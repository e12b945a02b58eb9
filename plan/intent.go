package plan

import "net/netip"

// Intent is what NetBox says about one device, read whole before anything is
// decided. Gaps are faults; they are collected, not raised one by one.
type Intent struct {
	Site   string // slug of the NetBox site
	Name   string
	ID     int64
	URL    string // page or API address of the device, for people
	Status string // NetBox's status value: staged, active, …
	Serial string
	Role   string // slug
	Class  string // device class of the site, from the role; "" when no class has it
	GPU    bool
	Manufacturer,
	Model,
	DeviceTypeSlug string
	Platform string // slug
	Rack     string
	Position string   // "10", "10.5"; "" when the rack has it without a position
	Tags     []string // slugs, sorted

	CustomFields  map[string]any // as decoded; select fields already unwrapped to their value
	ConfigContext map[string]any // the rendered context

	// PlatformClass is NetBox's recorded value; nil when the field does not
	// exist on this NetBox.
	PlatformClass *string
	// ComputedClass is the platform class that NetBox's data comes to (reference
	// workflow, phase 0b); "" when it comes to none.
	ComputedClass string

	OOB          netip.Addr
	BMCInterface string
	BMCMAC       MAC

	Frontend []FrontendNIC // in enroll's own order: natural by name; [0] is the provisioning NIC

	Ironic     IronicContext
	Inspection InspectionContext
	NTPServers []string // of the NetBox site (custom field ntp_servers) or config context "ntp"

	// Faults are gaps and contradictions of the record. A device with faults is
	// never written to.
	Faults []*Fault
	// Warnings do not stop the device.
	Warnings []*Fault
	// Sources are the NetBox objects that were read, for the plan's inputs.
	Sources []SourceObject
	// Hash covers everything above that decisions rest on, so that apply can see
	// whether the record moved since the plan.
	Hash string
}

// SourceObject is one NetBox object that an intent rests on.
type SourceObject struct {
	URL         string `json:"url"`
	LastUpdated string `json:"last_updated"`
	Hash        string `json:"hash,omitempty"`
}

// FrontendNIC is an interface of the host's frontend network.
type FrontendNIC struct {
	Name string
	URL  string
	MAC  MAC
	// Peer is the far end of the cable, through any number of patch panels; nil
	// when the interface is not cabled or the path is not complete.
	Peer *Peer
}

// Peer is a switch port at the far end of a cable.
type Peer struct {
	Device      string // name of the switch
	Port        string // name of the port
	Label       string
	Description string
	LAG         string // name of the port's LAG parent, "" when it has none
	Platform    string // slug of the switch's platform, "" when it has none or the site does not ask
	URL         string
}

// IronicContext is config context ironic_settings. Pointers tell absent from
// false.
type IronicContext struct {
	Driver                string            `json:"driver"`
	InterfaceType         string            `json:"interface_type"` // NetBox type value of the frontend NICs
	Interfaces            map[string]string `json:"-"`              // *_interface keys: boot, deploy, inspect, management, network, power, raid, vendor, …
	ResourceClass         string            `json:"resource_class"`
	CPUArch               string            `json:"cpu_arch"`
	Capabilities          map[string]string `json:"capabilities"`
	RootDevice            map[string]any    `json:"root_device"`
	Bond                  *Bond             `json:"bond"`
	SkipCableVerification bool              `json:"skip_cable_verification"`
	RedfishAddress        string            `json:"redfish_address_override"` // scheme://host:port[/redfish/v1/Systems/ID]
	DriverInfo            map[string]any    `json:"ironic_driver_info"`       // operator extras; never override managed keys
	TargetRAIDConfig      map[string]any    `json:"target_raid_config"`
}

// Bond is ironic_settings.bond.
type Bond struct {
	Mode           string   `json:"mode"`
	Miimon         int      `json:"miimon,omitempty"`
	XmitHashPolicy string   `json:"xmit_hash_policy,omitempty"`
	Interfaces     []string `json:"interfaces,omitempty"`
}

// InspectionContext is config context inspection_validation: what an inspection
// must have found.
type InspectionContext map[string]any

// ProvisioningNIC is the NIC that Ironic boots from: the first frontend
// interface. False when there is none.
func (i *Intent) ProvisioningNIC() (FrontendNIC, bool) {
	if len(i.Frontend) == 0 {
		return FrontendNIC{}, false
	}
	return i.Frontend[0], true
}

// HasTag reports whether NetBox has the tag on the device.
func (i *Intent) HasTag(slug string) bool {
	for _, t := range i.Tags {
		if t == slug {
			return true
		}
	}
	return false
}

// Target is one device with everything that is known before a live system is
// asked.
type Target struct {
	Site     *Site
	Intent   *Intent
	Settings Settings
	Ironic   *IronicSettings // the Ironic that manages the device's class; nil when none does
}

// Name is the device's name.
func (t *Target) Name() string { return t.Intent.Name }

// Address makes an address of the device.
func (t *Target) Address(system, kind, key string) Address {
	return Address{Site: t.Site.Name, Device: t.Intent.Name, System: system, Kind: kind, Key: key}
}

// Scope is a site with the devices of one run, and what the operator asks of it.
type Scope struct {
	Site       *Site
	Targets    []*Target // sorted by name
	Parameters Parameters
	// Whole says that these are all devices of the site's classes, so that what
	// belongs to none of them belongs to nobody.
	Whole bool
	// Stale are the entries on the DHCP server that the operator wants removed, by
	// the names of their files. They are known when the server was read.
	Stale []string
	// Ownerless are entries on the DHCP server of devices that NetBox does not have, by
	// the names of their files, as far as a run for some of the site's devices asked.
	Ownerless []string
}

// Target finds a device by name; nil when it is not in scope.
func (s *Scope) Target(device string) *Target {
	for _, t := range s.Targets {
		if t.Intent.Name == device {
			return t
		}
	}
	return nil
}
