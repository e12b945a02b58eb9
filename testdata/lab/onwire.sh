#!/usr/bin/env bash
# Runs a command on the BMC network of a DHCP machine, as on a host there with the
# address 192.0.2.250. It sees the files of this machine and no other network.
#
# usage: onwire.sh dnsmasq|kea|isc COMMAND...
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$LAB/lib.sh"
# shellcheck source=dhcp.sh
. "$LAB/dhcp.sh"

exec 3>&1
MACHINE=${1:?usage: onwire.sh dnsmasq|kea|isc COMMAND...}
shift
pid_of "dhcp-$MACHINE-init" >/dev/null || die 'the lab is not up; run make lab-up first'
in_machine ip netns exec bmc2 ip address replace "${DHCP_SUBNET%.*}.250/24" dev eth0
exec nsenter --net="/proc/$(pid_of "dhcp-$MACHINE-init")/root/run/netns/bmc2" "$@"
