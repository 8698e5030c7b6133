# Helpers for scripts that start services: sourced, not run. All started processes end with the script.
# shellcheck shell=bash

bin=${SMALT_BIN_DIR:-target/release}
work=$(mktemp -d)
started=()

stop_all() {
    local pid
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop_all EXIT

# need FILE...: fails early with the command to run if a program is missing.
need() {
    local file
    for file in "$@"; do
        if [ ! -x "$bin/$file" ]; then
            echo "$bin/$file is missing; run: ci/build.sh" >&2
            exit 2
        fi
    done
}

# await LOG PATTERN PID: waits until a started service prints that it is ready.
await() {
    local turn
    for turn in $(seq 1 300); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        kill -0 "$3" 2>/dev/null || break
        sleep 0.1
    done
    echo "the service did not start ($turn):" >&2
    cat "$1" >&2
    return 1
}

# start_smalt NAME [FLAG...]: sets ${NAME}_blob, _queue, _table and _control to its addresses, and
# ${NAME}_connection to its connection string.
start_smalt() {
    local name=$1 log=$work/$1.log pid service
    shift
    "$bin/smalt" --inMemoryPersistence --blobPort 0 --queuePort 0 --tablePort 0 --controlPort 0 \
        "$@" >"$log" 2>&1 &
    pid=$!
    started+=("$pid")
    await "$log" DefaultEndpointsProtocol= "$pid"
    for service in blob queue table control; do
        printf -v "${name}_$service" '%s' "$(sed -n "s|^ *$service *[a-z]*://||p" "$log" | head -n 1)"
    done
    printf -v "${name}_connection" '%s' "$(sed -n 's|^ *\(DefaultEndpointsProtocol=\)|\1|p' "$log")"
}

# The default account of smalt and Azurite. Its key is public.
# shellcheck disable=SC2034 # for scripts that source this
account=devstoreaccount1
# shellcheck disable=SC2034
key='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

# Processes that are killed and restarted, each with a role. The script defines `begin ROLE`, which
# starts one in the background, with its log in $work/ROLE.log, and then calls note_role.
declare -A role_pids
note_role() {
    role_pids[$1]=$!
    started+=("$!")
}

# kill_roles COUNT ROLE...: kills a random one of them with kill -9, COUNT times.
kill_roles() {
    local kills=$1 killed=0 role
    shift
    local roles=("$@")
    while [ "$killed" -lt "$kills" ]; do
        sleep "0.$((RANDOM % 6 + 2))"
        role=${roles[$((RANDOM % ${#roles[@]}))]}
        kill -9 "${role_pids[$role]}" 2>/dev/null || true
        wait "${role_pids[$role]}" 2>/dev/null || true
        begin "$role"
        killed=$((killed + 1))
    done
    echo "$killed processes killed"
}

# await_end ROLE SECONDS: fails unless it exits with 0 by itself in this time.
await_end() {
    local role=$1 log=$work/$1.log
    for _ in $(seq 1 $(($2 * 10))); do
        kill -0 "${role_pids[$role]}" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -0 "${role_pids[$role]}" 2>/dev/null || fail "$role does not exit: $(tail -n 5 "$log")"
    wait "${role_pids[$role]}" || fail "$role: $(tail -n 5 "$log")"
}

azurite_version=3.37.0
node_version=24.11.1
# npm resolves dependencies as of this day, so that an incomplete release in a registry breaks nothing.
npm_before=2026-11-16

# install_azurite DIR: installs Azurite from npm into DIR, unless it is there, and sets `node`. Azurite
# 3.37 needs node 22 or newer; the npm package `node` provides it where the system's is older.
install_azurite() {
    local wanted=("azurite@$azurite_version")
    [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge 22 ] || wanted+=("node@$node_version")
    if ! grep -qs "\"version\": \"$azurite_version\"" "$1/node_modules/azurite/package.json" ||
        { [ ${#wanted[@]} -gt 1 ] && [ ! -x "$1/node_modules/node/bin/node" ]; }; then
        mkdir -p "$1"
        npm install --prefix "$1" --before "$npm_before" --no-audit --no-fund --loglevel error --force "${wanted[@]}"
    fi
    node=node
    [ ! -x "$1/node_modules/node/bin/node" ] || node=$1/node_modules/node/bin/node
}

# start_azurite DIR DATA: starts the Azurite that is installed in DIR on free ports, with its data in
# DATA. Sets azurite_blob, _queue and _table to its addresses, and azurite_pid.
start_azurite() {
    local log=$work/azurite.log service
    : >"$log"
    "$node" "$1/node_modules/azurite/dist/src/azurite.js" --silent --skipApiVersionCheck \
        --disableTelemetry --location "$2" --blobPort 0 --queuePort 0 --tablePort 0 >"$log" 2>&1 &
    azurite_pid=$!
    started+=("$azurite_pid")
    await "$log" 'Table service.*listening' "$azurite_pid"
    for service in Blob Queue Table; do
        printf -v "azurite_${service,}" '%s' \
            "$(sed -n "s|.*$service service.*listening at http://||p" "$log" | head -n 1)"
    done
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# have COMMAND PACKAGE: succeeds if the command exists or apt-get can install it.
have() {
    command -v "$1" >/dev/null && return 0
    command -v apt-get >/dev/null || return 1
    as_root apt-get install -y -qq "$2" >/dev/null 2>&1 && return 0
    # A fresh machine has no package lists.
    as_root apt-get update -qq && as_root apt-get install -y -qq "$2" >/dev/null
}

# not_run TEXT: reports a skipped check, and why.
not_run() { printf 'NOT RUN: %s\n' "$*"; }

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
