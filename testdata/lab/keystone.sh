# shellcheck shell=bash
# Keystone, and a second Ironic that asks it about every request: for what an
# application credential and its access rules let through. It has its own database,
# so that nothing the first one's tests do is seen there.

keystone_conf() {
  printf '[database]\nconnection = sqlite:///%s/keystone.sqlite\n[fernet_tokens]\nkey_repository = %s/fernet\n' "$1" "$1"
  # The least there is: each hash costs a second of a busy machine otherwise.
  printf '[identity]\npassword_hash_rounds = 4\n[application_credential]\nuser_limit = -1\n'
}

# make_keystone_schema keeps an empty database, as for Ironic, and the keys of the tokens.
make_keystone_schema() {
  local dir=$CACHE/keystone.new
  rm -rf "$dir" "$CACHE/keystone"
  mkdir -p "$dir/fernet"
  keystone_conf "$dir" >"$dir/keystone.conf"
  "$IRONIC_VENV/bin/keystone-manage" --config-file "$dir/keystone.conf" db_sync
  "$IRONIC_VENV/bin/keystone-manage" --config-file "$dir/keystone.conf" fernet_setup --keystone-user root --keystone-group root
  mv "$dir" "$CACHE/keystone"
}

start_keystone() {
  local dir=$RUN/keystone
  rm -rf "$dir"
  cp -r "$CACHE/keystone" "$dir"
  keystone_conf "$dir" >"$dir/keystone.conf"
  KEYSTONE_PASSWORD=$(random 12)
  KEYSTONE_PORT=$(free_port)
  # The password comes through the environment, not the command line.
  # shellcheck disable=SC2016 # expanded by the inner shell
  spawn keystone env OS_KEYSTONE_CONFIG_FILES="$dir/keystone.conf" OS_BOOTSTRAP_PASSWORD="$KEYSTONE_PASSWORD" PYTHONDONTWRITEBYTECODE=1 \
    bash -c '"$0/keystone-manage" --config-file "$1/keystone.conf" bootstrap --bootstrap-region-id RegionOne \
      --bootstrap-public-url "http://127.0.0.1:$3/v3" && exec "$0/python" "$2" "$3"' \
    "$IRONIC_VENV/bin" "$dir" "$LAB/keystone/serve.py" "$KEYSTONE_PORT"
}

keystone_ready() { curl -fsS -m 5 -o /dev/null "http://127.0.0.1:$KEYSTONE_PORT/v3" 2>/dev/null; }

start_guarded_ironic() {
  local dir=$RUN/ironic-keystone
  make_ironic_folder "$dir"
  GUARDED_IRONIC_PORT=$(free_port)
  ironic_conf "$dir" "$GUARDED_IRONIC_PORT" >"$dir/ironic.conf"
  # What is given last counts.
  cat >"$dir/keystone.conf" <<END
[DEFAULT]
auth_strategy = keystone

[keystone_authtoken]
www_authenticate_uri = http://127.0.0.1:$KEYSTONE_PORT/v3
auth_url = http://127.0.0.1:$KEYSTONE_PORT/v3
auth_type = password
username = admin
password = $KEYSTONE_PASSWORD
project_name = admin
user_domain_id = default
project_domain_id = default
# Without it every credential that has access rules is refused.
service_type = baremetal
# The only endpoint of Keystone's own that bootstrap makes here.
interface = public
END
  spawn ironic-keystone "$IRONIC_VENV/bin/ironic" --config-file "$dir/ironic.conf" --config-file "$dir/keystone.conf"
}

# guarded_ironic_ready asks as the administrator, what only the conductor can answer.
guarded_ironic_ready() {
  ENROLL_LAB_KEYSTONE_PASSWORD=$KEYSTONE_PASSWORD "$IRONIC_VENV/bin/python" "$LAB/keystone/catalogue.py" \
    "http://127.0.0.1:$KEYSTONE_PORT/v3" "http://127.0.0.1:$GUARDED_IRONIC_PORT"
}
