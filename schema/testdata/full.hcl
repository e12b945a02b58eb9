# Everything set, most of it to something else than the default.
enroll {
  required_version = ">= 0.1, < 1.0"
}

variable "port" {
  type    = number
  default = 22
}

locals {
  domain = "example.net"
}

site "lon14" {
  configure_dhcp        = true
  configure_bmc         = true
  ironic_enrol          = true
  record_platform_class = true

  netbox {
    url     = "https://netbox.${local.domain}/base/"
    token   = secret("netbox", "token")
    site    = "london-14"
    ca_file = "/etc/ssl/nb.pem"
    timeout = "10s"
  }
  secrets "vault" {
    url       = "https://vault.${local.domain}:8200/"
    mount     = "kv/infra"
    prefix    = "lon14"
    token_env = "LON14_TOKEN"
    ca_file   = "ca.pem"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
    gpu   = true
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute", "hypervisor"]
  }
  ironic "baremetal" {
    endpoint            = "http://ironic.${local.domain}:6385"
    device_classes      = ["COMPUTE_GPU"]
    enrol_project       = "2f3c"
    scheduler_trait     = "HW_ARCH_X86_64"
    cleaning_deadline   = "2h"
    inspection_deadline = "30m"
    attempts            = 2
    ca_file             = "ironic.pem"
    timeout             = "20s"
    node_lock {
      max_wait = "5m"
      backoff  = ["1s", "20s"]
    }
  }
  ironic "cpu" {
    cloud          = "lon14"
    clouds         = secret("openstack", "clouds_yaml")
    secure_file    = "secure.yaml"
    device_classes = ["COMPUTE_CPU"]
  }
  dhcp {
    host          = "dhcp1.${local.domain}"
    port          = var.port
    user          = "enroll"
    identity_file = "keys/id_ed25519"
    known_hosts   = secret("dhcp", "known_hosts")
    service       = "dnsmasq"
    directory     = "/etc/dnsmasq.d/enroll"
    unit          = "dnsmasq@bmc"
    name_suffix   = ""
    subnets       = ["192.0.2.0/24", "2001:db8::/64"]
    settle        = "0s"
    timeouts {
      connect = "5s"
      login   = "6s"
      command = "7s"
    }
  }
  bmc {
    credential    = secret("bmc/${device.name}", "password")
    username      = secret("bmc-accounts", device.class)
    ca_file       = "bmc.pem"
    restrict_boot = false
    timeout       = "15s"
    ready_budget  = "10m"
    hostname      = try(device.custom_fields.bmc_name, device.name)
    ntp_servers   = ["ntp1.${local.domain}", "ntp-${device.site}.${local.domain}"]
  }
}
