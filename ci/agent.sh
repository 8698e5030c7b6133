#!/usr/bin/env bash
# Lets `smalt-listener agent` scale processes by the length of a queue: from one to its maximum and
# back, through the kill of one of them. No message is lost, and no process is left.
# Needs: ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-listener

start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection
listener=$bin/smalt-listener
cat >"$work/listener.toml" <<TOML
[listener.agent]
max = 3
depth_per_instance = 100
cooldown = "2s"
every = "1s"
[[listener.queue]]
name = "orders"
create_queue = true
slots = 4
tasks = { max = 1 }
handler = { exec = "echo \"\$(cat)\" >>$work/handled; sleep 0.1" }
TOML
run=("$listener" run --config "$work/listener.toml" --log-level warn)
"$listener" agent --config "$work/listener.toml" --queue orders --log json -- "${run[@]}" \
    >"$work/agent" 2>&1 &
agent=$!
started+=("$agent")

instances() { pgrep --count --parent "$agent" || true; }

handled() { sort -u "$work/handled" | grep -c . || true; }

# expect COUNT: waits until so many instances run.
expect() {
    local turn
    for turn in $(seq 1 300); do
        [ "$(instances)" = "$1" ] && return 0
        sleep 0.1
    done
    fail "$(instances) instances run, expected $1 ($turn): $(cat "$work/agent")"
}

# The agent cannot look at the queue before an instance has created it.
"$listener" once --config "$work/listener.toml" --log-level warn
expect 1
seq 1 400 | "$listener" send --queue orders >"$work/sent"
expect 3
kill -9 "$(pgrep --newest --parent "$agent")"
expect 3
expect 1
# The messages of the killed instance come back after their visibility timeout.
for _ in $(seq 1 600); do
    [ "$(handled)" = 400 ] && break
    sleep 0.1
done
kill -TERM "$agent"
wait "$agent" || fail "the agent: $(cat "$work/agent")"
[ "$(handled)" = 400 ] || fail "$(handled) of 400 messages were handled"
grep -q 'ended by itself' "$work/agent" || fail "the kill is not in the log"
echo "one to three listeners and back, and none of 400 messages is lost"
