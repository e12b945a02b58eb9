variable "netbox_url" {
  type        = string
  default     = "https://netbox.example.net"
  description = "where NetBox answers"
}

variable "vault_url" {
  type        = string
  default     = "https://vault.example.net:8200"
  description = "where the vault answers"
}

variable "ironic_url" {
  type        = string
  default     = "http://ironic.example.net:6385"
  description = "where Ironic answers"
}

variable "dhcp_host" {
  type        = string
  default     = "192.0.2.2"
  description = "the DHCP server"
}

variable "dhcp_port" {
  type        = number
  default     = 22
  description = "the port of its SSH server"
}
