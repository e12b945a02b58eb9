# shellcheck shell=bash
# Ironic, the BMC emulator that stands behind its redfish driver, and the played ramdisk.

IRONIC_VENV=$CACHE/venv-ironic
REDFISH_USER=lab

ironic_conf() {
  sed -e "s|@DIR@|$1|g" -e "s|@PORT@|$2|g" "$LAB/ironic.conf.in"
}

# make_ironic_schema keeps an empty database: making one takes longer than a start.
make_ironic_schema() {
  local dir=$CACHE/ironic.new
  rm -rf "$dir"
  mkdir -p "$dir"
  ironic_conf "$dir" 1 >"$dir/ironic.conf"
  "$IRONIC_VENV/bin/ironic-dbsync" --config-file "$dir/ironic.conf" create_schema
  mv "$dir/ironic.sqlite" "$CACHE/ironic.sqlite"
  rm -rf "$dir"
}

# make_ironic_folder makes what an Ironic needs beside its configuration.
make_ironic_folder() {
  mkdir -p "$1"/{state,tftp/master,images/master,http,boot}
  echo 'not a kernel' >"$1/boot/kernel"
  echo 'not a ramdisk' >"$1/boot/ramdisk"
  cp "$CACHE/ironic.sqlite" "$1/ironic.sqlite"
}

start_ironic() {
  local dir=$RUN/ironic
  make_ironic_folder "$dir"
  # What the conductor trusts: the system's certificates and the emulator's.
  cat /etc/ssl/certs/ca-certificates.crt "$RUN/redfish/ca.pem" >"$dir/ca.pem"
  IRONIC_PORT=$(free_port)
  ironic_conf "$dir" "$IRONIC_PORT" >"$dir/ironic.conf"
  spawn ironic env REQUESTS_CA_BUNDLE="$dir/ca.pem" "$IRONIC_VENV/bin/ironic" --config-file "$dir/ironic.conf"
}

# ironic_ready asks what only the conductor can answer; GET / works without it.
ironic_ready() {
  curl -fsS -m 5 -o /dev/null -H 'X-OpenStack-Ironic-API-Version: latest' \
    "http://127.0.0.1:$IRONIC_PORT/v1/drivers/fake-hardware/properties" 2>/dev/null
}

# start_ramdisk first gives every server of the fleet a healthy inventory, for tests to replace.
start_ramdisk() {
  mkdir -p "$RUN/inventory"
  "$PYTHON" -c 'import json, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import fleet
for i in range(1, fleet.SERVERS + 1):
    with open("%s/%s.json" % (sys.argv[2], fleet.name(i)), "w") as file:
        json.dump(fleet.inspection_data(i), file, indent=1)' "$LAB" "$RUN/inventory"
  spawn ramdisk "$PYTHON" -u "$LAB/ramdisk.py" "http://127.0.0.1:$IRONIC_PORT" "$RUN/inventory" "$RUN/ramdisk.port"
  await ramdisk 30 ramdisk_ready start_ramdisk
}

ramdisk_ready() { [[ -s $RUN/ramdisk.port ]]; }

# make_redfish_secrets makes the account of the BMCs, and a CA of the lab.
make_redfish_secrets() {
  local dir=$RUN/redfish
  mkdir -p "$dir/state"
  REDFISH_PASSWORD=$(random 12)
  # The here-string's newline is not part of the password.
  "$IRONIC_VENV/bin/python" -c 'import bcrypt, sys
print("%s:%s" % (sys.argv[1], bcrypt.hashpw(sys.stdin.read().strip().encode(), bcrypt.gensalt(4)).decode()))' \
    "$REDFISH_USER" <<<"$REDFISH_PASSWORD" >"$dir/htpasswd"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj '/CN=enroll lab CA' \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -keyout "$dir/ca.key" -out "$dir/ca.pem"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=127.0.0.1 -keyout "$dir/server.key" -out "$dir/server.csr"
  openssl x509 -req -in "$dir/server.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -days 30 \
    -extfile <(printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n') -out "$dir/server.pem"
}

start_redfish() {
  REDFISH_PORT=$(free_port)
  spawn redfish env ENROLL_LAB_PORT="$REDFISH_PORT" ENROLL_LAB_REDFISH="$RUN/redfish" PYTHONDONTWRITEBYTECODE=1 \
    "$IRONIC_VENV/bin/sushy-emulator" --fake --config "$LAB/sushy.conf.py"
}

# redfish_ready reads the list of systems; the password comes through a file
# descriptor, not the command line, which every user can read.
redfish_ready() {
  curl -fsS -m 5 -o /dev/null --cacert "$RUN/redfish/ca.pem" -K <(printf 'user = "%s:%s"\n' "$REDFISH_USER" "$REDFISH_PASSWORD") \
    "https://127.0.0.1:$REDFISH_PORT/redfish/v1/Systems" 2>/dev/null
}
