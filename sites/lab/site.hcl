# A laboratory: secrets in a vault, one standalone Ironic, the server's files
# beside this one, short deadlines. Addresses come in as variables, because they
# change with every start of the lab.

enroll {
  required_version = ">= 0.1"
}

site "lab" {
  record_platform_class = true

  netbox {
    url     = var.netbox_url
    token   = secret("netbox", "token")
    ca_file = "ca.pem"
    timeout = "10s"
  }

  secrets "vault" {
    url       = var.vault_url
    mount     = "secret"
    prefix    = "lab"
    token_env = "VAULT_TOKEN"
    ca_file   = "ca.pem"
  }

  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
    gpu   = true
  }

  ironic "lab" {
    endpoint            = var.ironic_url
    device_classes      = ["COMPUTE_GPU"]
    cleaning_deadline   = "15m"
    inspection_deadline = "10m"
    timeout             = "20s"

    node_lock {
      max_wait = "1m"
      backoff  = ["100ms", "2s"]
    }
  }

  dhcp {
    host             = var.dhcp_host
    port             = var.dhcp_port
    user             = "enroll"
    identity_file    = "id_ed25519"
    known_hosts_file = "known_hosts"
    service          = "dnsmasq"
    directory        = "/srv/lab/dhcp-hosts.d"
    unit             = "dnsmasq"
    subnets          = ["192.0.2.0/24", "198.51.100.0/24"]
    settle           = "200ms"

    timeouts {
      connect  = "5s"
      login    = "5s"
      command  = "10s"
      transfer = "10s"
    }
  }

  bmc {
    credential   = secret("bmc/${device.name}", "password")
    username     = secret("bmc/${device.name}", "username")
    ca_file      = "ca.pem"
    timeout      = "10s"
    ready_budget = "2m"
    hostname     = lower(device.name)
    ntp_servers  = ["192.0.2.123"]
  }
}
