#!/usr/bin/env bash
# Replicas of `webhooks` on this machine, with a PostgreSQL and an etcd of their own.
#
#   bash examples/webhooks/replicas.sh [REPLICAS]
#
# They listen from port 8081 on. Ctrl-C stops all of it; what they store is in target/replicas, and
# is found there by the next start. POSTGRES and ETCD name the programs if they are not in PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
count=${1:-3}

die() {
  echo "replicas: $*" >&2
  exit 2
}

find_postgres() {
  local program
  for program in "${POSTGRES:-}" "$(command -v postgres)" /usr/lib/postgresql/*/bin/postgres; do
    [ ! -x "$program" ] || { echo "$program" && return; }
  done
}

postgres=$(find_postgres)
[ -n "$postgres" ] || die "there is no PostgreSQL (Debian: postgresql)"
etcd=${ETCD:-$(command -v etcd)} || die "there is no etcd (Debian: etcd-server)"

# Cargo knows where it builds.
webhooks=$(cargo build --release -p webhooks --features replicas --message-format json |
  sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -x "$webhooks" ] || die "webhooks was not built"

data=$(realpath -m "$(dirname "$webhooks")/../replicas")
# A short path: that of a socket has few characters.
socket=$(mktemp -d)
mkdir -p "$data"
as=()
if [ "$(id -u)" = 0 ]; then
  # It refuses to run as root.
  user=postgres
  id "$user" >/dev/null 2>&1 || user=daemon
  as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
  mkdir -p "$data/postgres"
  chown -R "$user" "$data/postgres" "$socket"
fi

servers=()
replicas=()
stop() {
  trap - EXIT INT TERM
  # The replicas first: they hand over, and write.
  for pid in "${replicas[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
  wait "${replicas[@]}" || true
  for pid in "${servers[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
  wait || true
  rm -rf "$socket"
}
trap stop EXIT
trap 'exit 0' INT TERM

# A group of its own: Ctrl-C reaches this script alone.
begin() {
  local log=$1
  shift
  setsid "$@" >"$log" 2>&1 &
}

# Waits for a text in a log for half a minute.
await() {
  local log=$1 text=$2
  for _ in $(seq 300); do
    ! grep -q "$text" "$log" || return 0
    sleep 0.1
  done
  die "never '$text' in $log"
}

if [ ! -e "$data/postgres/PG_VERSION" ]; then
  "${as[@]}" "$(dirname "$postgres")/initdb" --auth=trust --username=webhooks --encoding=UTF8 \
    --locale=C --pgdata "$data/postgres" >/dev/null
fi
begin "$data/postgres.log" "${as[@]}" "$postgres" -D "$data/postgres" -k "$socket" \
  -c listen_addresses=
servers+=("$!")
await "$data/postgres.log" "ready to accept connections"

begin "$data/etcd.log" "$etcd" --data-dir "$data/etcd" --logger zap \
  --listen-client-urls http://127.0.0.1:2479 --advertise-client-urls http://127.0.0.1:2479 \
  --listen-peer-urls http://127.0.0.1:2480 --initial-advertise-peer-urls http://127.0.0.1:2480 \
  --initial-cluster default=http://127.0.0.1:2480
servers+=("$!")
await "$data/etcd.log" "client .*insecure"

for n in $(seq "$count"); do
  begin "$data/replica-$n.log" "$webhooks" --listen "127.0.0.1:$((8080 + n))" \
    --name "replica-$n" --allow-private --etcd http://127.0.0.1:2479 \
    --database "postgres://webhooks@${socket//\//%2F}/postgres"
  replicas+=("$!")
  await "$data/replica-$n.log" "listening on"
  echo "http://127.0.0.1:$((8080 + n))  replica-$n, process ${replicas[-1]}, log $data/replica-$n.log"
done
echo "Ctrl-C stops them"
# Until a signal: a replica that was killed leaves the others to it.
while true; do sleep 1 & wait $! || true; done
