#!/usr/bin/env bash
# The main job, against the embedded lab: plan a fresh GPU server, apply, plan
# again. Called by `make demo` with the path of the program.
set -euo pipefail
enroll=$(realpath "${1:?usage: demo.sh PATH-TO-ENROLL}")
dir=$(mktemp -d)
lab=
cleanup() {
	if [ -n "$lab" ]; then
		kill "$lab" 2>/dev/null || true
		wait "$lab" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap cleanup EXIT

say() { printf '\n$ %s\n' "$*"; }

"$enroll" lab run --dir "$dir" --devices 2 --scenario fresh >"$dir/lab.log" 2>&1 &
lab=$!
for _ in $(seq 100); do
	[ -e "$dir/ready" ] && break
	kill -0 "$lab" 2>/dev/null || break
	sleep 0.05
done
[ -e "$dir/ready" ] || { echo "the lab did not come up:"; cat "$dir/lab.log"; exit 1; }
# shellcheck disable=SC1091  # written by the lab
. "$dir/env"

say "enroll plan gpu-001"
"$enroll" plan gpu-001
say "enroll apply gpu-001 --auto-approve"
"$enroll" apply gpu-001 --auto-approve --journal "$dir/journal"
say "enroll plan gpu-001"
"$enroll" plan gpu-001 --detailed-exitcode
printf '\nexit 0: nothing to do\n'
