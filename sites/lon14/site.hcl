# A site with GPU servers of two makers: Lenovo with XCC and Dell with iDRAC, a Kea
# DHCP server, an Ironic behind Keystone, and secrets in 1Password.
#
# This version of enroll does not do all of it yet; `enroll validate sites/lon14`
# lists what it checks without using it.

enroll {
  required_version = ">= 0.1"
  include          = ["../common"]
}

site "lon14" {
  # secret("ITEM", "FIELD") is a field of an item in this vault. The token of the
  # Connect server is in the environment variable OP_CONNECT_TOKEN.
  secrets "onepassword" {
    url   = "https://op-connect.lon14.${var.domain}"
    vault = "lon14"
  }

  # An Ironic and the classes that it manages. cloud is an entry of clouds.yaml,
  # which is read where OpenStack's clients look for it.
  ironic "baremetal" {
    cloud             = "lon14"
    device_classes    = ["COMPUTE_GPU", "COMPUTE_CPU"]
    enrol_project     = "2f3c0a7be61d4e4d8a57e1a0f0b9c111"
    scheduler_trait   = "HW_ARCH_X86_64"
    cleaning_deadline = "6h" # the GPU servers have many disks

    # Redfish is good enough here for inspection and not for deploying, so nodes
    # change to ipmi after inspection.
    switch_to_ipmi_after_inspection = true

    node_lock {
      max_wait = "20m"
      backoff  = ["10s", "60s"]
    }
  }

  # The DHCP server of the BMC network, over SSH. The key and the server's own keys
  # are items of the vault too.
  dhcp {
    host        = "dhcp1.lon14.${var.domain}"
    user        = "enroll"
    identity    = secret("ssh-config-dhcp", "private_key")
    known_hosts = secret("ssh-config-dhcp", "known_hosts")
    service     = "kea"
    directory   = "/etc/kea/enroll.d"
    config      = "/etc/kea/kea-dhcp4.conf"
    apply       = "reload"         # without a moment in which nobody is served
    control     = "127.0.0.1:8000" # Kea's control agent, seen from the server
    subnets     = ["192.0.2.0/24", "198.51.100.0/25"]
  }

  # credential, hostname, ntp, syslog and security come from ../common.
  bmc {
    ca_file       = "ca.pem"
    restrict_boot = true

    # BIOS settings go by the maker and the model, as platform classes write them.
    bios "DELLPOWEREDGEXE9680" {
      attributes = {
        BootMode           = "Uefi"
        LogicalProc        = "Enabled"
        ProcVirtualization = "Enabled"
        SriovGlobalEnable  = "Enabled"
      }
    }
    bios "LENOVOTHINKSYSTEMSR680AV3" {
      attributes = {
        BootModes_SystemBootMode  = "UEFIMode"
        Processors_HyperThreading = "Enable"
        DevicesandIOPorts_SRIOV   = "Enable"
      }
    }

    # What only one family has.
    idrac {
      lockdown    = true
      ip_blocking = true
      attributes = {
        "WebServer.1.HttpsRedirection" = "Enabled"
        "VNCServer.1.Enable"           = "Disabled"
      }
    }
    xcc {
      kcs               = false
      firmware_rollback = false
    }
  }

  # Nodes that Nova owns are left alone, but for these two: they touch nothing that
  # a tenant could notice.
  owned_nodes {
    release = ["bmc.ntp", "bmc.syslog"]
  }

  # The switches say "swp1s0", NetBox says "swp01s0".
  verification {
    port_names "cumulus-linux" {
      ignore = ["case", "leading_zeros"]
    }
  }

  # iDRAC forgets this one at every boot; somebody looks at it again next year.
  tolerate "serial_redirect" {
    address = "*/bmc.bios"
    path    = "SerialRedirect"
    reason  = "the firmware resets it at every boot; a fix is announced"
    until   = "2027-06-30"
  }
}
