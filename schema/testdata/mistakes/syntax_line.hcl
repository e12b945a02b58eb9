# The damage is in the line of the secret.
site "x" {
  netbox {
    token = "hunter2secret
  }
