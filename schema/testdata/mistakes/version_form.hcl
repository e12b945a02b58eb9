# A constraint that is none.
enroll {
  required_version = "latest"
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
  ironic "baremetal" {
    cloud          = "x"
    device_classes = ["COMPUTE_GPU"]
  }
}
