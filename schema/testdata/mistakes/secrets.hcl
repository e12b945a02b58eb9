# A secret can be handed over whole only.
locals {
  token = secret("netbox", "token")
  same  = local.token == secret("netbox", "token")
}
site "x" {
  netbox {
    url   = "https://${secret("netbox", "token")}.example.net"
    token = "Token ${secret("netbox", "token")}"
    site  = local.token
  }
  secrets "env" {
    prefix = secret("netbox", "token") == secret("netbox", "token") ? "A" : "B"
  }
  device_class "COMPUTE_GPU" {
    roles = [local.token, "x"]
    gpu   = local.token == local.token
  }
  ironic "baremetal" {
    cloud           = format("%v", local.token)
    device_classes  = ["COMPUTE_GPU"]
    enrol_project   = "${local.token}"
    scheduler_trait = try(tostring(local.token), local.token)
  }
  dhcp {
    host        = upper(local.token)
    user        = join("-", [local.token])
    identity    = [secret("dhcp", "private_key")][0]
    known_hosts = { a = secret("dhcp", "known_hosts") }
    service     = "dnsmasq"
    directory   = "/etc/dnsmasq.d/enroll"
    subnets     = [for k, v in { a = local.token } : v]
  }
  bmc {
    credential = true ? secret("bmc-${device.name}", "password") : local.token
    hostname   = length(local.token)
  }
}
