package plan

import "time"

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

	ConfigureDHCP       bool
	ConfigureBMC        bool
	IronicEnrol         bool
	RecordPlatformClass bool

	// Files are the HCL files read, in order, by their names in Dir, with their
	// SHA-256; the plan records them as inputs.
	Files []SourceFile
	// Set says where an attribute was set, by its path below the site block
	// ("dhcp.host" → "sites/demo/site.hcl:31"). Defaults have no entry.
	Set map[string]string
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
	URL     string
	Token   SecretRef
	Site    string // slug of the NetBox site; default: the site's name
	CAFile  string
	Timeout time.Duration // of one request
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
	Service        string // kea, isc, dnsmasq
	Directory      string // absolute; where the per-host files stand
	Unit           string // systemd unit, default by service
	NameSuffix     string // appended to the device name for host and file name, default "-bmc"
	Subnets        []string
	Timeouts       DHCPTimeouts
	Settle         time.Duration // pause before the second health look
}

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
}

// Settings are the parts of a site that depend on the device: expressions with
// device.* evaluated for it.
type Settings struct {
	BMCUsername SecretRef // field "username" beside the password unless the site names another
	BMCPassword SecretRef
	NTPServers  []string // wanted on the BMC; empty means: do not touch
	Hostname    string   // wanted on the BMC; default the device's name
	// Set says where each of them comes from ("bmc.ntp" → file:line or NetBox URL).
	Set map[string]string
}
