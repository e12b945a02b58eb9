# Values of the wrong type or form.
site "Not A Slug" {}
site "x" {
  configure_dhcp = "yes"
  configure_bmc  = null
  netbox {
    url     = "https://user:hunter2secret@netbox.example.net"
    token   = "hunter2secret"
    site    = "Lon 14"
    timeout = 30
  }
  secrets "vault" {
    url       = "ftp://vault.example.net"
    mount     = "../secret"
    token_env = "VAULT-TOKEN"
    ca_file   = "~/ca.pem"
  }
  device_class "COMPUTE_GPU" {
    roles = []
    gpu   = 1
  }
  ironic "baremetal" {
    endpoint          = "ironic.example.net:6385"
    device_classes    = ["COMPUTE_GPU", 5]
    scheduler_trait   = "lower"
    cleaning_deadline = "3 hours"
    attempts          = 0
    node_lock {
      max_wait = "1000h"
      backoff  = ["60s", "10s"]
    }
  }
  dhcp {
    host             = "192.0.2.300"
    port             = 70000
    user             = "Root User"
    identity         = "-----BEGIN PRIVATE KEY----- hunter2secret"
    known_hosts      = 5
    service          = "dnsmask"
    directory        = "etc/dnsmasq.d"
    unit             = "dnsmasq; reboot"
    name_suffix      = "_bmc"
    subnets          = ["192.0.2.1/24", "192.0.2.0/31", "all"]
    settle           = "-1s"
    timeouts {
      connect = ["1s"]
      login   = secret("x", "y")
    }
  }
  bmc {
    credential  = "hunter2secret"
    hostname    = "under_score"
    ntp_servers = ["ntp1.example.net", "ntp1.example.net", "ntp 2"]
    restrict_boot = secret("x", "y")
  }
}
