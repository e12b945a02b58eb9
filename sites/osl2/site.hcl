# A small site with an Ironic that stands alone: no Keystone, no Neutron, no Nova.
# It shares nothing with other sites, so this file is all there is.
#
# Without Neutron nodes want network_interface "noop". That is said in NetBox, in
# the config context of the site's devices, because it belongs to the node:
#
#   {
#     "ironic_settings": {
#       "driver": "redfish",
#       "interface_type": "25gbase-x-sfp28",
#       "network_interface": "noop",
#       "raid_interface": "no-raid"
#     }
#   }
#
# `enroll schema --context ironic_settings` prints a JSON Schema of it.

enroll {
  required_version = ">= 0.1"
}

site "osl2" {
  record_platform_class = false # there is no fleet manager that would want it

  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
    site  = "oslo-2" # NetBox has the site under another name
  }

  # One encrypted file beside this one is enough for three racks. The identity that
  # decrypts it is in the environment variable ENROLL_AGE_IDENTITY, not in Git.
  secrets "age" {
    file = "secrets.age"
  }

  device_class "SERVER" {
    roles = ["server"]
  }

  # endpoint instead of cloud: this Ironic wants no login. Nodes get neither an
  # owner nor a trait, because nothing schedules them.
  ironic "standalone" {
    endpoint            = "http://ironic.osl2.example.net:6385"
    device_classes      = ["SERVER"]
    inspection_deadline = "45m"
    attempts            = 1
  }

  dhcp {
    host             = "192.0.2.5"
    user             = "enroll"
    identity         = secret("dhcp", "private_key")
    known_hosts_file = "known_hosts" # the server's public keys are no secret
    service          = "dnsmasq"
    directory        = "/etc/dnsmasq.d/enroll-hosts"
    subnets          = ["192.0.2.0/26"]
  }

  bmc {
    credential    = secret("bmc/${device.name}", "password")
    restrict_boot = true

    # Without servers here NetBox's are used: the custom field ntp_servers of the
    # site, else the config context ntp.

    # The BMCs still have the certificates they were delivered with. Every run
    # warns about it until this block is gone.
    tls {
      insecure = true
      reason   = "factory certificates until the CA is rolled out"
    }
  }
}
