# References and functions.
variable "domain" {
  default = "example.net"
}
variable "needed" {
  type        = string
  description = "what nobody gave"
}
variable "odd" {
  type    = text
  default = 5
}
variable "wrong" {
  type    = list(string)
  default = "hunter"
}
locals {
  a      = local.b
  b      = local.c
  c      = local.a
  server = { name = "netbox", port = 80 }
  device = device.name
  twice  = [for x in [1] : [for y in [2] : y]]
}
locals {
  server = 1
}
site "x" {
  netbox {
    url   = "https://netbox.${var.domian}"
    token = secrets("netbox", "token")
    site  = local.server.nme
  }
  secrets "env" {
    prefix = env.PREFIX
  }
  device_class "COMPUTE_GPU" {
    roles = [gpu-compute]
  }
  ironic "baremetal" {
    cloud          = device.name
    device_classes = [upper(5, 6)]
  }
  dhcp {
    host        = var
    user        = lower(null)
    identity    = secret("dhcp")
    known_hosts = secret("../dhcp", "known_hosts")
    service     = "dnsmasq"
    directory   = "/etc/dnsmasq.d/enroll"
    subnets     = local.subnets
  }
  bmc {
    credential  = secret("bmc-${device.nmae}", "password")
    username    = secret("bmc-${device.name}", device.custom_fields.field)
    hostname    = device.gpu
    ntp_servers = [device.model.name]
  }
}
