#!/usr/bin/env bash
# Runs as the first process of fresh pid, mount, uts, ipc, network and cgroup
# namespaces and becomes a small Debian machine there: systemd with journal, dbus,
# sudo, sshd and one DHCP server, on an overlay over the real root. Every write goes
# to a tmpfs that vanishes with the namespaces.
#
# usage: machine.sh WORK SERVER SUBNET DIRECTORY UNIT...   (WORK/keys holds the SSH keys)
set -euo pipefail

work=$1 server=$2 subnet=$3 directory=$4
shift 4
units=("$@")
root=$work/mnt/root

mount_root() {
  # Everything mounted from here on is seen by this machine alone.
  mount --make-rprivate /
  mount -t tmpfs -o size=512m,mode=755 tmpfs "$work/mnt"
  mkdir -p "$work/mnt/up" "$work/mnt/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$work/mnt/up,workdir=$work/mnt/work" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
}

mount_dev() {
  local node dev=$root/dev
  mount -t tmpfs -o mode=755 tmpfs "$dev"
  for node in null zero full random urandom tty; do
    touch "$dev/$node"
    mount --bind "/dev/$node" "$dev/$node"
  done
  mkdir "$dev/pts" "$dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$dev/shm"
  ln -s pts/ptmx "$dev/ptmx"
  ln -s /proc/self/fd "$dev/fd"
}

# wire makes the BMC network: a bridge with the server's address, and two clients
# in network namespaces of their own, which only this machine knows by name.
wire() {
  local n
  ip link set lo up
  ip link add br0 type bridge
  ip address add "${subnet%.*}.1/24" dev br0
  ip link set br0 up
  mkdir -p "$root/run/netns"
  mount --bind "$root/run" /run
  for n in 1 2; do
    ip netns add "bmc$n"
    ip link add "port$n" type veth peer name eth0 netns "bmc$n"
    ip link set "port$n" master br0 up
    ip netns exec "bmc$n" ip link set eth0 up
  done
  # The names are mounts on /run and would stay behind with it; ip made them shared,
  # and what is shared would go when the old root goes.
  mount --rbind /run/netns "$root/run/netns"
  mount --make-rprivate "$root/run/netns"
}

# target keeps of the real machine's services none: only what this target wants.
target() {
  local unit etc=$root/etc/systemd/system
  rm -rf "${etc:?}"
  mkdir -p "$etc/enroll-lab.target.wants" "$root/etc/systemd/journald.conf.d"
  cat >"$etc/enroll-lab.target" <<'EOF'
[Unit]
Description=The DHCP machine of the enroll lab
Requires=basic.target
After=basic.target
EOF
  for unit in ssh dbus "${units[@]}"; do
    ln -s "/lib/systemd/system/$unit.service" "$etc/enroll-lab.target.wants/$unit.service"
  done
  # What a machine without devices, seats and clock can't run.
  for unit in systemd-udevd.service systemd-udev-trigger.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
    systemd-networkd.service systemd-resolved.service systemd-timesyncd.service systemd-logind.service \
    systemd-sysctl.service systemd-modules-load.service systemd-random-seed.service systemd-binfmt.service \
    systemd-pstore.service systemd-boot-system-token.service systemd-firstboot.service systemd-sysusers.service \
    systemd-remount-fs.service systemd-machine-id-commit.service sys-kernel-debug.mount sys-kernel-tracing.mount \
    sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount proc-sys-fs-binfmt_misc.automount; do
    ln -s /dev/null "$etc/$unit"
  done
  # The journal stays in memory, and a burst of log lines is a thing tests make.
  printf '[Journal]\nStorage=volatile\nRateLimitBurst=0\nRuntimeMaxUse=64M\n' >"$root/etc/systemd/journald.conf.d/enroll-lab.conf"
}

identity() {
  : >"$root/etc/fstab"
  rm -f "$root/etc/machine-id" "$root/etc/hostname" "$root/etc/hosts" "$root/etc/resolv.conf"
  tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
  echo dhcp1 >"$root/etc/hostname"
  # Without its own name here sudo warns on stderr with every command.
  printf '127.0.0.1 localhost dhcp1\n' >"$root/etc/hosts"
  : >"$root/etc/resolv.conf"
  chmod 0644 "$root"/etc/{machine-id,hostname,hosts,resolv.conf}
  hostname dhcp1
}

# account is the one that enroll logs in with: it owns the folder of the
# reservations, reads the journal, and may restart, reload and check the server.
account() {
  local unit=${units[0]} check=''
  case $server in
    kea) check=', /usr/sbin/kea-dhcp4 -t /etc/kea/kea-dhcp4.conf' ;;
    isc) check=', /usr/sbin/dhcpd -t -4 -cf /etc/dhcp/dhcpd.conf' ;;
  esac
  chroot "$root" userdel -r enroll 2>/dev/null || true
  chroot "$root" useradd -m -s /bin/bash -G systemd-journal enroll
  # No password at all, yet not a locked account, which sshd would refuse.
  chroot "$root" usermod -p '*' enroll
  cat >"$root/etc/sudoers.d/enroll" <<EOF
enroll ALL=(root) NOPASSWD: /usr/bin/systemctl restart $unit, /usr/bin/systemctl reload $unit$check
EOF
  chmod 0440 "$root/etc/sudoers.d/enroll"
  chroot "$root" install -d -o enroll -g enroll -m 0755 "$directory"
}

sshd() {
  rm -f "$root"/etc/ssh/ssh_host_* "$root"/etc/ssh/sshd_config.d/*
  install -m 0600 "$work/keys/host_ed25519" "$root/etc/ssh/ssh_host_ed25519_key"
  install -m 0600 "$work/keys/host_rsa" "$root/etc/ssh/ssh_host_rsa_key"
  # The enroll key and, for tests that break things, one for root.
  install -m 0644 "$work/keys/user.pub" "$root/etc/ssh/authorized_keys"
  cat >"$root/etc/ssh/sshd_config" <<'EOF'
ListenAddress 127.0.0.1
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_rsa_key
AuthorizedKeysFile /etc/ssh/authorized_keys
AllowUsers enroll
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
Subsystem sftp /usr/lib/openssh/sftp-server
EOF
}

dnsmasq() {
  rm -f "$root"/etc/dnsmasq.d/* "$root/etc/default/dnsmasq" "$root"/var/lib/misc/dnsmasq.leases
  printf 'ENABLED=1\nCONFIG_DIR=/etc/dnsmasq.d,.dpkg-dist,.dpkg-old,.dpkg-new\n' >"$root/etc/default/dnsmasq"
  cat >"$root/etc/dnsmasq.conf" <<EOF
# Reservations only: who has no file in the folder gets no answer.
port=0
no-resolv
no-hosts
interface=br0
except-interface=lo
bind-interfaces
dhcp-range=$subnet,static,255.255.255.0,1h
dhcp-hostsdir=$directory
dhcp-authoritative
log-dhcp
EOF
}

# kea has no pool either. It reads the index, which lists the files of the hosts.
kea() {
  rm -f "$root"/var/lib/kea/*
  printf '[\n]\n' >"$root$directory/index.json"
  chroot "$root" chown enroll: "$directory/index.json"
  cat >"$root/etc/kea/kea-dhcp4.conf" <<EOF
// Reservations only: who has none gets no answer.
{
  "Dhcp4": {
    "interfaces-config": { "interfaces": [ "br0" ] },
    "control-socket": { "socket-type": "unix", "socket-name": "/run/kea/kea4-ctrl-socket" },
    "lease-database": { "type": "memfile", "persist": true, "name": "/var/lib/kea/kea-leases4.csv" },
    "valid-lifetime": 3600,
    "authoritative": true,
    // A BMC whose client-id changes would otherwise be refused its own address.
    "match-client-id": false,
    "host-reservation-identifiers": [ "hw-address" ],
    "reservations-in-subnet": true,
    "reservations-out-of-pool": true,
    "subnet4": [
      {
        "id": 1,
        "subnet": "$subnet/24",
        "option-data": [ { "name": "routers", "data": "${subnet%.*}.1" } ],
        "reservations": <?include "$directory/index.json"?>
      }
    ],
    "loggers": [ { "name": "kea-dhcp4", "severity": "INFO", "output_options": [ { "output": "stdout", "pattern": "%-5p %m\\n" } ] } ]
  }
}
EOF
}

# isc has no range either.
isc() {
  : >"$root$directory/index.conf"
  chroot "$root" chown enroll: "$directory/index.conf"
  printf 'INTERFACESv4="br0"\nINTERFACESv6=""\n' >"$root/etc/default/isc-dhcp-server"
  rm -f "$root"/var/lib/dhcp/dhcpd.leases*
  : >"$root/var/lib/dhcp/dhcpd.leases"
  cat >"$root/etc/dhcp/dhcpd.conf" <<EOF
# Reservations only: who has none gets no answer.
authoritative;
default-lease-time 3600;
max-lease-time 43200;
subnet $subnet netmask 255.255.255.0 {
  option routers ${subnet%.*}.1;
}
include "$directory/index.conf";
EOF
}

become_systemd() {
  cd "$root"
  mkdir -p mnt/old
  pivot_root . mnt/old
  umount -l /mnt/old
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=enroll-lab LANG=C.UTF-8 \
    /lib/systemd/systemd --unit=enroll-lab.target --log-target=journal --show-status=false
}

umask 022
mount_root
mount_dev
wire
identity
target
account
sshd
"$server"
become_systemd
