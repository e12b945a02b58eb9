# Twelve mistakes that have nothing to do with each other.
enroll {
  required_version = "latest"
}

variable "subnet" {
  type    = string
  default = "192.0.2.0/33"
}

locals {
  first  = local.second
  second = local.first
}

site "lon14" {
  netbox {
    urll  = "https://netbox.example.net"
    token = "hunter2secret"
  }
  secrets "valut" {
    url = "https://vault.example.net"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  ironic "baremetal" {
    endpoint       = "http://ironic.example.net:6385"
    device_classes = ["COMPUTE_GPUU"]
    timeout        = 60
    node_lock {
      max_wait = "15m"
      backoff  = ["10s", "20m"]
    }
  }
  dhcp {
    host        = lowre("DHCP1")
    user        = "enroll"
    identity    = secret("dhcp", "private_key")
    known_hosts = secret("dhcp", "known_hosts")
    service     = "dnsmask"
    directory   = "/etc/dnsmasq.d/enroll"
    subnets     = [var.subnet]
  }
  bmc {
    credential = secret("bmc-${device.nmae}", "password")
  }
}
