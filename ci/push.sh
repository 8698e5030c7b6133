#!/usr/bin/env bash
# Measures push beside polling between processes: the time from an acknowledged put to the start of
# the handler in another process, and the requests of an idle hour, extrapolated from 20 s.
#
#   ci/push.sh [rounds]
#
# Needs: ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-listener

rounds=${1:-5}
idle_s=20
start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection
listener=$bin/smalt-listener

# The settings of the listeners in each mode, and where their sender publishes.
declare -A idle notify
idle[poll]='idle = { max = "1s" }'
notify[poll]=''
idle[topic]='idle_tasks = 0
trigger = { queue = "events" }'
notify[topic]='queue:events'
idle[webhook]='idle_tasks = 0'

# begin NAME QUEUE MODE: starts a listener's process; its handler notes when it starts.
begin() {
    local config=$work/$1.toml log=$work/$1.log
    cat >"$config" <<TOML
[listener]
health = "127.0.0.1:0"
[[listener.queue]]
name = "$2"
create_queue = true
cooldown = "2s"
watchdog = "10m"
${idle[$3]}
handler = { exec = "date +%s%N >>$work/$2.started" }
TOML
    "$listener" run --config "$config" --worker-id "$1" >"$log" 2>&1 &
    note_role "$1"
    await "$log" 'state=Active' "${role_pids[$1]}"
}

# address NAME: the listener's address.
address() { sed -n 's|.*address=\([0-9.:]*\).*|\1|p' "$work/$1.log" | head -n 1; }

# requests NAME: the requests that the listener has made.
requests() {
    curl -s "http://$(address "$1")/status" |
        python3 -c 'import json, sys; s = json.load(sys.stdin); print(sum(q["requests"] for q in s["queues"] + s["triggers"]))'
}

# A line of the log as nanoseconds since 1970.
nanoseconds() { date -d "$1" +%s%N; }

printf '%-8s %22s %22s\n' mode 'put to handler, median' 'requests/idle hour'
for mode in poll topic webhook; do
    queue=push-$mode
    : >"$work/$queue.started"
    begin "$mode-1" "$queue" "$mode"
    begin "$mode-2" "$queue" "$mode"
    [ "$mode" != webhook ] ||
        notify[webhook]="http://$(address webhook-1),http://$(address webhook-2)"
    waits=()
    for round in $(seq "$rounds"); do
        sleep 5
        flags=()
        [ -z "${notify[$mode]}" ] || flags=(--notify-to "${notify[$mode]}")
        "$listener" send --queue "$queue" --log-level debug "${flags[@]}" "$round" >"$work/sent" 2>"$work/send.log"
        # Without destinations the put is acknowledged when the command ends.
        acknowledged=$(date +%s%N)
        line=$(grep 'publishing' "$work/send.log" | head -n 1 | cut -d' ' -f1 || true)
        [ -z "$line" ] || acknowledged=$(nanoseconds "$line")
        for _ in $(seq 150); do
            [ "$(wc -l <"$work/$queue.started")" -lt "$round" ] || break
            sleep 0.1
        done
        started=$(sed -n "${round}p" "$work/$queue.started")
        [ -n "$started" ] || fail "$mode: message $round was not handled within 15 s"
        waits+=($(((started - acknowledged) / 1000000)))
    done
    sleep 5
    before=$(requests "$mode-1")
    sleep "$idle_s"
    idle_requests=$((($(requests "$mode-1") - before) * 3600 / idle_s))
    median=$(printf '%s\n' "${waits[@]}" | sort -n | sed -n "$(((rounds + 1) / 2))p")
    printf '%-8s %19s ms %22s\n' "$mode" "$median" "$idle_requests"
    kill "${role_pids[$mode-1]}" "${role_pids[$mode-2]}"
    await_end "$mode-1" 30
    await_end "$mode-2" 30
done
