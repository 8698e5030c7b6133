#!/usr/bin/env bash
# Prints the figures of large fleets: sweepers over up to a billion blobs (docs/sweeper.md), and a
# thousand listeners (docs/listener.md). Both are the workers' own code on a virtual clock.
#
#   ci/scale.sh              about ten minutes
#   SCALE=10 ci/scale.sh     a tenth of the workers, blobs and messages
#   PROFILE=dev ci/scale.sh  with the build of `cargo test`
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh

scale=${SCALE:-1}
profile=(--profile "${PROFILE:-release}")
of() { echo $((($1 + scale - 1) / scale)); }
sweepers() {
    cargo run --quiet "${profile[@]}" -p smalt-sweeper --example scale -- \
        --workers "$(of "$1")" --blobs "$(of "$2")" --documents "$3" --containers "$4"
}
listeners() {
    echo
    cargo run --quiet "${profile[@]}" -p smalt-listener --example fleet -- \
        --listeners "$(of 1000)" --burst "$(of 20000)" "$@"
}

sweepers 1 1000000 1 100
sweepers 10 1000000 1 100
sweepers 100 10000000 1 100
sweepers 1000 10000000 1 100
sweepers 1000 1000000000 100 1000
listeners
listeners --queues 4 --modes poll-fast,sentinel
