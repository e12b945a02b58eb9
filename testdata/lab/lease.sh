#!/usr/bin/env bash
# Asks a DHCP server of the lab for a lease, as a BMC on its wire with the given MAC
# would. Prints address and host name; exit 1 when nobody answers.
#
# usage: lease.sh MAC [dnsmasq|kea|isc]
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$LAB/lib.sh"
# shellcheck source=dhcp.sh
. "$LAB/dhcp.sh"

exec 3>&1
mac=${1:?usage: lease.sh MAC [dnsmasq|kea|isc]}
MACHINE=${2:-dnsmasq}
pid_of "dhcp-$MACHINE-init" >/dev/null || die 'the lab is not up; run make lab-up first'
# shellcheck disable=SC2016 # expanded inside the machine
in_machine ip netns exec bmc1 bash -c '
  ip link set eth0 down && ip link set eth0 address "$1" && ip link set eth0 up
  script=$(mktemp)
  printf "%s\n" "#!/bin/sh" "[ \"\$1\" != bound ] || echo \"\$ip \$hostname\"" >"$script"
  chmod 0755 "$script"
  udhcpc -i eth0 -f -n -q -t 3 -T 1 -s "$script" 2>/dev/null
  status=$?
  rm -f "$script"
  exit $status' lease "$mac"
