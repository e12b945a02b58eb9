# The mistakes of a first try, all at once.
site "lon14" {
  netbox {
    urll  = "https://netbox.example.net"
    token = "hunter2secret"
  }
  secrets "valut" {
    url = "https://vault.example.net"
  }
  device_class "COMPUTE_GPU" {
    roles = "gpu-compute"
  }
  ironic "baremetal" {
    endpoint       = "http://ironic.example.net:6385"
    device_classes = ["COMPUTE_GPUU"]
    timeout        = 60
  }
  dhcp {
    host        = "dhcp1.example.net/24"
    user        = "enroll"
    identity    = secret("dhcp", "private_key")
    known_hosts = secret("dhcp", "known_hosts")
    service     = "dnsmasq"
    directory   = "/etc/dnsmasq.d/enroll"
    subnets     = ["192.0.2.1/24"]
  }
  bmc {
    credential = secret("bmc-${device.nmae}", "password")
  }
}
