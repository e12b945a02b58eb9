# Blocks that contradict each other or themselves.
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "env" {}
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  secrets "env" {}
  device_class "COMPUTE_GPU" {
    roles = ["other"]
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute", "gpu-compute"]
  }
  ironic "one" {
    cloud          = "lon14"
    endpoint       = "http://ironic.example.net:6385"
    device_classes = ["COMPUTE_GPU"]
  }
  ironic "two" {
    cloud          = "lon14"
    device_classes = ["COMPUTE_GPU", "COMPUTE_GPUU"]
  }
  dhcp {
    host             = "dhcp1.example.net"
    user             = "enroll"
    identity         = secret("dhcp", "private_key")
    identity_file    = "id_ed25519"
    service          = "kea"
    directory        = "/etc/kea/enroll.d"
    subnets          = ["192.0.2.0/24"]
  }
  bmc {
    credential = secret("bmc-${device.name}", "password")
    ca_file    = "ca.pem"
    tls {
      insecure = true
      reason   = "none"
    }
  }
}
site "y" {
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
}
