package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// siteHCL is the site folder's only file. Everything secret is in the vault.
const siteHCL = `# The site of the embedded lab. The addresses are those of this run's simulators.
site "%[1]s" {
  netbox {
    url   = "%[2]s"
    token = secret("netbox-enroll", "credential")
  }

  secrets "vault" {
    url = "%[3]s"
  }

  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
    gpu   = true
  }

  ironic "baremetal" {
    endpoint       = "%[4]s"
    device_classes = ["COMPUTE_GPU"]
  }

  dhcp {
    host        = "%[5]s"
    port        = %[6]d
    user        = "%[7]s"
    identity    = secret("ssh-config-dhcp", "private_key")
    known_hosts = secret("ssh-config-dhcp", "known_hosts")
    service     = "dnsmasq"
    directory   = "%[8]s"
    subnets     = ["198.18.0.0/15"]
    settle      = "100ms"
  }

  bmc {
    credential  = secret("bmc-${device.name}", "password")
    ca_file     = "bmc-ca.pem"
    ntp_servers = ["ntp1.example.net", "ntp2.example.net"]
  }

  record_platform_class = true
%[9]s}
`

// writeSite writes the site file, with blocks of a scenario at its end.
func (l *Lab) writeSite(blocks string) error {
	hcl := fmt.Sprintf(siteHCL, SiteName, l.NetBox.URL, l.Vault.URL, l.Ironic.URL, l.DHCP.Host, l.DHCP.Port, l.DHCP.User, hostsDir, blocks)
	return os.WriteFile(filepath.Join(l.dir, "site", "site.hcl"), []byte(hcl), 0o600)
}

// write makes the site folder and the environment file.
func (l *Lab) write() error {
	site := filepath.Join(l.dir, "site")
	if err := os.MkdirAll(site, 0o700); err != nil {
		return err
	}
	if err := l.writeSite(""); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(site, "bmc-ca.pem"), l.BMC.CA(), 0o600); err != nil {
		return err
	}
	env := "export ENROLL_LAB=embedded\nexport ENROLL_SITE=" + quote(site) + "\nexport VAULT_TOKEN=" + quote(l.Vault.Token) +
		"\n# Where the DHCP machine answers relay agents: for enroll verify --dhcp DEVICE --relay 127.0.0.1:0 --server\nexport ENROLL_LAB_WIRE=" + quote(l.DHCP.Wire.String()) + "\n"
	return os.WriteFile(filepath.Join(l.dir, "env"), []byte(env), 0o600)
}

// quote makes a word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
