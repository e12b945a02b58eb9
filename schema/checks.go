package schema

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // isTimeZone does not depend on the machine
)

// The checks of single texts. Each error completes a sentence that begins with
// the attribute's name and says what to write instead. They never repeat the
// text: it stands in the snippet, which knows what to hide.

var (
	slugForm       = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?$`)
	nameForm       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_. -]*$`)
	identifierForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	variableForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	traitForm      = regexp.MustCompile(`^[A-Z0-9_]{1,255}$`)
	userForm       = regexp.MustCompile(`^[a-z_][a-z0-9_.-]{0,31}$`)
	unitForm       = regexp.MustCompile(`^[A-Za-z0-9_@.-]+$`)
	directoryForm  = regexp.MustCompile(`^/[A-Za-z0-9_./+-]*$`)
	suffixForm     = regexp.MustCompile(`^[a-z0-9-]*[a-z0-9]$`)
	vaultForm      = regexp.MustCompile(`^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*$`)
	hostLabelForm  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	zoneForm       = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+/-]*$`)
	pciVendorForm  = regexp.MustCompile(`^(0x)?[0-9A-Fa-f]{4}$`)
	pciDeviceForm  = regexp.MustCompile(`^(0x)?[0-9A-Fa-f]{4}:(0x)?[0-9A-Fa-f]{4}$`)
	pinForm        = regexp.MustCompile(`^sha256:[0-9a-fA-F]{64}$`)
	platformForm   = regexp.MustCompile(`^[A-Z0-9]+(?:_[A-Z0-9]+){0,3}$`)
	resourceForm   = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	onlyDigitsForm = regexp.MustCompile(`^[0-9.]+$`)
)

var (
	errAbsoluteInclude = errors.New("must be a path that begins at this folder, for example \"../common\"")
	errIncludeForm     = errors.New("must be written with forward slashes")
)

func form(re *regexp.Regexp, problem string) func(string) error {
	return func(s string) error {
		if !re.MatchString(s) {
			return errors.New(problem)
		}
		return nil
	}
}

func isSlug(s string) error {
	return form(slugForm, "must be a slug: lower case letters, digits, hyphens, for example \"lon14\" or \"gpu-compute\"")(s)
}

func isName(s string) error {
	return form(nameForm, "must be a name of letters, digits, hyphens, dots and underscores")(s)
}

// isProject refuses what a script writes where it found no project: Ironic takes it,
// and the node belongs to nobody.
func isProject(s string) error {
	switch strings.ToLower(s) {
	case "none", "null", "nil", "undefined":
		return errors.New("must be the id of a project, not a placeholder; leave the attribute out for nodes without one")
	}
	return isName(s)
}

func isIdentifier(s string) error {
	return form(identifierForm, "must be a name of letters, digits and underscores that does not begin with a digit")(s)
}

func isVariableName(s string) error {
	return form(variableForm, "must be the name of an environment variable: letters, digits and underscores")(s)
}

func isTrait(s string) error {
	return form(traitForm, "must be a trait: upper case letters, digits and underscores, for example \"HW_ARCH_X86_64\"")(s)
}

func isUnixUser(s string) error {
	return form(userForm, "must be the name of a Unix account, for example \"enroll\"")(s)
}

func isUnit(s string) error {
	return form(unitForm, "must be the name of a systemd unit, for example \"dnsmasq\"")(s)
}

func isVaultPath(s string) error {
	if !vaultForm.MatchString(s) || hasDotSegment(s) {
		return errors.New("must be a path without a slash at either end and without \"..\", for example \"secret\" or \"sites/lon14\"")
	}
	return nil
}

// isConnectVault refuses what would end the quotation in the search for a title.
func isConnectVault(s string) error {
	if strings.ContainsAny(s, `"\\`) {
		return errors.New("must not hold quotation marks or backslashes; write the vault's id instead")
	}
	return nil
}

func isHostSuffix(s string) error {
	return form(suffixForm, "must be something that can end a host name: lower case letters, digits and hyphens, for example \"-bmc\"")(s)
}

func hasDotSegment(s string) bool {
	for _, part := range strings.Split(s, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// isRemoteDirectory refuses what a shell or sftp could take for something else:
// the path is written into commands on the DHCP server.
func isRemoteDirectory(s string) error {
	switch {
	case !strings.HasPrefix(s, "/"):
		return errors.New("must be an absolute path on the DHCP server; begin it with a slash")
	case !directoryForm.MatchString(s):
		return errors.New("may hold letters, digits and the characters / . _ - + only")
	case hasDotSegment(s) || strings.Contains(s, "//"):
		return errors.New("must be the plain path, without \".\", \"..\" or double slashes")
	case strings.Trim(s, "/") == "":
		return errors.New("must be a folder of enroll's own, not the root of the file system")
	}
	return nil
}

func isPath(s string) error {
	if strings.HasPrefix(s, "~") {
		return errors.New("must not begin with \"~\", which only a shell understands; write the whole path, or one that begins at the site's folder")
	}
	return nil
}

// isServiceURL wants scheme, host and perhaps a path. Credentials in an address
// would end up in logs.
func isServiceURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("must be an address such as \"https://netbox.example.net\"")
	case u.Scheme == "" || u.Host == "" && u.Opaque != "":
		return errors.New("must begin with https:// or http://")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("must begin with https:// or http://, not %s://", u.Scheme)
	case u.User != nil:
		return errors.New("must not hold a user or password; give credentials by secret(\"ITEM\", \"FIELD\")")
	case u.Hostname() == "":
		return errors.New("has no host after the scheme")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must be a base address, without \"?\" and \"#\"")
	}
	if err := isHost(u.Hostname()); err != nil {
		return errors.New("has a host that is neither a name nor an address")
	}
	return nil
}

// isHost takes a DNS name or an IP address.
func isHost(s string) error {
	if _, err := netip.ParseAddr(s); err == nil {
		return nil
	}
	if onlyDigitsForm.MatchString(s) {
		return errors.New("looks like an IP address and is none; an IPv4 address has four numbers up to 255")
	}
	if strings.Contains(s, "/") {
		return errors.New("must be one host; leave out everything from the slash on")
	}
	if len(s) > 253 || !hostLabels(strings.TrimSuffix(s, ".")) {
		return errors.New("must be a host name or an IP address")
	}
	return nil
}

// isJumpHost takes [USER@]HOST[:PORT], with an IPv6 address in brackets.
func isJumpHost(s string) error {
	user, host, named := strings.Cut(s, "@")
	if !named {
		host = s
	} else if err := isUnixUser(user); err != nil {
		return err
	}
	if name, port, err := net.SplitHostPort(host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("must end with a port from 1 to 65535, or without one")
		}
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return isHost(host)
}

func hostLabels(s string) bool {
	for _, part := range strings.Split(s, ".") {
		if !hostLabelForm.MatchString(part) {
			return false
		}
	}
	return true
}

// isHostName takes what a BMC accepts as its own name: labels of RFC 1123.
func isHostName(s string) error {
	if len(s) > 253 || !hostLabels(s) {
		return errors.New("must be a host name: letters, digits and hyphens, labels of at most 63 characters")
	}
	return nil
}

// isSubnet wants a network that can serve leases.
func isSubnet(s string) error {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return errors.New("must be a network in CIDR form, for example \"192.0.2.0/24\"")
	case p.Masked() != p:
		return fmt.Errorf("has bits set beyond its prefix length; the network is %q", p.Masked())
	case p.Addr().IsMulticast() || p.Bits() == 0 || p.Addr().Is4() && p.Addr().As4()[0] >= 240:
		return errors.New("has no usable host address")
	case p.Addr().Is4In6():
		return errors.New("must be written as an IPv4 network")
	case p.Addr().BitLen()-p.Bits() < 2:
		return fmt.Errorf("has no usable host address: a network of %d bits is a single host or a link of two", p.Bits())
	}
	return nil
}

// isRemoteFile is a file on the DHCP server; its path is written into commands.
func isRemoteFile(s string) error {
	if err := isRemoteDirectory(s); err != nil {
		return err
	}
	if strings.HasSuffix(s, "/") {
		return errors.New("must be a file, not a folder; leave out the slash at its end")
	}
	return nil
}

// isControl is where Kea takes commands.
func isControl(s string) error {
	if strings.HasPrefix(s, "/") {
		return isRemoteFile(s)
	}
	host, port, err := net.SplitHostPort(s)
	if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 1 || n > 65535 || isHost(host) != nil {
		return errors.New("must be HOST:PORT of the control agent, or the absolute path of the control socket")
	}
	return nil
}

var (
	dhcpOption = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]*$`)
	dhcpValue  = regexp.MustCompile(`^[ !"$-:=>?-\[\]-z|~]+$`)
)

func isDHCPOption(s string) error {
	if !dhcpOption.MatchString(s) {
		return errors.New("must be letters, digits, dots and hyphens, beginning with a letter")
	}
	return nil
}

// isDHCPValue refuses what would end a statement, a block or a text in one of the
// servers' languages.
func isDHCPValue(s string) error {
	if !dhcpValue.MatchString(s) || strings.Count(s, "\"")%2 != 0 {
		return errors.New("must be printable text without ; { } # < and backslash, and close its quotes")
	}
	return nil
}

// isTimeZone wants a name of the IANA database. The database is part of the
// program, so that all machines agree.
func isTimeZone(s string) error {
	if s == "" || s == "Local" || !zoneForm.MatchString(s) || hasDotSegment(s) {
		return errors.New("must be the IANA name of a time zone, for example \"Europe/London\" or \"UTC\"")
	}
	if _, err := time.LoadLocation(s); err != nil {
		return errors.New("is no time zone of the IANA database; write for example \"Europe/London\" or \"UTC\"")
	}
	return nil
}

// isPin wants a fingerprint of a certificate.
func isPin(s string) error {
	return form(pinForm, "must be \"sha256:\" and 64 hexadecimal digits, as `openssl x509 -fingerprint -sha256` prints them without colons")(s)
}

// isOldCipher wants a cipher suite that is not offered without asking.
func isOldCipher(s string) error {
	var names []string
	for _, c := range tls.InsecureCipherSuites() {
		if c.Name == s {
			return nil
		}
		names = append(names, c.Name)
	}
	return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
}

// maxPlatformClass is the fleet manager's bound; NetBox would take more.
const maxPlatformClass = 128

// isPlatformClass wants a platform class, or the part of it that is made of
// manufacturer and model.
func isPlatformClass(s string) error {
	switch {
	case len(s) > maxPlatformClass:
		return fmt.Errorf("is longer than %d characters, so no platform class can be the same", maxPlatformClass)
	case !platformForm.MatchString(s):
		return errors.New("must be manufacturer and model in upper case, letters and digits only, for example \"DELLPOWEREDGEXE9680\", or a whole platform class, for example \"H200_DELLPOWEREDGEXE9680_IB_01\"")
	}
	return nil
}

func isResourceID(s string) error {
	return form(resourceForm, "must be the id of a Redfish resource, for example \"BMC\" or \"iDRAC.Embedded.1\"")(s)
}

// isRedfishAddress wants scheme://host[:port][/redfish/v1/Systems/ID].
func isRedfishAddress(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return errors.New("is not scheme://host:port[/redfish/v1/Systems/ID]")
	}
	id, inSystems := strings.CutPrefix(strings.TrimSuffix(u.Path, "/"), "/redfish/v1/Systems/")
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is not scheme://host:port[/redfish/v1/Systems/ID]")
	case u.User != nil:
		return errors.New("holds a user name or password; credentials stand in the vault")
	case u.Path != "" && u.Path != "/" && (!inSystems || id == "" || strings.Contains(id, "/")):
		return errors.New("has a path; only /redfish/v1/Systems/ID may follow the port")
	}
	return nil
}

// isPCIVendor and isPCIDevice want ids as the PCI bus has them.
func isPCIVendor(s string) error {
	return form(pciVendorForm, "must be a PCI vendor id of four hexadecimal digits, such as 0x15b3")(s)
}

func isPCIDevice(s string) error {
	return form(pciDeviceForm, "must be a PCI vendor and product id, such as 10de:2330")(s)
}
