# Policies and tolerations that are wrong.
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "env" {}
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  configure_dhcp = false
  configure_bmc  = false
  ironic_enrol   = false

  policy "nothing" {
    message = "what does it do?"
  }
  policy "two_things" {
    deny = has_effect("reboot")
    warn = has_effect("reboot")
  }
  policy "names" {
    deny = step.efects == [] || device.rol == "x"
  }
  policy "function" {
    deny = has_efect("reboot")
  }
  policy "effect" {
    deny = has_effect("rebot")
  }
  policy "count" {
    warn = count_effect("reboot")
  }
  policy "hours" {
    deny = within("8:00", "18:00", "Europe/London")
  }
  policy "zone" {
    deny = within("08:00", "18:00", "Europe/Londn")
  }
  policy "pattern" {
    require_approval = changes("bmc.bios")
  }
  policy "text" {
    deny  = "yes"
    owner = "INFRA"
  }
  policy "vault" {
    deny = secret("a", "b") == "x"
  }
  tolerate "nothing" {
  }
  tolerate "wrong" {
    address = "*/bios"
    path    = "Serial Redirect"
    reason  = ""
    until   = "31.01.2027"
  }
  ironic "baremetal" {
    cloud          = "x"
    device_classes = ["COMPUTE_GPU"]
  }
}
