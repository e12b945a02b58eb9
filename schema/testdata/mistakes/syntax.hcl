# The file is damaged: nothing is said about what may stand in the damaged part.
site "x" {
  netbox {
    url   = "https://netbox.example.net
    token = "hunter2secret"
  }
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"
}
