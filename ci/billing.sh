#!/usr/bin/env bash
# Runs the listener's billing example under kill -9: smalt, an initiator, processors and a controller
# are processes that are killed at random and restarted. At the end the sums must be exact.
#
#   ci/billing.sh [seed] [kills]
#
# Needs: ci/build.sh (or SMALT_BIN_DIR, then with the example in it).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
[ -n "${SMALT_BIN_DIR:-}" ] ||
    cargo build --release --quiet -p smalt-listener --example billing
need smalt examples/billing

seed=${1:-1}
kills=${2:-12}
RANDOM=$seed
billing=$bin/examples/billing
# A hundred chunks per submission, so that every kill interrupts work.
plan=(--submissions 10 --transactions 40000 --chunk 400 --seed "$seed" --visibility 3s)

start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection

# begin ROLE: starts a role's process and appends to its log.
begin() {
    local role=$1 flags=()
    case $role in
        initiator) flags=(initiator --pause 200ms) ;;
        controller) flags=(controller --until-complete) ;;
        *) flags=(processor --work 100ms) ;;
    esac
    "$billing" "${flags[@]}" "${plan[@]}" >>"$work/$role.log" 2>&1 &
    note_role "$role"
}

roles=(initiator processor1 processor2 controller)
for role in "${roles[@]}"; do begin "$role"; done

kill_roles "$kills" "${roles[@]}"

# The initiator and the controller exit by themselves.
for role in initiator controller; do await_end "$role" 40; done
"$billing" check "${plan[@]}" || fail "the sums are wrong"
