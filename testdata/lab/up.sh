#!/usr/bin/env bash
# Installs what is missing, starts the real lab and seeds it. It may be called
# again at any time: what runs already is left alone.
#
# usage: up.sh
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$LAB/lib.sh"
# shellcheck source=install.sh
. "$LAB/install.sh"
# shellcheck source=netbox.sh
. "$LAB/netbox.sh"
# shellcheck source=ironic.sh
. "$LAB/ironic.sh"
# shellcheck source=keystone.sh
. "$LAB/keystone.sh"
# shellcheck source=dhcp.sh
. "$LAB/dhcp.sh"
# shellcheck source=vault.sh
. "$LAB/vault.sh"
# shellcheck source=site.sh
. "$LAB/site.sh"

# finish ends what was started when the run fails, and shows why it failed.
finish() {
  local status=$?
  trap - EXIT
  restore_policy
  ((status != 0)) || exit 0
  if [[ -n $PHASE ]]; then say "lab: failed: $PHASE"; fi
  if [[ -n $LOG && -f $LOG ]]; then
    say "lab: the last lines of $LOG:"
    tail -n 25 "$LOG" >&3
  fi
  stop_all
  exit "$status"
}

exec 3>&1
began=$SECONDS
one_at_a_time
if running; then
  find_python
  LOG=$LOGS/netbox-seed.log
  seed_missing >>"$LOG" 2>&1 || die "NetBox could not be given what its seed has now; see $LOG"
  say "lab: runs already; its variables are in $RUN/env"
  exit 0
fi
trap finish EXIT
trap 'exit 130' INT TERM
restore_policy
stop_all
rm -rf "$RUN"
mkdir -p "$RUN/pids" "$LOGS"

check_system
phase 'Debian packages' install.log install_packages
find_python
phase 'virtual environments' install.log install_environments
[[ -f $CACHE/ironic.sqlite ]] || phase 'empty Ironic database' ironic-schema.log make_ironic_schema
[[ -d $CACHE/keystone ]] || phase 'empty Keystone database' keystone-start.log make_keystone_schema

phase 'database cluster' netbox-database.log start_postgres
phase 'Redis' netbox-database.log start_redis
phase 'NetBox configuration' netbox-database.log write_netbox_conf
make_template

# From here on everything starts side by side; what takes longest begins first.
phase 'accounts and certificates' secrets.log make_redfish_secrets
phase 'start Redfish emulator' redfish-start.log start_redfish
phase 'start Ironic' ironic-start.log start_ironic
phase 'start Keystone' keystone-start.log start_keystone
phase 'restore NetBox' netbox-database.log restore_seeded
phase 'start NetBox' netbox-start.log start_netbox
phase 'start OpenBao' vault-start.log start_vault
phase 'Keystone answers' keystone-start.log await keystone 60 keystone_ready start_keystone
phase 'start the Ironic behind it' keystone-start.log start_guarded_ironic
phase 'start DHCP machines' dhcp-start.log start_dhcp
phase 'DHCP machines answer' dhcp-start.log await_dhcp
phase 'Redfish emulator answers' redfish-start.log await redfish 60 redfish_ready start_redfish
phase 'OpenBao answers' vault-start.log await vault 30 vault_ready start_vault
phase 'Ironic answers' ironic-start.log await ironic 120 ironic_ready start_ironic
phase 'played ramdisk' ironic-start.log start_ramdisk
phase 'the Ironic behind it answers' keystone-start.log await ironic-keystone 120 guarded_ironic_ready start_guarded_ironic
phase 'NetBox answers' netbox-start.log await_netbox
phase 'site folder and variables' site.log write_site

say "lab: ready after $((SECONDS - began)) s; its variables are in $RUN/env"
