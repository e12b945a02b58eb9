#!/usr/bin/env bash
# Runs a command as root on a DHCP machine of the lab: what an operator does there,
# and what tests break there.
#
# usage: inside.sh dnsmasq|kea|isc COMMAND...
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$LAB/lib.sh"
# shellcheck source=dhcp.sh
. "$LAB/dhcp.sh"

exec 3>&1
MACHINE=${1:?usage: inside.sh dnsmasq|kea|isc COMMAND...}
shift
pid_of "dhcp-$MACHINE-init" >/dev/null || die 'the lab is not up; run make lab-up first'
in_machine "$@"
