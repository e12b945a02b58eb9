package plan

import (
	"slices"
	"time"
)

// Site is what the HCL files of one site say, as plain data. Durations are
// final (defaults applied); secrets are references.
type Site struct {
	Name    string
	Dir     string // the folder that was read, as the user gave it
	NetBox  NetBoxSettings
	Secrets SecretsSettings
	Classes []DeviceClass
	Ironics []IronicSettings
	DHCP    *DHCPSettings // nil: the site has no dhcp block
	BMC     *BMCSettings  // nil: the site has no bmc block

	Verification Verification

	Limits     Limits
	OwnedNodes OwnedNodes

	ConfigureDHCP       bool
	ConfigureBMC        bool
	IronicEnrol         bool
	RecordPlatformClass bool

	Policies    []Policy     // in the order of their names
	Tolerations []Toleration // in the order of their names

	// Files are the HCL files read, in order, by their names in Dir, with their
	// SHA-256; the plan records them as inputs.
	Files []SourceFile
	// Includes are the folders that the site's folder includes, as they were read.
	Includes []IncludedFolder
	// Set says where an attribute was set, by its path below the site block
	// ("dhcp.host" → "sites/demo/site.hcl:31"). Defaults have no entry.
	Set map[string]string
}

// IncludedFolder is a folder that the site shares with others.
type IncludedFolder struct {
	Dir string // as it was opened, so that paths begin with it
	Rel string // seen from the site's folder
}

// SourceFile is one file that was read.
type SourceFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// DeviceClass maps NetBox device roles to a class that an Ironic manages.
type DeviceClass struct {
	Name  string   // COMPUTE_GPU
	Roles []string // slugs of NetBox device roles
	GPU   bool
}

// NetBoxSettings says how NetBox is reached.
type NetBoxSettings struct {
	URL   string
	Token SecretRef
	Site  string // slug of the NetBox site; default: the site's name
	// AllowUnplaced takes devices that NetBox has in a rack without a position.
	AllowUnplaced bool
	CAFile        string
	Timeout       time.Duration // of one request
}

// SecretsSettings says where secrets are read. Beside each field stand the
// backends that use it.
type SecretsSettings struct {
	Backend string        // env, vault, onepassword, age or command
	Timeout time.Duration // vault, onepassword: of one request; command: of one run
	CAFile  string        // vault, onepassword
	URL     string        // vault, onepassword

	// TokenEnv and TokenFile say where the caller's token is; at most one is set
	// by the site. vault: default VAULT_TOKEN; onepassword: default OP_CONNECT_TOKEN.
	TokenEnv  string
	TokenFile string

	Prefix    string // vault: path before the item; env: prefix of the variable, default ENROLL_SECRET
	Mount     string // vault: mount of the KV version 2 engine, default "secret"
	Namespace string // vault: empty is the root
	// AppRole and Kubernetes are the ways to a vault token beside having one; at
	// most one is set.
	AppRole    *VaultAppRole
	Kubernetes *VaultKubernetes

	Vault string // onepassword: title or id of the vault

	File         string // age: the encrypted file
	IdentityEnv  string // age: the variable with the identity
	IdentityFile string // age: the file with the identity

	Argv []string // command: the program and its arguments; "{item}" stands for the item
}

// VaultAppRole logs in at a vault's AppRole engine.
type VaultAppRole struct {
	Mount        string // of the engine, default "approle"
	RoleID       string
	SecretIDEnv  string // one of the two
	SecretIDFile string
}

// VaultKubernetes logs in at a vault's Kubernetes engine with the token of the
// pod's service account.
type VaultKubernetes struct {
	Mount     string // of the engine, default "kubernetes"
	Role      string
	TokenFile string
}

// IronicSettings is one Ironic and what enroll wants there.
type IronicSettings struct {
	Name     string
	Endpoint string // standalone Ironic without Keystone; else Cloud
	Cloud    string // an entry of clouds.yaml
	// Clouds and Secure are the texts of clouds.yaml and secure.yaml in the vault,
	// CloudsFile and SecureFile their file forms. Without any of them they are
	// looked for in the usual places of OpenStack's clients.
	Clouds, Secure         SecretRef
	CloudsFile, SecureFile string
	DeviceClasses          []string
	EnrolProject           string // owner and lessee of new nodes
	SchedulerTrait         string
	CleaningDeadline       time.Duration
	InspectDeadline        time.Duration
	LockMaxWait            time.Duration // budget for "is locked by host"
	LockBackoffMin         time.Duration
	LockBackoffMax         time.Duration
	Attempts               int
	CAFile                 string
	Timeout                time.Duration // of one request
	// SwitchToIPMI asks for the driver ipmi after inspection; SwitchPlatforms for
	// platforms alone, by the names of Intent.PlatformNames.
	SwitchToIPMI    bool
	SwitchPlatforms []string
}

// DHCPSettings is the DHCP server of the site.
type DHCPSettings struct {
	Host       string
	Port       int
	User       string
	Identity   SecretRef // the private key
	KnownHosts SecretRef // the known_hosts lines
	// IdentityFile and KnownHostsFile are the file forms of the two.
	IdentityFile   string
	KnownHostsFile string
	Passphrase     SecretRef // of the private key; zero: it has none
	Agent          bool      // the keys of the caller's ssh-agent are offered too
	ProxyJump      string    // [USER@]HOST[:PORT] of a jump host
	Service        string    // kea, isc, dnsmasq
	Directory      string    // absolute; where the per-host files stand
	Unit           string    // systemd unit, default by service
	NameSuffix     string    // appended to the device name for host and file name, default "-bmc"
	Subnets        []string
	Timeouts       DHCPTimeouts
	Settle         time.Duration // pause before the second health look
	// Config is the absolute path of the server's main configuration file. It is
	// read, and checked before a restart; never written.
	Config string
	// IPv6 says that it is a DHCPv6 service: Kea's kea-dhcp6, or dhcpd -6.
	IPv6 bool
	// Options are added to every reservation, in this order (Kea, ISC).
	Options []DHCPOption
	// Apply is how changes go live: "reload" or "restart"; default by service.
	Apply string
	// Control is where Kea takes commands, seen from the server: HOST:PORT of its
	// control agent, or the absolute path of the control socket.
	Control string
}

// DHCPOption is an option of a reservation, in the words of the server's own
// language.
type DHCPOption struct{ Name, Value string }

// DHCPTimeouts are the four independent deadlines of the reference workflow.
type DHCPTimeouts struct {
	Connect, Login, Command, Transfer time.Duration
}

// BMCSettings is what a site wants of its BMCs, as far as it is the same for
// every device.
type BMCSettings struct {
	CAFile         string
	Insecure       bool
	InsecureReason string
	RestrictBoot   bool
	Timeout        time.Duration // of one request
	ReadyBudget    time.Duration // how long a BMC may take to appear after its DHCP entry went live

	Pins          []string // "sha256:HEX" of certificates that are accepted
	RelearnPins   bool     // accept the new certificate of a pinned BMC after enroll reset or renamed it
	MinTLSVersion string   // "1.2" or "1.3": the lowest that enroll speaks
	Ciphers       []string // old cipher suites, by Go's names, that are offered beside the usual ones

	Syslog              *SyslogSettings
	Security            *SecuritySettings
	BIOS                []BIOSSettings
	IDRAC, XCC, AMI     *VendorSettings // nil: the site says nothing
	Supermicro, Generic *VendorSettings

	// Monitoring and MonitoringUser are the account that monitoring uses; zero: none.
	Monitoring, MonitoringUser SecretRef
	MonitoringRole             string // ReadOnly, Operator, Administrator
	VerifyIPMI                 bool   // prove the account by a login over IPMI

	TimeZone string // IANA name; empty: left alone
}

// SyslogSettings is where BMCs send their logs; the servers depend on the
// device.
type SyslogSettings struct {
	Port     int
	Protocol string // udp, tcp, tls
}

// SecuritySettings is what a BMC offers. Nil and empty mean: left as it is.
type SecuritySettings struct {
	HTTP, SSH, Telnet, VNC, SSDP, HostInterface *bool
	SNMP                                        string // off, v3, all
	MinTLSVersion                               string // 1.2, 1.3: of the BMC's own server
	LockoutAttempts                             *int   // 0: never
	LockoutDuration                             time.Duration
}

// BIOSSettings are the BIOS attributes of one platform class.
type BIOSSettings struct {
	Class      string         // a platform class, or the part of manufacturer and model
	Attributes map[string]any // by registry name; string, int64, float64 or bool
}

// VendorSettings is what only one family has. Nil means: left as it is, for
// RestrictBoot: as the whole site.
type VendorSettings struct {
	RestrictBoot     *bool
	Attributes       map[string]any // iDRAC
	Lockdown         *bool          // iDRAC, Supermicro
	IPBlocking       *bool          // iDRAC
	KCS              *bool          // XCC
	FirmwareRollback *bool          // XCC
	VirtualMedia     *bool          // AMI
	Manager          string         // generic: the manager's id
}

// Limits say how much happens at once.
type Limits struct {
	Devices        int
	RequestsPerBMC int
	Reboots        int // hosts of the site
	RebootsPerRack int
	DHCPBatch      int // reservations that share one restart
}

// OwnedNodes says which kinds are mended on owned nodes; none by default.
type OwnedNodes struct {
	Release []string // SYSTEM.KIND without reboot, bmc_reset, power and credential
}

// Releases reports whether a step may run on an owned node: its kind is released,
// and it has none of the effects that a tenant would notice, which nothing releases.
func (o OwnedNodes) Releases(s *Step) bool {
	for _, e := range s.Effects {
		switch e { //nolint:exhaustive // a service beside the machine may restart
		case EffectReboot, EffectBMCReset, EffectPower, EffectCredential, EffectErase, EffectIrreversible:
			return false
		}
	}
	return slices.Contains(o.Release, s.Address.KindName())
}

// Verification says which differences between names that LLDP announces and those
// of NetBox do not count, by the slug of the switch's platform.
type Verification struct {
	PortNames   map[string][]string // case, spaces, abbreviation, leading_zeros
	SwitchNames map[string][]string // case, domain
}

// Settings are the parts of a site that depend on the device: expressions with
// device.* evaluated for it.
type Settings struct {
	BMCUsername   SecretRef // field "username" beside the password unless the site names another
	BMCPassword   SecretRef
	BMCFactory    SecretRef `json:",omitzero"` // the password that the maker set; zero: nobody knows
	NTPServers    []string  // wanted on the BMC; empty means: do not touch
	Hostname      string    // wanted on the BMC; default the device's name
	SyslogServers []string  // wanted on the BMC
	// Set says where each of them comes from ("bmc.ntp" → file:line or NetBox URL).
	Set map[string]string
}
