package plan

import (
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
)

// kindForm is the form of a kind's addresses.
type kindForm struct {
	keyed  bool // SYSTEM.KIND[KEY]
	shared bool // SITE/SYSTEM.KIND, without a device
	later  bool // part of the design; no version that has this table makes one
}

// kindForms are all kinds of resources (design section 5). Patterns are held
// against it; a test holds the providers' kinds against it.
var kindForms = map[string]kindForm{ //nolint:gochecknoglobals // a constant table
	"netbox.status": {}, "netbox.tag": {keyed: true}, "netbox.platform_class": {},
	"dhcp.reservation": {}, "dhcp.service": {shared: true}, "dhcp.index": {shared: true}, "dhcp.stale": {keyed: true, shared: true},
	"bmc.credential": {}, "bmc.hostname": {}, "bmc.ntp": {}, "bmc.time_zone": {}, "bmc.boot_order": {},
	"bmc.reset": {}, "bmc.network": {}, "bmc.security": {}, "bmc.syslog": {}, "bmc.bios": {},
	"bmc.ipmi_user": {}, "bmc.ipmi_lan": {}, "bmc.virtual_media": {},
	"ironic.node": {}, "ironic.portgroup": {keyed: true}, "ironic.port": {keyed: true}, "ironic.provision": {keyed: true}, "ironic.power": {},
	"ironic.credential": {}, "ironic.trait": {keyed: true}, "ironic.raid_interface": {}, "ironic.root_device": {},
	"ironic.maintenance": {}, "ironic.raid_config": {}, "ironic.inspection": {later: true}, "ironic.driver": {},
	"check.lldp": {keyed: true}, "check.inspection": {keyed: true}, "check.link": {}, "check.ipmi": {},
}

// KindNames lists the kinds of resources that this version makes, sorted.
func KindNames() []string {
	var names []string
	for name, form := range kindForms {
		if !form.later {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// CheckPattern refuses address patterns that no address can fit: a rule that
// never applies would pass in silence. The error completes the sentence "the
// pattern …".
func CheckPattern(pattern string) error {
	probe := Address{Site: "s", Device: "d", System: "bmc", Kind: "k"}
	if _, err := probe.Match(pattern); err != nil {
		return errors.New("cannot be read: a backslash stands at its end")
	}
	whole, _, hasKey := strings.Cut(pattern, "[")
	slashes := strings.Count(whole, "/")
	local := whole[strings.LastIndexByte(whole, '/')+1:]
	system, kind, dotted := strings.Cut(local, ".")
	switch {
	case pattern == "":
		return errors.New("is empty; write for example \"*/bmc.ntp\"")
	case slashes > 2:
		return errors.New("has more parts than an address, which is SITE/DEVICE/SYSTEM.KIND[KEY]")
	case hasKey && !strings.HasSuffix(pattern, "]"):
		return errors.New("has a bracket that is not closed at its end")
	case !dotted && strings.ContainsAny(system, "*?"):
		return nil // every kind, as in "gpu-001/*"
	case !dotted || kind == "":
		return errors.New("does not end with SYSTEM.KIND; write for example \"*/bmc.ntp\" or \"*/bmc.*\"")
	}
	return checkKind(local, hasKey, slashes)
}

// checkKind holds the last part of a pattern against the kinds that there are.
func checkKind(local string, hasKey bool, slashes int) error {
	var fits, keyed, shared int
	for name, form := range kindForms {
		if ok, err := path.Match(local, name); err != nil || !ok {
			continue
		}
		fits++
		if form.keyed {
			keyed++
		}
		if form.shared {
			shared++
		}
	}
	wild := strings.HasSuffix(local, "*") // fits keys too
	switch {
	case fits == 0:
		return fmt.Errorf("names no kind of resource; those of this version are %s", strings.Join(KindNames(), ", "))
	case keyed == fits && !hasKey && !wild:
		return fmt.Errorf("fits nothing without a key: write %s[*]", local)
	case keyed == 0 && hasKey:
		return fmt.Errorf("has a key, and %s has none", local)
	case shared == fits && slashes == 2:
		return fmt.Errorf("has a device, and %s is shared by the site: write \"*/%s\"", local, local)
	case shared == 0 && slashes == 0:
		return errors.New("fits no device; begin it with \"*/\"")
	}
	return nil
}
