# What every BMC of the company shall be like.

site {
  bmc {
    # Each device has an item of its own, with the fields username and password.
    # device.* is what NetBox says about the device that is worked on.
    credential = secret("bmc-${device.name}", "password")

    # The account that monitoring reads sensors with, the same on all BMCs. Ironic
    # never uses it.
    monitoring = secret("ipmi_exporter", "password")

    # NetBox names hosts in lower case; older ones have underscores.
    hostname = "${replace(lower(device.name), "_", "-")}-bmc"

    ntp {
      servers   = ["ntp1.${var.domain}", "ntp2.${var.domain}"]
      time_zone = "UTC"
    }

    syslog {
      servers = ["syslog.${var.domain}"]
    }

    # What is not written is left as it is.
    security {
      http             = false
      telnet           = false
      snmp             = "v3"
      tls_min_version  = "1.2"
      lockout_attempts = 5
      lockout_duration = "60s"
    }
  }
}
