#!/usr/bin/env bash
# Tests crashes (docs/crash.md): kill -9 of the binary, several rounds on one store, in both modes; then
# kills at every named step, images after a loss of power, and failing calls.
#
#   ci/crash.sh [rounds]                                      everything
#   ci/crash.sh rounds further options of `harness check crash`  only the rounds
#
# Needs: ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt harness
rounds=${1:-20}
[ $# -eq 0 ] || shift

if [ $# -ne 0 ]; then
    "$bin/harness" check crash --cases "$rounds" "$@"
    exit
fi
# Beside the rounds, which wait for the disk and for the next kill.
parts() {
    "$bin/harness" check crash --part failpoints
    if [ "$(uname)" = Linux ]; then
        "$bin/harness" check crash --part images
        "$bin/harness" check crash --part errors
    else
        echo "images, errors: NOT RUN, they need Linux"
    fi
}
(parts) >"$work/parts.log" 2>&1 &
parts=$!
started+=("$parts")
"$bin/harness" check crash --cases "$rounds"
"$bin/harness" check crash --mode fast --cases 4
wait "$parts" || {
    cat "$work/parts.log"
    exit 1
}
cat "$work/parts.log"
