# shellcheck shell=bash
# NetBox with a database cluster and a Redis of its own. The cluster is made anew
# at every start from a dump in the cache: 2 s, and every start begins the same.
#
# Two dumps are kept: "migrated" has the tables, the user and the tokens and costs
# minutes; "seeded" has the fleet too and is made anew whenever the seed changes.

NETBOX=$CACHE/netbox
NETBOX_VENV=$CACHE/venv-netbox

netbox_env() {
  env NETBOX_ROOT="$NETBOX" ENROLL_LAB_SCRATCH="$SCRATCH" PYTHONDONTWRITEBYTECODE=1 "$@"
}

as_postgres() {
  (cd / && exec setpriv --reuid postgres --regid postgres --init-groups \
    env -i PATH="$PGBIN:/usr/bin:/bin" LC_ALL=C.UTF-8 PGHOST="$SCRATCH/pg" "$@")
}

# make_scratch makes the folder that the database's user can reach.
make_scratch() {
  SCRATCH=$(mktemp -d /tmp/enroll-lab.XXXXXX)
  printf '%s\n' "$SCRATCH" >"$RUN/scratch"
  chmod 0711 "$SCRATCH"
  install -d -o postgres -g postgres -m 0700 "$SCRATCH/pg" "$SCRATCH/pg/data"
}

# find_postgres takes the newest PostgreSQL of the system; NetBox 4.7 needs 15.
find_postgres() {
  PGBIN=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  [[ -x $PGBIN/initdb ]] || die 'no PostgreSQL server programs under /usr/lib/postgresql'
}

start_postgres() {
  find_postgres
  make_scratch
  as_postgres initdb -D "$SCRATCH/pg/data" -A trust -U postgres -E UTF8 --no-sync >/dev/null
  # Nothing here outlives the lab, so nothing is worth a disk flush.
  (cd / && spawn postgres setpriv --reuid postgres --regid postgres --init-groups \
    env -i PATH="$PGBIN" LC_ALL=C.UTF-8 "$PGBIN/postgres" -D "$SCRATCH/pg/data" \
    -c listen_addresses= -c unix_socket_directories="$SCRATCH/pg" -c max_connections=60 \
    -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c wal_level=minimal -c max_wal_senders=0 \
    -c shared_buffers=128MB -c autovacuum_naptime=10min)
  await postgres 60 postgres_ready start_postgres
}

postgres_ready() { as_postgres pg_isready -q; }

start_redis() {
  spawn redis redis-server --port 0 --unixsocket "$SCRATCH/redis.sock" --unixsocketperm 700 \
    --save '' --appendonly no --dir "$SCRATCH"
  await redis 30 redis_ready start_redis
}

redis_ready() { [[ -S $SCRATCH/redis.sock ]]; }

# write_netbox_conf makes the configuration anew and the secrets once.
write_netbox_conf() {
  mkdir -p "$NETBOX/conf"
  : >"$NETBOX/conf/__init__.py"
  cp "$LAB/netbox/configuration.py" "$NETBOX/conf/configuration.py"
  [[ -f $NETBOX/secrets.json ]] || printf '{"secret_key": "%s", "pepper": "%s", "password": "%s"}\n' \
    "$(random 32)" "$(random 32)" "$(random 12)" >"$NETBOX/secrets.json"
}

json_field() { "$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

# migrate fills an empty database. That takes minutes of one core, and happens
# once: the dump, which has the users and tokens in it, is written at the end.
migrate() {
  as_postgres createdb netbox
  netbox_env "$NETBOX_VENV/bin/netbox" migrate --no-input
  netbox_env ENROLL_LAB_NETBOX_PASSWORD="$(json_field "$NETBOX/secrets.json" password)" \
    "$NETBOX_VENV/bin/netbox" shell -c "exec(open('$LAB/netbox/tokens.py').read())"
  [[ -s $NETBOX/tokens.json ]]
  dump migrated
}

# dump NAME writes the database into the cache, complete or not at all.
dump() {
  as_postgres pg_dump --no-owner netbox | gzip >"$NETBOX/$1.sql.gz.new"
  mv "$NETBOX/$1.sql.gz.new" "$NETBOX/$1.sql.gz"
}

# restore NAME [SED-SCRIPT] fills an empty database from a dump.
restore() {
  as_postgres createdb netbox
  gunzip -c "$NETBOX/$1.sql.gz" | sed "${2:-}" | as_postgres psql -q -v ON_ERROR_STOP=1 -d netbox -o /dev/null
  # Without it the planner knows nothing of the tables until autovacuum comes.
  as_postgres psql -q -d netbox -c ANALYZE
}

# seed_version changes with whatever the seeded dump is made of.
seed_version() { cat "$LAB/fleet.py" "$LAB/seed.py" "$LAB/netbox/tokens.py" "$NETBOX/tokens.json" | sha256sum; }

# make_template makes the dumps that are missing or outdated.
make_template() {
  if [[ ! -s $NETBOX/migrated.sql.gz || ! -s $NETBOX/tokens.json ]]; then
    say 'lab: NetBox migrates its empty database; this takes 6 to 8 minutes, once'
    rm -f "$NETBOX"/seeded.*
    phase 'migrate NetBox' netbox-migrate.log migrate
  elif [[ -s $NETBOX/seeded.sql.gz && $(cat "$NETBOX/seeded.version" 2>/dev/null) == "$(seed_version)" ]]; then
    return 0
  else
    phase 'restore migrated NetBox' netbox-database.log restore migrated
  fi
  phase 'start NetBox to seed it' netbox-start.log start_netbox
  phase 'NetBox answers' netbox-start.log await_netbox
  phase 'seed NetBox' netbox-seed.log seed_netbox
  phase 'dump seeded NetBox' netbox-database.log keep_seeded
}

seed_netbox() {
  ENROLL_LAB_NETBOX_TOKEN=$NETBOX_TOKEN PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$LAB/seed.py" "$NETBOX_URL"
}

# seed_missing gives a NetBox that runs already the site that its seed got later.
seed_missing() (
  set -a
  # shellcheck disable=SC1091 # made by up.sh
  . "$RUN/env"
  PYTHONDONTWRITEBYTECODE=1 exec "$PYTHON" "$LAB/seed.py" "$ENROLL_LAB_NETBOX_URL" --missing
)

# keep_seeded empties the change log, so that what is found there later was done by
# a test, and leaves neither database nor cache behind.
keep_seeded() {
  forget netbox
  as_postgres psql -q -v ON_ERROR_STOP=1 -d netbox -c 'TRUNCATE core_objectchange'
  dump seeded
  seed_version >"$NETBOX/seeded.version"
  as_postgres dropdb netbox
  redis-cli -s "$SCRATCH/redis.sock" flushall
}

# restore_seeded puts this run's address of the Redfish emulator in the place of the seed's.
restore_seeded() {
  restore seeded "s|https://redfish\.lab\.invalid|https://127.0.0.1:$REDFISH_PORT|g"
}

start_netbox() {
  rm -f "$RUN/netbox.port"
  (cd "$NETBOX" && netbox_spawn)
}

netbox_spawn() {
  spawn netbox env NETBOX_ROOT="$NETBOX" ENROLL_LAB_SCRATCH="$SCRATCH" \
    "$NETBOX_VENV/bin/python" "$LAB/netbox/serve.py" "$RUN/netbox.port"
}

netbox_ready() {
  [[ -s $RUN/netbox.port ]] &&
    curl -fsS -m 5 -o /dev/null -H "Authorization: Bearer $NETBOX_TOKEN" "http://127.0.0.1:$(<"$RUN/netbox.port")/api/status/" 2>/dev/null
}

# await_netbox also learns the tokens.
await_netbox() {
  NETBOX_TOKEN=$(json_field "$NETBOX/tokens.json" token)
  # shellcheck disable=SC2034 # used by site.sh
  NETBOX_READONLY_TOKEN=$(json_field "$NETBOX/tokens.json" readonly_token)
  await netbox 180 netbox_ready start_netbox
  NETBOX_URL=http://127.0.0.1:$(<"$RUN/netbox.port")
}
