# A warning, and a missing reason.
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
  ironic_enrol   = false
  bmc {
    credential = secret("bmc-${device.name}", "password")
    tls {
      insecure = true
    }
  }
  ironic "baremetal" {
    cloud          = "x"
    device_classes = ["COMPUTE_GPU"]
  }
}
