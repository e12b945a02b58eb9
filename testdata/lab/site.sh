# shellcheck shell=bash
# What tests and people need to know of a running lab: variables, and a site
# folder for the program.

write_site() {
  write_site_folder
  write_env >"$RUN/env.new"
  # The mark of a whole lab: the last thing that is made.
  mv "$RUN/env.new" "$RUN/env"
}

write_env() {
  printf '# Made by up.sh; valid until down.sh.\n'
  local device name=ENROLL_LAB
  # Without it enroll warns that the site's secrets are in the environment.
  variable $name real
  variable ${name}_NETBOX_URL "$NETBOX_URL"
  variable ${name}_NETBOX_TOKEN "$NETBOX_TOKEN"
  variable ${name}_NETBOX_READONLY_TOKEN "$NETBOX_READONLY_TOKEN"
  variable ${name}_IRONIC_URL "http://127.0.0.1:$IRONIC_PORT"
  variable ${name}_KEYSTONE_URL "http://127.0.0.1:$KEYSTONE_PORT/v3"
  variable ${name}_KEYSTONE_PASSWORD "$KEYSTONE_PASSWORD"
  variable ${name}_REDFISH_URL "https://127.0.0.1:$REDFISH_PORT"
  variable ${name}_REDFISH_USER "$REDFISH_USER"
  variable ${name}_REDFISH_PASSWORD "$REDFISH_PASSWORD"
  variable ${name}_REDFISH_SYSTEMS "$(fleet '" ".join(fleet.system(i) for i in range(1, fleet.SERVERS + fleet.SPARE + 1))')"
  variable ${name}_REDFISH_CA "$RUN/redfish/ca.pem"
  variable ${name}_SSH_HOST 127.0.0.1
  variable ${name}_SSH_PORT "${SSH_PORTS[dnsmasq]}"
  variable ${name}_SSH_USER enroll
  variable ${name}_SSH_KEY "$RUN/dhcp/keys/user"
  variable ${name}_SSH_KNOWN_HOSTS "$RUN/known_hosts"
  variable ${name}_DHCP_DIRECTORY "${DHCP_DIRECTORY[dnsmasq]}"
  variable ${name}_DHCP_SUBNET "$DHCP_SUBNET/24"
  variable ${name}_DHCP_UNIT dnsmasq
  variable ${name}_KEA_SSH_PORT "${SSH_PORTS[kea]}"
  variable ${name}_KEA_DIRECTORY "${DHCP_DIRECTORY[kea]}"
  variable ${name}_ISC_SSH_PORT "${SSH_PORTS[isc]}"
  variable ${name}_ISC_DIRECTORY "${DHCP_DIRECTORY[isc]}"
  variable ${name}_VAULT_URL "http://127.0.0.1:$VAULT_PORT"
  variable ${name}_VAULT_TOKEN "$LAB_VAULT_TOKEN"
  variable ${name}_INVENTORY_DIR "$RUN/inventory"
  variable ${name}_STATE "$RUN"
  variable ${name}_SITE_DIR "$RUN/site"
  printf '\n# The secrets of the site folder, as its backend "env" looks for them.\n'
  variable ENROLL_SECRET_NETBOX_ENROLL_CREDENTIAL "$NETBOX_TOKEN"
  variable ENROLL_SECRET_SSH_CONFIG_DHCP_PRIVATE_KEY "$(<"$RUN/dhcp/keys/user")"
  variable ENROLL_SECRET_SSH_CONFIG_DHCP_KNOWN_HOSTS "$(<"$RUN/known_hosts")"
  for device in $(fleet '" ".join(fleet.name(i) for i in range(1, fleet.SERVERS + 1))'); do
    device=${device//-/_}
    variable "ENROLL_SECRET_BMC_${device^^}_USERNAME" "$REDFISH_USER"
    variable "ENROLL_SECRET_BMC_${device^^}_PASSWORD" "$REDFISH_PASSWORD"
  done
}

# variable NAME VALUE writes a line that any shell can read.
variable() {
  local quote="'\\''"
  printf "export %s='%s'\n" "$1" "${2//\'/"$quote"}"
}

# fleet EXPRESSION prints a value of fleet.py.
fleet() {
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$LAB "$PYTHON" -c 'import fleet, sys; print(eval(sys.argv[1]))' "$1"
}

# write_site_folder makes what --site takes. Short waits, because here nothing boots.
write_site_folder() {
  mkdir -p "$RUN/site"
  cat >"$RUN/site/site.hcl" <<END
# Made by up.sh for the real lab.
site "lab1" {
  netbox {
    url   = "$NETBOX_URL"
    token = secret("netbox-enroll", "credential")
  }

  secrets "env" {}

  device_class "COMPUTE_GPU" {
    roles = ["gpu-compute"]
    gpu   = true
  }

  ironic "baremetal" {
    endpoint            = "http://127.0.0.1:$IRONIC_PORT"
    device_classes      = ["COMPUTE_GPU"]
    cleaning_deadline   = "3m"
    inspection_deadline = "3m"
    node_lock {
      max_wait = "2m"
      backoff  = ["500ms", "2s"]
    }
  }

  dhcp {
    host        = "127.0.0.1"
    port        = ${SSH_PORTS[dnsmasq]}
    user        = "enroll"
    identity    = secret("ssh-config-dhcp", "private_key")
    known_hosts = secret("ssh-config-dhcp", "known_hosts")
    service     = "dnsmasq"
    directory   = "${DHCP_DIRECTORY[dnsmasq]}"
    subnets     = ["$DHCP_SUBNET/24"]
    settle      = "500ms"
    timeouts {
      connect  = "10s"
      login    = "10s"
      command  = "20s"
      transfer = "20s"
    }
  }

  bmc {
    credential   = secret("bmc-\${device.name}", "password")
    ca_file      = "$RUN/redfish/ca.pem"
    ready_budget = "30s"
    ntp_servers  = [] # the Redfish emulator has no NetworkProtocol
  }
}
END
}
