# What all sites share. A site's folder begins with
#
#   enroll {
#     include = ["../common"]
#   }
#
# and then sets what is different: its own attribute wins, blocks of the same type
# and label are merged attribute by attribute, lists and maps are replaced whole.
# `enroll explain --site sites/lon14 site.ironic.attempts` tells which line set a
# value and over which others.
#
# This folder is of no site, so its site block has no label.

enroll {
  required_version = ">= 0.1"
}

variable "domain" {
  type        = string
  default     = "example.net"
  description = "the domain of all servers that sites need"

  validation {
    condition     = can(regex("^[a-z0-9.-]+$", var.domain))
    error_message = "A domain is written in lower case, without a dot at its end."
  }
}

site {
  record_platform_class = true

  # NetBox device roles, grouped into the classes that an Ironic manages.
  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
    gpu   = true
  }
  device_class "COMPUTE_CPU" {
    roles = ["compute", "hypervisor"]
  }

  netbox {
    url   = "https://netbox.${var.domain}"
    token = secret("netbox-enroll", "credential")
  }
}
