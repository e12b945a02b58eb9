# shellcheck shell=bash
# What is installed once: Debian packages, a Python, three virtual environments.

NETBOX_VERSION=4.7.3
IRONIC_VERSION=39.0.0
SUSHY_VERSION=2.2.0
KEYSTONE_VERSION=30.0.0

PACKAGES=(postgresql redis-server libpq-dev gcc libc6-dev dnsmasq kea-dhcp4-server kea-dhcp6-server kea-ctrl-agent kea-admin isc-dhcp-server
  openssh-server openssh-client sudo systemd dbus iproute2 util-linux socat udhcpc curl openssl procps ca-certificates openipmi ipmitool)

# Where install_packages keeps the machine's own policy-rc.d, or the note that it had none.
POLICY_BACKUP=$CACHE/policy-rc.d

# check_system says what this machine lacks, before anything is installed.
check_system() {
  local program
  ((EUID == 0)) || die 'the lab needs root: it installs Debian packages, runs a database as another user and makes namespaces'
  [[ -r /etc/debian_version && -n $(type -P apt-get) ]] || die 'the lab is made for Debian 12: there is no apt-get here'
  for program in flock setsid setpriv unshare nsenter; do
    [[ -n $(type -P "$program") ]] || die "$program is missing (package util-linux)"
  done
}

missing_packages() {
  local package
  for package in "${PACKAGES[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

# install_packages installs what is missing without any service being started: a
# policy-rc.d that refuses stands in the way, and the old one is put back.
install_packages() {
  local missing policy=/usr/sbin/policy-rc.d
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} > 0)) || return 0
  say "lab: installing Debian packages: ${missing[*]}"
  if [[ -e $policy ]]; then cp -p "$policy" "$POLICY_BACKUP"; else : >"$POLICY_BACKUP.none"; fi
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 0755 "$policy"
  apt_get update
  apt_get install -y --no-install-recommends "${missing[@]}"
  restore_policy
}

# restore_policy is also called when the run fails half way, and at the next start
# for the case that it was killed.
restore_policy() {
  local policy=/usr/sbin/policy-rc.d
  if [[ -e $POLICY_BACKUP ]]; then cp -p "$POLICY_BACKUP" "$policy"; elif [[ -e $POLICY_BACKUP.none ]]; then rm -f "$policy"; fi
  rm -f "$POLICY_BACKUP" "$POLICY_BACKUP.none"
}

# The lab's own umask is not for files of packages.
apt_get() (
  umask 022
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null 3>&- 9>&-
)

# good_python PROGRAM: NetBox 4.7 needs Python 3.12, with venv and the C headers (psycopg is compiled).
good_python() {
  "$1" -c 'import sys, venv, ensurepip, sysconfig, os
sys.exit(not ((3, 12) <= sys.version_info < (3, 14) and os.path.exists(sysconfig.get_path("include") + "/Python.h")))' 2>/dev/null
}

# find_python sets PYTHON: the one of the last install, one that is here, or one that can be got.
find_python() {
  local candidate
  for candidate in "${ENROLL_LAB_PYTHON:-}" "$(readlink -f "$CACHE/venv-netbox/bin/python" 2>/dev/null || true)" \
    "$(type -P python3.12 || true)" "$(type -P python3.13 || true)" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12*/bin/python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python3.13 \
    "$CACHE"/python/*/bin/python3.12; do
    if [[ -x $candidate ]] && good_python "$candidate"; then
      # The program itself, not a script that starts it.
      PYTHON=$("$candidate" -c 'import sys; print(sys.executable)')
      return 0
    fi
  done
  get_python
}

# get_python tries the ways there are to a Python that Debian 12 does not have.
get_python() {
  local helper=$CACHE/uv
  if [[ -n $(apt-cache madison python3.12-dev 2>/dev/null) ]]; then
    apt_get install -y --no-install-recommends python3.12 python3.12-venv python3.12-dev || true
  elif python3 -m venv "$helper" 2>/dev/null && "$helper/bin/pip" install -q uv; then
    UV_PYTHON_INSTALL_DIR=$CACHE/python timeout 180 "$helper/bin/uv" python install 3.12 || true
  fi
  for PYTHON in "$(type -P python3.12 || true)" "$CACHE"/python/*/bin/python3.12; do
    if [[ -x $PYTHON ]] && good_python "$PYTHON"; then return 0; fi
  done
  die 'NetBox 4.7 needs Python 3.12 or 3.13 with venv and headers; none is on PATH or under pyenv, and neither apt nor uv had one (set ENROLL_LAB_PYTHON)'
}

# venv_done NAME WANT: the environment is complete, of these versions, and its Python is still there.
venv_done() {
  [[ $(cat "$CACHE/venv-$1/.complete" 2>/dev/null) == "$2" ]] && "$CACHE/venv-$1/bin/python" -c '' 2>/dev/null
}

# make_venv NAME PACKAGE... makes it whole or not at all: the mark is written last.
make_venv() {
  local name=$1 dir=$CACHE/venv-$1
  shift
  venv_done "$name" "$*" && return 0
  rm -rf "$dir"
  "$PYTHON" -m venv "$dir"
  "$dir/bin/pip" install -q --no-input "$@" </dev/null
  printf '%s\n' "$*" >"$dir/.complete"
}

# install_environments makes the large ones side by side.
install_environments() {
  local ironic
  install_ironic &
  ironic=$!
  install_netbox
  install_openbao
  wait "$ironic"
}

install_netbox() { make_venv netbox "netbox==$NETBOX_VERSION"; }
install_ironic() { make_venv ironic "ironic==$IRONIC_VERSION" "sushy-tools==$SUSHY_VERSION" "keystone==$KEYSTONE_VERSION"; }
