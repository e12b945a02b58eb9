# Misspelt names, blocks for attributes, attributes for blocks, labels.
sites "x" {}
site "x" {
  netbox "main" {
    urll    = "https://netbox.example.net"
    tokken  = "hunter2secret"
    timeout {}
  }
  secrets "env" {}
  device_class {
    roles = ["gpu-compute"]
  }
  device_class "COMPUTE_GPU" "x" {
    roles = ["gpu-compute"]
  }
  dhpc {}
  bmc = 5
  ironic_enroll = false
  unheard_of    = "hunter2secret"
}
