#!/usr/bin/env bash
# The listener's channels example under kill -9: smalt, two workers that delete channels with their
# blogs, and a writer that writes blogs meanwhile, killed at random and started again; in the end no
# blog is without its channel, and every channel that was to stay is whole.
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
# Channels of up to fifteen pages: who is killed is in the middle of one.
plan=(--seed "$seed" --channels 24 --blogs 1500 --requested 14 --written 1500 --visibility 3s)

start_smalt smalt
account=devstoreaccount1
key='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
connection="DefaultEndpointsProtocol=http;AccountName=$account;AccountKey=$key"
connection+=";QueueEndpoint=http://$smalt_queue/$account;TableEndpoint=http://$smalt_table/$account;"
export AZURE_STORAGE_CONNECTION_STRING=$connection

declare -A pids
# begin ROLE: starts a role's process; its log goes on where it was.
begin() {
    local role=$1 flags=()
    case $role in
        writer) flags=(writer --writer w1 --pause 5ms) ;;
        *) flags=(worker --pause 200ms) ;;
    esac
    "$channels" "${flags[@]}" "${plan[@]}" >>"$work/$role.log" 2>&1 &
    pids[$role]=$!
    started+=("$!")
}

"$channels" setup "${plan[@]}"
"$channels" request "${plan[@]}"
echo "before anything is done:"
if "$channels" check "${plan[@]}"; then fail "the check passes before anything is done"; fi

roles=(worker1 worker2 writer)
for role in "${roles[@]}"; do begin "$role"; done

killed=0
while [ "$killed" -lt "$kills" ]; do
    sleep "0.$((RANDOM % 6 + 2))"
    role=${roles[$((RANDOM % ${#roles[@]}))]}
    kill -9 "${pids[$role]}" 2>/dev/null || true
    wait "${pids[$role]}" 2>/dev/null || true
    begin "$role"
    killed=$((killed + 1))
done
echo "$killed processes killed"

# The writer ends by itself, and the queue is empty when the workers have done all.
for _ in $(seq 1 600); do
    kill -0 "${pids[writer]}" 2>/dev/null || break
    sleep 0.1
done
! kill -0 "${pids[writer]}" 2>/dev/null || fail "the writer does not end: $(tail -n 5 "$work/writer.log")"
wait "${pids[writer]}" || fail "the writer: $(tail -n 5 "$work/writer.log")"
"$channels" check --wait 60s "${plan[@]}" || fail "the tables: $(tail -n 5 "$work"/worker?.log)"
