# Parts of the language that this version does not have.
enroll {
  include = ["../common"]
}
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
  policy "no_reboot" {
    deny = has_effect("reboot")
  }
  tolerate "serial_redirect" {
    address = "*/bmc.bios"
  }
  ironic "baremetal" {
    cloud                           = "lon14"
    device_classes                  = ["COMPUTE_GPU"]
    switch_to_ipmi_after_inspection = false
  }
  bmc {
    credential = secret("bmc-${device.name}", "password")
    monitoring = "hunter2secret"
    bios "DELLPOWEREDGEXE9680" {
      attributes = { BootMode = "Uefi" }
    }
  }
}
