# shellcheck shell=bash
# Shared by up.sh, down.sh and test.sh: where things lie, how a phase is reported,
# how a process is started, proved to be ours, and ended. LAB is the caller's.

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/enroll-lab
RUN=$CACHE/run
LOGS=$RUN/logs

# What runs just now and where its output goes, for the message of a failure.
PHASE='' LOG=''

# Everything that runs when the lab is up.
PARTS=(postgres redis netbox ironic redfish ramdisk vault keystone ironic-keystone
  dhcp-{dnsmasq,kea,isc} dhcp-{dnsmasq,kea,isc}-init ssh-{dnsmasq,kea,isc})

say() { printf '%s\n' "$*" >&3; }

# die ends the run; the EXIT trap of the caller cleans up.
die() {
  printf 'lab: %s\n' "$*" >&3
  exit 1
}

# phase NAME LOG FUNCTION... runs a function with its output in a log. It is not
# called in a condition on purpose: `set -e` would be off inside.
phase() {
  local began=$SECONDS
  PHASE=$1 LOG=$LOGS/$2
  shift 2
  "$@" >>"$LOG" 2>&1
  printf 'lab: %-38s %4d s\n' "$PHASE" $((SECONDS - began)) >&3
  PHASE='' LOG=''
}

# one_at_a_time keeps two up.sh or down.sh from working on one cache.
one_at_a_time() {
  umask 077
  mkdir -p "$CACHE"
  exec 9>"$CACHE/lock"
  flock -w 900 9 || die "another up.sh or down.sh holds $CACHE/lock"
}

# start_of PID prints the start time of a process in clock ticks since boot. The
# command name may hold spaces and brackets, so fields count from the last bracket.
start_of() {
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  # shellcheck disable=SC2086 # the fields are wanted as words
  set -- ${stat##*) }
  [[ $1 != Z ]] || return 1
  printf '%s\n' "${20}"
}

boot_id() { cat /proc/sys/kernel/random/boot_id; }

# remember NAME PID notes a process with its start time and the boot, which
# together never come twice, as a bare pid does.
remember() {
  mkdir -p "$RUN/pids"
  printf '%s %s %s\n' "$2" "$(start_of "$2")" "$(boot_id)" >"$RUN/pids/$1"
}

# pid_of NAME prints the pid when that very process still runs.
pid_of() {
  local pid start boot
  { read -r pid start boot <"$RUN/pids/$1"; } 2>/dev/null || return 1
  [[ $boot == "$(boot_id)" && $(start_of "$pid") == "$start" ]] || return 1
  printf '%s\n' "$pid"
}

# spawn NAME COMMAND... starts a daemon in a session of its own, so that its
# whole process group can be ended by the leader's pid. It inherits neither the
# lock (fd 9) nor the terminal (fd 3), which it would keep open.
spawn() {
  local name=$1
  shift
  setsid "$@" >>"$LOGS/$name.log" 2>&1 </dev/null 3>&- 9>&- &
  remember "$name" $!
}

# running tells whether the whole lab is up.
running() {
  local name
  [[ -s $RUN/env ]] || return 1
  for name in "${PARTS[@]}"; do
    pid_of "$name" >/dev/null || return 1
  done
}

# forget NAME ends one process group, hard when it does not go within 5 s.
forget() {
  local pid i
  if pid=$(pid_of "$1"); then
    kill -TERM -- "-$pid" 2>/dev/null || true
    for ((i = 0; i < 50; i++)); do
      pid_of "$1" >/dev/null || break
      sleep 0.1
    done
    if pid_of "$1" >/dev/null; then kill -KILL -- "-$pid" 2>/dev/null || true; fi
  fi
  rm -f "$RUN/pids/$1"
}

# names lists what was started, in no order that matters.
names() {
  local file
  for file in "$RUN"/pids/*; do
    [[ -e $file ]] && basename "$file"
  done
  return 0
}

# stop_all ends everything that was started and removes what lies outside $RUN.
stop_all() {
  local name pid i
  for name in $(names); do
    pid=$(pid_of "$name") || continue
    case $name in
      # The init of a DHCP machine ignores TERM (systemd would only execute itself
      # anew) and takes everything in its namespaces along.
      *-init) kill -KILL "$pid" 2>/dev/null || true ;;
      # PostgreSQL waits for its clients on TERM and ends at once on INT.
      postgres) kill -INT "$pid" || true ;;
      *) kill -TERM -- "-$pid" 2>/dev/null || true ;;
    esac
  done
  for ((i = 0; i < 80; i++)); do
    for name in $(names); do
      pid_of "$name" >/dev/null || rm -f "$RUN/pids/$name"
    done
    [[ -n $(names) ]] || break
    sleep 0.1
  done
  for name in $(names); do
    # The leader is still there, so the group number is still its own.
    if pid=$(pid_of "$name"); then kill -KILL -- "-$pid" 2>/dev/null || true; fi
    rm -f "$RUN/pids/$name"
  done
  remove_cgroups
  remove_scratch
}

# remove_cgroups takes away the control groups that the DHCP machines left, bottom up.
remove_cgroups() {
  local group i
  [[ -f $RUN/cgroups ]] || return 0
  while read -r group; do
    [[ $group == /sys/fs/cgroup/*enroll-lab-* ]] || continue
    for ((i = 0; i < 20; i++)); do
      [[ -d $group ]] || break
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done <"$RUN/cgroups"
  rm -f "$RUN/cgroups"
}

# remove_scratch takes away the database and sockets, which lie outside the cache
# because the database's user may not look into root's home, and because a socket's
# path has at most 107 bytes.
remove_scratch() {
  local dir
  [[ -f $RUN/scratch ]] || return 0
  dir=$(<"$RUN/scratch")
  [[ $dir == /tmp/enroll-lab.?????? && -d $dir ]] && rm -rf "$dir"
  rm -f "$RUN/scratch"
}

# free_port asks the kernel for a port that nobody has. Between the answer and the
# daemon's own bind somebody else may take it: await starts anew then.
free_port() {
  "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# await NAME SECONDS READY START waits until READY succeeds while NAME runs; when
# its port was taken meanwhile, START is called again for another one.
await() {
  local name=$1 left=$(($2 * 5)) again=2
  until "$3"; do
    if ((again > 0)) && grep -qiE 'address (already )?in use' "$LOGS/$name.log"; then
      again=$((again - 1))
      forget "$name"
      mv "$LOGS/$name.log" "$LOGS/$name.port-taken.log"
      "$4"
    fi
    if ! pid_of "$name" >/dev/null; then
      LOG=$LOGS/$name.log
      die "$name has ended by itself"
    fi
    left=$((left - 1))
    if ((left < 0)); then
      LOG=$LOGS/$name.log
      die "$name did not get ready within $2 s"
    fi
    sleep 0.2
  done
}

random() { od -An -N"${1:-24}" -tx1 /dev/urandom | tr -d ' \n'; }
