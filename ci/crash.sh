#!/usr/bin/env bash
# Tests crashes (docs/crash.md): kill -9 of the binary, several rounds on one store, in both modes; then
# kills at every named step, images after a loss of power, and failing calls.
#
#   ci/crash.sh [rounds]                                      everything
#   ci/crash.sh rounds further options of `harness check crash`  only the rounds
#   SMALT_HARNESS=FILE           a release build of the harness with the feature `failpoints`
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-20}
[ $# -eq 0 ] || shift
target=${CARGO_TARGET_DIR:-target}

[ -x "$target/release/harness" ] && [ -x "$target/release/smalt" ] ||
    bash ci/build.sh
"$target/release/harness" check crash --cases "$rounds" "$@"
[ $# -eq 0 ] || exit 0
"$target/release/harness" check crash --mode fast --cases 4

# Releases have no failpoints: use a harness that is known to have them, or one in the folder of
# `cargo test`.
harness=${SMALT_HARNESS:-}
profile=release
if [ -z "$harness" ]; then
    harness=$target/debug/harness
    profile=dev
    cargo build --quiet -p smalt-harness --features failpoints
fi
"$harness" check crash --part failpoints
if [ "$(uname)" = Linux ]; then
    cargo build --quiet -p smalt-shim --profile "$profile"
    "$harness" check crash --part images
    "$harness" check crash --part errors
else
    echo "images, errors: NOT RUN, they need Linux"
fi
