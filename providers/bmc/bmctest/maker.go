package bmctest

import (
	"strings"
	"time"
)

// The makers of BMCs.
const (
	Generic    = "generic" // as OpenBMC builds are
	IDRAC      = "idrac"
	XCC        = "xcc"
	AMI        = "ami"
	Supermicro = "supermicro"
)

// maker is how the trees of a family look, as data.
type maker struct {
	system, manager, nic string // ids
	model                string
	registry             string // of general messages, with its version
	lockAfter            int
	idle                 time.Duration // of sessions
	weakETag             bool
	bodyETag             bool // ETags stand in the body too
	expands              bool // $expand
	ifMatch              bool // 428 to a PATCH without
	managerResets        []any
	resetInfo            bool   // allowable values of resets stand in an ActionInfo only
	settings             string // last part of the system's settings object; "" has none
	biosSettings         string // last part of the BIOS's settings object; "" has none
	resource             func(b *BMC, path string) object
	root                 func(b *BMC, root object)
	change               func(b *BMC, path string) map[string]setter
	action               func(b *BMC, path string) action
}

func makers() map[string]maker {
	return map[string]maker{
		Generic:    openBMC(),
		IDRAC:      dell(),
		XCC:        lenovo(),
		AMI:        megarac(),
		Supermicro: smc(),
	}
}

func (b *BMC) systemPath() string    { return rootPath + "/Systems/" + b.maker.system }
func (b *BMC) managerPath() string   { return rootPath + "/Managers/" + b.maker.manager }
func (b *BMC) interfacePath() string { return b.managerPath() + "/EthernetInterfaces/" + b.maker.nic }
func (b *BMC) protocolPath() string  { return b.managerPath() + "/NetworkProtocol" }
func (b *BMC) biosPath() string      { return b.systemPath() + "/Bios" }

// base makes a message id of the maker's general registry.
func (b *BMC) base(message string) string { return b.maker.registry + "." + message }

func last(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
