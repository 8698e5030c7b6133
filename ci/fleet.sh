#!/usr/bin/env bash
# Runs fleets of listeners that are killed at random and accounts for every message (`harness check fleet`),
# against a durable smalt and over TLS. Then another client steals messages, which the accounting must
# detect. Then fleets of sweepers share a sweep, without and with kills, and every blob is accounted
# for.
#
#   ci/fleet.sh [messages]
#
# Needs: ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-listener smalt-sweeper harness
messages=${1:-2000}

"$bin/harness" check fleet --messages "$messages" --kill-every 700

echo "over TLS"
"$bin/harness" certificate --dir "$work/tls"
start_smalt tls --cert "$work/tls/server.pem" --key "$work/tls/server.key"
"$bin/harness" check fleet --messages 500 --kill-every 700 --seed 1 --ca-file "$work/tls/ca.pem" \
    --endpoint "https://$account.queue.core.windows.net" --connect-to "$tls_queue"

echo "with a client that steals messages"
start_smalt robbed
endpoint=http://$robbed_queue/$account
"$bin/smalt-listener" run --endpoint "$endpoint" --account "$account" --account-key "$key" \
    --queue fleet --create-queue --idle-max 100ms --log-level error --exec true &
started+=("$!")
status=0
"$bin/harness" check fleet --messages 500 --patience 20 --endpoint "$endpoint" >"$work/robbed" || status=$?
grep 'lost: put' "$work/robbed" || fail "the theft was not reported: $(cat "$work/robbed")"
[ "$status" = 1 ] || fail "the run with the theft exited with $status, expected 1"
echo "sweepers"
"$bin/harness" check fleet sweep --blobs 5000
"$bin/harness" check fleet sweep --blobs 5000 --kill-every 150 --seed 1 -- --state-backend etag
echo "fleet: passed"
