#!/usr/bin/env bash
# Ends everything that up.sh started. The cache keeps what was installed, the
# logs and the database dumps.
#
# usage: down.sh
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$LAB/lib.sh"

exec 3>&1
one_at_a_time
stop_all
# Its addresses and passwords lead nowhere now.
rm -rf "$RUN/env" "$RUN/site"
say 'lab: down'
