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

    allow_unplaced = true
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
    switch_to_ipmi_after_inspection = true
    switch_to_ipmi_platforms        = ["LENOVOHG635NV2", "H200_DELLPOWEREDGEXE9680_IB_01"]
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
    monitoring    = secret("ipmi_exporter", "password")
    username      = secret("bmc-accounts", device.class)
    restrict_boot = false
    timeout       = "15s"
    ready_budget  = "10m"
    hostname      = try(device.custom_fields.bmc_name, device.name)
    ntp {
      servers   = ["ntp1.${local.domain}", "ntp-${device.site}.${local.domain}"]
      time_zone = "Europe/London"
    }
    syslog {
      servers  = ["syslog-${device.site}.${local.domain}"]
      port     = 6514
      protocol = "tls"
    }
    security {
      http             = false
      host_interface   = true
      snmp             = "off"
      tls_min_version  = "1.3"
      lockout_attempts = 5
      lockout_duration = "1m"
    }
    tls {
      ca_file     = "bmc.pem"
      pins        = ["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
      min_version = "1.3"
    }
    bios "DELLPOWEREDGEXE9680" {
      attributes = { BootMode = "Uefi", Cores = 32, Turbo = true, Ratio = 1.5 }
    }
    bios "H200_DELLPOWEREDGEXE9680_IB_01" {
      attributes = { BootMode = "Uefi" }
    }
    idrac {
      restrict_boot = true
      attributes    = { "WebServer.1.HttpsRedirection" = "Enabled" }
      lockdown      = true
      ip_blocking   = false
    }
    xcc {
      kcs               = false
      firmware_rollback = false
    }
    ami {
      virtual_media = true
    }
    supermicro {
      restrict_boot = false
      lockdown      = false
    }
    generic {
      manager = "BMC"
    }
  }
  limits {
    devices          = 8
    requests_per_bmc = 2
    reboots          = 4
    reboots_per_rack = 1
    dhcp_batch       = 10
  }
  owned_nodes {
    release = ["bmc.ntp", "bmc.syslog"]
  }
  verification {
    port_names "cumulus-linux" {
      ignore = ["case", "abbreviation"]
    }
    port_names "sonic" {
      ignore = ["spaces"]
    }
  }
}
