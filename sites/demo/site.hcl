# A site file to copy. All files with the ending .hcl of a folder are read as
# one, so this may be split as you like. `enroll validate sites/demo` checks it
# without any network; schema/REFERENCE.md lists every attribute.
#
# A site file holds no secret. secret("ITEM", "FIELD") is a reference; where it is
# read is what the secrets block says.

enroll {
  required_version = ">= 0.1"
}

variable "domain" {
  type        = string
  default     = "example.net"
  description = "the domain of the site's servers"
}

site "demo" {
  # What enroll takes care of. All but the last are on by default.
  configure_dhcp        = true
  configure_bmc         = true
  ironic_enrol          = true
  record_platform_class = true

  # Intent is read here. The token may view devices and change dcim.device.
  netbox {
    url   = "https://netbox.${var.domain}"
    token = secret("netbox", "token")
  }

  # secret("netbox", "token") is the variable ENROLL_SECRET_NETBOX_TOKEN. For a
  # real site use secrets "vault"; sites/lab shows it.
  secrets "env" {}

  # NetBox device roles, grouped into classes.
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
    gpu   = true
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute", "hypervisor"]
  }

  # An Ironic and the classes that it manages. cloud = "NAME" instead of endpoint
  # takes an entry of clouds.yaml.
  ironic "baremetal" {
    endpoint       = "https://ironic.${var.domain}:6385"
    device_classes = ["COMPUTE_GPU", "COMPUTE_CPU"]

    node_lock {
      max_wait = "15m"
      backoff  = ["10s", "60s"]
    }
  }

  # The DHCP server of the BMC network, over SSH.
  dhcp {
    host        = "dhcp1.${var.domain}"
    user        = "enroll"
    identity    = secret("dhcp", "private_key")
    known_hosts = secret("dhcp", "known_hosts")
    service     = "dnsmasq"
    directory   = "/etc/dnsmasq.d/enroll-hosts"
    subnets     = ["192.0.2.0/24"]
  }

  # device.* is the device that NetBox records: each has an item of its own with
  # the fields username and password.
  bmc {
    credential  = secret("bmc-${device.name}", "password")
    hostname    = "${device.name}-bmc"
    ntp_servers = ["ntp1.${var.domain}", "ntp2.${var.domain}"]
  }
}
