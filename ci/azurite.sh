#!/usr/bin/env bash
# Runs the same scenarios and the same two binaries against smalt and against Azurite, and compares the
# results. Azurite comes from npm into build/azurite. Needs: ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-sweeper smalt-listener harness

build=${BUILD_DIR:-build}/azurite

# scenarios NAME BLOB QUEUE: one line per case, into $work/NAME.results.
scenarios() {
    "$bin/harness" check sweep --url "http://$2/$account" --cases 4 >"$work/$1.results" ||
        fail "sweep on $1: $(cat "$work/$1.results")"
    "$bin/harness" check listen --url "http://$3/$account" --cases 2 >>"$work/$1.results" ||
        fail "listen on $1: $(cat "$work/$1.results")"
}

# binaries NAME BLOB QUEUE: runs both workers on blobs and messages, and adds their results.
binaries() {
    local connection="DefaultEndpointsProtocol=http;AccountName=$account;AccountKey=$key"
    connection+=";BlobEndpoint=http://$2/$account;QueueEndpoint=http://$3/$account;"
    export AZURE_STORAGE_CONNECTION_STRING=$connection
    "$bin/smalt-listener" send --queue azurite-orders --create-queue one two three \
        --log-level error >"$work/sent"
    local status=0
    "$bin/smalt-listener" once --queue azurite-orders --exec cat --log-level error \
        >"$work/handled" || status=$?
    {
        echo "listener exit $status, sent $(wc -l <"$work/sent")"
        "$bin/smalt-listener" stats --queue azurite-orders | sed "s|$3|QUEUE|g" || true
    } >>"$work/$1.results"
    "$bin/harness" seed --url "http://$2/$account" >>"$work/$1.results"
    status=0
    "$bin/smalt-sweeper" once --container seeded --dead-allow seeded-dead --log-level error \
        --worker-id w --seed 1 >"$work/report" || status=$?
    {
        echo "sweeper exit $status"
        grep -E '"(deleted|moved|no_ttl|not_due|invalid_ttl)"' "$work/report"
    } >>"$work/$1.results"
    unset AZURE_STORAGE_CONNECTION_STRING
}

install_azurite "$build"
start_smalt smalt
start_azurite "$build" "$work/azurite"
for service in smalt azurite; do
    blob=${service}_blob queue=${service}_queue
    scenarios "$service" "${!blob}" "${!queue}"
    binaries "$service" "${!blob}" "${!queue}"
done
diff "$work/smalt.results" "$work/azurite.results" || fail "smalt (<) and Azurite (>) differ"
cat "$work/smalt.results"
echo "smalt and Azurite $azurite_version agree"
