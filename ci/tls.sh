#!/usr/bin/env bash
# Tests the production path: both workers use TLS with Azure's host names, a key and a SAS, against smalt
# with a certificate for these names. Needs: ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-sweeper smalt-listener harness

blob_endpoint=https://$account.blob.core.windows.net
queue_endpoint=https://$account.queue.core.windows.net

"$bin/harness" certificate --dir "$work/tls"
ca=$work/tls/ca.pem
start_smalt tls --cert "$work/tls/server.pem" --key "$work/tls/server.key"
# Only one process can open the store, so the data are written over TLS as well.
sas=$("$bin/harness" sas)

sweep() {
    "$bin/smalt-sweeper" once --endpoint "$blob_endpoint" --account "$account" \
        --connect-to "$tls_blob" --container seeded --dead-allow seeded-dead \
        --log-level error "$@"
}
listen() {
    "$bin/smalt-listener" "$1" --endpoint "$queue_endpoint" --account "$account" \
        --connect-to "$tls_queue" --queue tls-orders --log-level error "${@:2}"
}
# round CREDENTIAL...: writes and processes messages and blobs.
round() {
    listen send --ca-file "$ca" "$@" --create-queue "hello over TLS" >/dev/null
    handled=$(listen once --ca-file "$ca" "$@" --exec cat)
    [ "$handled" = "hello over TLS" ] || fail "the listener handled: $handled"
    "$bin/harness" seed --url "$blob_endpoint" --connect-to "$tls_blob" --ca-file "$ca"
    local status=0
    sweep --ca-file "$ca" "$@" >"$work/report" || status=$?
    # One blob has an invalid time to live, so the sweeper exits with 1.
    [ "$status" = 1 ] || fail "the sweeper exits with $status: $(cat "$work/report")"
    grep -q '"deleted": 2' "$work/report" || fail "the sweeper did not delete two blobs: $(cat "$work/report")"
    grep -q '"moved": 1' "$work/report" || fail "the sweeper did not move one blob: $(cat "$work/report")"
}

echo "shared key"
round --account-key "$key"
echo "shared access signature"
round --sas "$sas"
echo "without the authority"
if sweep --account-key "$key" --state other/state >"$work/refused" 2>&1; then
    fail "the sweeper trusted an unknown certificate"
fi
if listen send --account-key "$key" "never" >"$work/refused" 2>&1; then
    fail "the listener trusted an unknown certificate"
fi
echo "TLS and host names: passed"
