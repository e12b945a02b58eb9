#!/usr/bin/env bash
# Runs the tests that need the real services: those with the build tag "lab".
# The lab has to be up. Arguments go to `go test` (for example -run or -v).
#
# usage: test.sh [ARGUMENT...]
set -euo pipefail

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$LAB/lib.sh"

exec 3>&1
running || die 'the lab is not up; run make lab-up first'
set -a
# shellcheck disable=SC1091 # made by up.sh
. "$RUN/env"
set +a

# Nodes that a run which was killed left behind would be rivals of the next one's.
api() { curl -sS -H 'X-OpenStack-Ironic-API-Version: 1.82' "$@"; }
for node in $(api "$ENROLL_LAB_IRONIC_URL/v1/nodes?fields=name" | grep -o '"conf-[0-9a-z-]*"' | tr -d '"'); do
  say "lab: deleting $node, left behind by a run that was killed"
  api -o /dev/null -X PUT -H 'Content-Type: application/json' -d '{}' "$ENROLL_LAB_IRONIC_URL/v1/nodes/$node/maintenance"
  api -o /dev/null -X DELETE "$ENROLL_LAB_IRONIC_URL/v1/nodes/$node"
done

cd "$LAB/../.."
# Exactly the packages that have such tests, so that every line is about the lab.
mapfile -t packages < <(grep -rlE --include='*_test.go' '^//go:build (.*[ (&!|])?lab([ )&|]|$)' . | xargs -r -n 1 dirname | sort -u)
((${#packages[@]} > 0)) || die 'no package has tests with the build tag lab'
say "lab: testing ${packages[*]}"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
status=0
# One package after the other: they share the services. Tests of the lab have Lab in
# their name; the packages' other tests are those of make test.
(($# > 0)) || set -- -run Lab
go test -tags lab -count=1 -p 1 -timeout 20m "$@" "${packages[@]}" 2>&1 | tee "$output" || status=$?
((status == 0)) || exit "$status"
# go test says ok for a package in which nothing ran.
if grep -q 'no tests to run\|no test files' "$output"; then
  die 'a package with lab tests ran none'
fi
