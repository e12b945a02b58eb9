# What must be there.
site "x" {
  netbox {}
  secrets "vault" {}
  device_class "COMPUTE_GPU" {}
  ironic "baremetal" {}
  dhcp {}
  bmc {}
}
