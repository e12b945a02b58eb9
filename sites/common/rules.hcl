# Rules over plans that hold at every site. A site may add its own, and may set
# single attributes of these.

site {
  limits {
    devices          = 20
    reboots          = 8
    reboots_per_rack = 2
    dhcp_batch       = 100
  }

  # Nobody reboots hosts while people work.
  policy "no_reboot_in_business_hours" {
    deny    = has_effect("reboot") && within("08:00", "18:00", "Europe/London")
    owner   = "INFRA_ENG"
    message = "Hosts are rebooted in the evening only."
  }

  # Cleaning erases disks; somebody has to say yes, by name.
  policy "erase_needs_approval" {
    require_approval = has_effect("erase")
    message          = "Cleaning erases every disk of the host."
  }
}
