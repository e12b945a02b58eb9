# Two logins at one vault.
site "x" {
  netbox {
    url   = "https://netbox.example.net"
    token = secret("netbox", "token")
  }
  secrets "vault" {
    url        = "https://vault.example.net"
    token_env  = "VAULT_TOKEN"
    namespace  = "/infra/"
    app_role {
      role_id        = "enroll"
      secret_id      = "hunter2secret"
      secret_id_env  = "VAULT_SECRET_ID"
      secret_id_file = "secret-id"
    }
    kubernetes {
    }
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
