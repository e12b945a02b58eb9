# shellcheck shell=bash
# The DHCP machines: systemd, sshd, sudo and one DHCP server in namespaces, and for
# each a socat that carries a loopback port to its sshd.

DHCP_SUBNET=192.0.2.0
DHCP_MACHINES=(dnsmasq kea isc)

# The folder of the reservations, by machine.
declare -A DHCP_DIRECTORY=([dnsmasq]=/etc/enroll-hosts.d [kea]=/etc/kea/enroll.d [isc]=/etc/dhcp/enroll.d)
# Its units; the first is the DHCP server.
declare -A DHCP_UNITS=([dnsmasq]=dnsmasq [kea]='kea-dhcp4-server kea-ctrl-agent' [isc]=isc-dhcp-server)
# The loopback port of its sshd, once it runs.
declare -A SSH_PORTS=()
# The machine that the functions without an argument are about: await calls them so.
MACHINE=''

# dhcp_possible says what is missing instead of failing half way with an obscure word.
dhcp_possible() {
  if ! unshare --fork --pid --mount --uts --ipc --net --cgroup --propagation private true; then
    die 'the DHCP machines need root with pid, mount, network and cgroup namespaces; this machine refuses them'
  fi
  cgroup2_root >/dev/null || die 'the DHCP machines need a cgroup v2 hierarchy under /sys/fs/cgroup; there is none'
  if ! unshare --mount --propagation private bash -c \
    "mount -t tmpfs tmpfs '$RUN/dhcp/mnt' && cd '$RUN/dhcp/mnt' && mkdir u w r && mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w r"; then
    die 'the DHCP machines need an overlay over /; this machine refuses it (is / an overlay itself?)'
  fi
}

# cgroup2_root prints where cgroup v2 is mounted: all of it, or beside v1.
cgroup2_root() {
  local dir
  for dir in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    if [[ -f $dir/cgroup.procs && -f $dir/cgroup.controllers ]]; then
      printf '%s\n' "$dir"
      return
    fi
  done
  return 1
}

make_ssh_keys() {
  local keys=$RUN/dhcp/keys
  mkdir -p "$keys" "$RUN/dhcp/mnt"
  ssh-keygen -q -t ed25519 -N '' -C enroll-lab -f "$keys/user"
  ssh-keygen -q -t ed25519 -N '' -C dhcp1 -f "$keys/host_ed25519"
  ssh-keygen -q -t rsa -b 2048 -N '' -C dhcp1 -f "$keys/host_rsa"
}

start_dhcp() {
  make_ssh_keys
  dhcp_possible
  for MACHINE in "${DHCP_MACHINES[@]}"; do start_machine; done
}

start_machine() {
  local group
  group=$(cgroup2_root)/enroll-lab-$(random 6)
  mkdir "$group"
  printf '%s\n' "$group" >>"$RUN/cgroups"
  # The process enters the group first, so that it is the root of the new cgroup namespace.
  # shellcheck disable=SC2016,SC2086 # expanded by the inner shell; the units are words
  spawn "dhcp-$MACHINE" bash -c 'echo $$ >"$0/cgroup.procs" && exec unshare --fork --kill-child --pid --mount --uts --ipc --net --cgroup \
    --propagation private "$@"' "$group" bash "$LAB/dhcp/machine.sh" "$RUN/dhcp" "$MACHINE" "$DHCP_SUBNET" "${DHCP_DIRECTORY[$MACHINE]}" ${DHCP_UNITS[$MACHINE]}
}

# machine_pid is the init of the machine as seen from outside: the only child of unshare.
machine_pid() {
  local pid child
  pid=$(pid_of "dhcp-$MACHINE") || return 1
  { child=$(<"/proc/$pid/task/$pid/children"); } 2>/dev/null || return 1
  [[ -n $child ]] || return 1
  printf '%s\n' "${child%% *}"
}

# in_machine COMMAND... runs a command as root inside. The control group stays out
# of it: a process of ours in there would keep it from being removed.
in_machine() {
  local pid
  pid=$(pid_of "dhcp-$MACHINE-init") || return 1
  nsenter -t "$pid" -m -p -u -i -n env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"
}

machine_ready() {
  local pid
  pid=$(machine_pid) || return 1
  [[ $(<"/proc/$pid/comm") == systemd ]] || return 1
  [[ -f $RUN/pids/dhcp-$MACHINE-init ]] || remember "dhcp-$MACHINE-init" "$pid"
  # shellcheck disable=SC2086 # the units are words
  in_machine systemctl is-active ssh ${DHCP_UNITS[$MACHINE]} >/dev/null 2>&1
}

start_forward() {
  SSH_PORTS[$MACHINE]=$(free_port)
  spawn "ssh-$MACHINE" socat "TCP4-LISTEN:${SSH_PORTS[$MACHINE]},bind=127.0.0.1,reuseaddr,fork" \
    "EXEC:nsenter --net=/proc/$(pid_of "dhcp-$MACHINE-init")/ns/net socat STDIO TCP4\\:127.0.0.1\\:22"
}

forward_ready() {
  local type machine
  for machine in "${!SSH_PORTS[@]}"; do
    for type in ed25519 rsa; do
      printf '[127.0.0.1]:%s %s\n' "${SSH_PORTS[$machine]}" "$(cut -d' ' -f1,2 "$RUN/dhcp/keys/host_$type.pub")"
    done
  done >"$RUN/known_hosts"
  as_enroll true 2>/dev/null
}

# as_enroll COMMAND runs a command line over SSH as the tool's account.
as_enroll() {
  ssh -F none -p "${SSH_PORTS[$MACHINE]}" -i "$RUN/dhcp/keys/user" -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=5 \
    -o UserKnownHostsFile="$RUN/known_hosts" -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes \
    enroll@127.0.0.1 "$@"
}

await_dhcp() {
  for MACHINE in "${DHCP_MACHINES[@]}"; do
    await "dhcp-$MACHINE" 60 machine_ready start_machine
    start_forward
    await "ssh-$MACHINE" 40 forward_ready start_forward
    as_enroll sudo -n systemctl restart "${DHCP_UNITS[$MACHINE]%% *}"
  done
}
