# A program is a list, and its name is one name.
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "command" {
    argv    = ["./{item}", "get", "get"]
    timeout = "30"
  }
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
