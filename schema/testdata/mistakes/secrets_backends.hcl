# One way to the credential, and no credential in the file.
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "onepassword" {
    url        = "https://op-connect.example.net"
    token      = "hunter2secret"
    token_env  = "OP_CONNECT_TOKEN"
    token_file = "op-token"
    vault      = "a \"quoted\" vault"
  }
  secrets "vualt" {
    url = "https://vault.example.net"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
  }
  ironic "standalone" {
    endpoint       = "http://ironic.example.net:6385"
    device_classes = ["COMPUTE_GPU"]
    clouds_file    = "clouds.yaml"
  }
  ironic "keystone" {
    cloud          = "lon14"
    device_classes = ["COMPUTE_CPU"]
    secure         = secret("openstack", "secure")
    secure_file    = "secure.yaml"
  }
  configure_dhcp = false
  configure_bmc  = false
  ironic_enrol   = false
}
