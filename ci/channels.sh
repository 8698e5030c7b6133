#!/usr/bin/env bash
# Runs the listener's channels example under kill -9: smalt, two workers that delete channels with
# their blogs, and a writer of blogs are killed at random and restarted. At the end every blog must
# have its channel, and every channel that was not deleted must be complete.
#
#   ci/channels.sh [seed] [kills]
#
# Needs: ci/build.sh (or SMALT_BIN_DIR, then with the example in it).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
[ -n "${SMALT_BIN_DIR:-}" ] ||
    cargo build --release --quiet -p smalt-listener --example channels
need smalt examples/channels

seed=${1:-1}
kills=${2:-12}
RANDOM=$seed
channels=$bin/examples/channels
# Channels of up to fifteen pages, so that every kill interrupts a deletion.
plan=(--seed "$seed" --channels 24 --blogs 1500 --requested 14 --written 1500 --visibility 3s)

start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection

# begin ROLE: starts a role's process and appends to its log.
begin() {
    local role=$1 flags=()
    case $role in
        writer) flags=(writer --writer w1 --pause 5ms) ;;
        *) flags=(worker --pause 200ms) ;;
    esac
    "$channels" "${flags[@]}" "${plan[@]}" >>"$work/$role.log" 2>&1 &
    note_role "$role"
}

"$channels" setup "${plan[@]}"
"$channels" request "${plan[@]}"
echo "before the workers start:"
if "$channels" check "${plan[@]}"; then fail "the check passed before the workers started"; fi

roles=(worker1 worker2 writer)
for role in "${roles[@]}"; do begin "$role"; done

kill_roles "$kills" "${roles[@]}"

# The writer exits by itself, and the queue is empty when the workers have finished.
await_end writer 60
"$channels" check --wait 60s "${plan[@]}" || fail "the tables are inconsistent: $(tail -n 5 "$work"/worker?.log)"
