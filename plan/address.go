package plan

import (
	"fmt"
	"path"
	"strings"
)

// Address names one resource: SITE/DEVICE/SYSTEM.KIND[KEY], for example
// lon14/gpu-017/ironic.port[eth0]. What the devices of a site share has no
// device part: lon14/dhcp.service.
type Address struct {
	Site   string
	Device string // empty for what a site's devices share
	System string // netbox, dhcp, bmc, ironic or check
	Kind   string // ntp, port, provision, …
	Key    string // empty where a device has one resource of the kind
}

// KindName is SYSTEM.KIND, the name under which rules are registered.
func (a Address) KindName() string { return a.System + "." + a.Kind }

// Shared reports whether the resource belongs to the site, not to one device.
func (a Address) Shared() bool { return a.Device == "" }

// Local is the address without its site and device: SYSTEM.KIND[KEY].
func (a Address) Local() string {
	if a.Key == "" {
		return a.KindName()
	}
	return a.KindName() + "[" + a.Key + "]"
}

func (a Address) String() string {
	if a.Device == "" {
		return a.Site + "/" + a.Local()
	}
	return a.Site + "/" + a.Device + "/" + a.Local()
}

// MarshalText writes the address as String does.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *Address) UnmarshalText(b []byte) error {
	parsed, err := ParseAddress(string(b))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// ParseAddress reads the text form of an address. The error names the part
// that is missing.
func ParseAddress(s string) (Address, error) {
	local, key := s, ""
	if i := strings.IndexByte(s, '['); i >= 0 {
		if !strings.HasSuffix(s, "]") {
			return Address{}, fmt.Errorf("address %q: the key that begins with %q has no closing bracket", s, s[i:])
		}
		local, key = s[:i], s[i+1:len(s)-1]
		if key == "" {
			return Address{}, fmt.Errorf("address %q: the key between the brackets is empty", s)
		}
	}
	parts := strings.Split(local, "/")
	if len(parts) != 2 && len(parts) != 3 {
		return Address{}, fmt.Errorf("address %q: want SITE/DEVICE/SYSTEM.KIND[KEY] or SITE/SYSTEM.KIND", s)
	}
	system, kind, found := strings.Cut(parts[len(parts)-1], ".")
	if !found || system == "" || kind == "" {
		return Address{}, fmt.Errorf("address %q: the last part must be SYSTEM.KIND, for example bmc.ntp", s)
	}
	a := Address{Site: parts[0], System: system, Kind: kind, Key: key}
	if len(parts) == 3 {
		if parts[1] == "" {
			return Address{}, fmt.Errorf("address %q: the device between the slashes is empty", s)
		}
		a.Device = parts[1]
	}
	if a.Site == "" {
		return Address{}, fmt.Errorf("address %q: the site before the first slash is empty", s)
	}
	return a, nil
}

// Match reports whether the address fits a glob over its text form. A pattern
// may leave out the site, or site and device: "demo/gpu-017/bmc.ntp",
// "gpu-017/bmc.*", "*/dhcp.*" and "bmc.ntp" work as people write them. "*" does
// not cross a slash; brackets are literal.
func (a Address) Match(pattern string) (bool, error) {
	quoted := strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern)
	whole, err := path.Match(quoted, a.String())
	if err != nil {
		return false, fmt.Errorf("address pattern %q: %w", pattern, err)
	}
	if whole {
		return true, nil
	}
	_, rest, _ := strings.Cut(a.String(), "/")
	for _, part := range []string{rest, a.Local()} {
		if ok, err := path.Match(quoted, part); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
