# A site with CPU servers from Supermicro, ISC dhcpd, and secrets in a Vault.
#
# Most of it stands in ../common; this file holds what is different here.

enroll {
  required_version = ">= 0.1"
  include          = ["../common"]
}

variable "vault_url" {
  type        = string
  default     = "https://vault.fra7.example.net:8200"
  description = "where the vault of the site answers"
}

locals {
  zone = "fra7.${var.domain}"

  # One list for NTP and for the firewall's exceptions.
  ntp = [for n in range(1, 4) : format("ntp%d.%s", n, local.zone)]
}

site "fra7" {
  # There are no GPU servers here, and common says that there is a class for them.
  # An Ironic has to manage every class, so it is listed below although it is empty.

  # enroll logs in with an AppRole: the role's secret id is in the environment
  # variable VAULT_SECRET_ID. Its policy grants read on sites/fra7/*, no more.
  secrets "vault" {
    url    = var.vault_url
    mount  = "infra"
    prefix = "sites/fra7"

    app_role {
      role_id = "59d6d1ca-47bb-4e7e-a40b-8be3bc5a0ba8"
    }
  }

  ironic "baremetal" {
    cloud           = "fra7"
    clouds          = secret("openstack", "clouds_yaml")
    device_classes  = ["COMPUTE_CPU", "COMPUTE_GPU"]
    enrol_project   = "77b0c2d19be04f3f9f0f6a1f0b3ad5aa"
    scheduler_trait = "HW_ARCH_X86_64"
    attempts        = 2
  }

  dhcp {
    host        = "dhcp.${local.zone}"
    user        = "enroll"
    identity    = secret("ssh/dhcp", "private_key")
    known_hosts = secret("ssh/dhcp", "known_hosts")
    service     = "isc"
    directory   = "/etc/dhcp/enroll.d"
    config      = "/etc/dhcp/dhcpd.conf"
    subnets     = [cidrsubnet("198.51.100.0/24", 1, 0), cidrsubnet("198.51.100.0/24", 1, 1)]

    timeouts {
      connect = "20s"
      login   = "20s"
    }

    # BMCs here get their clock before they are configured.
    option "ntp-servers" {
      value = join(", ", ["198.51.100.123", "198.51.100.124"])
    }
  }

  bmc {
    # In this vault items stand in folders: bmc/NAME instead of bmc-NAME.
    credential = secret("bmc/${device.name}", "password")
    ca_file    = "ca.pem"

    # A rack may have a clock of its own, which NetBox then records as a custom
    # field of the device. try gives the site's where there is none.
    ntp {
      servers = try([device.custom_fields.rack_ntp], local.ntp)
    }

    # Supermicro takes no restriction of boot options.
    supermicro {
      restrict_boot = false
      lockdown      = false
    }
  }

  # Fewer hosts at once than elsewhere: the power feeds are weak.
  limits {
    reboots          = 3
    reboots_per_rack = 1
  }

  # The same rule as in ../common with the hours of this site; owner and message
  # stay as they are there.
  policy "no_reboot_in_business_hours" {
    deny = has_effect("reboot") && within("07:00", "17:00", "Europe/Berlin")
  }
}
