#!/usr/bin/env bash
# Events as real consumers see them (docs/events.md): azure-eventgrid of PyPI and npm parse what arrives in
# a queue and at a webhook, and no acknowledged upload is without its event after kill -9.
# Needs: python3, node, npm, ci/build.sh.
#
#   ci/events.sh [kills]
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt
kills=${1:-10}
build=${BUILD_DIR:-build}/events
python_packages='azure-storage-blob==12.31.1 azure-storage-queue==12.18.1 azure-eventgrid==4.22.1'
npm_packages='@azure/eventgrid@5.12.0'

if [ "$(cat "$build/installed" 2>/dev/null)" != "$python_packages $npm_packages" ]; then
    python3 -m venv "$build"
    # shellcheck disable=SC2086 # one package each
    "$build/bin/pip" install --quiet --disable-pip-version-check $python_packages
    # shellcheck disable=SC2086
    npm install --prefix "$build" --before "$npm_before" --no-audit --no-fund --loglevel error $npm_packages
    echo "$python_packages $npm_packages" >"$build/installed"
fi

start_smalt smalt
"$build/bin/python" ci/events.py consumers "$smalt_connection" "$smalt_control" "$work/events.json"
cp ci/events.mjs "$build/events.mjs"
node "$build/events.mjs" "$work/events.json"
"$build/bin/python" ci/events.py webhook "$smalt_connection" "$smalt_control"

# Fixed ports: the client goes on with the next process.
ports=$("$build/bin/python" ci/events.py ports)
read -r blob queue table control <<<"$ports"
cat >"$work/kills.toml" <<'END'
[kills]
destination = { kind = "queue", account = "devstoreaccount1", queue = "kills" }
END
begin() {
    "$bin/smalt" --subscriptions "$work/kills.toml" --location "$work/store" --blobPort "$blob" --queuePort "$queue" \
        --tablePort "$table" --controlPort "$control" >"$work/$1.log" 2>&1 &
    note_role "$1"
}
begin server
await "$work/server.log" DefaultEndpointsProtocol= "${role_pids[server]}"
connection=$(sed -n 's|^ *\(DefaultEndpointsProtocol=\)|\1|p' "$work/server.log")
: >"$work/acknowledged"
"$build/bin/python" ci/events.py upload "$connection" "$work/stop" "$work/acknowledged" &
client=$!
started+=("$client")
acknowledged() { wc -l <"$work/acknowledged"; }
for _ in $(seq 1 "$kills"); do
    before=$(acknowledged)
    for _ in $(seq 1 600); do
        [ "$(acknowledged)" -eq "$before" ] || break
        sleep 0.1
    done
    [ "$(acknowledged)" -gt "$before" ] || fail "nothing is acknowledged any more"
    kill_roles 1 server
done
touch "$work/stop"
wait "$client" || fail "the uploading client"
"$build/bin/python" ci/events.py compare "$connection" "127.0.0.1:$control" "$work/acknowledged"
