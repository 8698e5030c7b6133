#!/usr/bin/env bash
# kill -9 in the middle of work, round after round on one store; everything acknowledged must be there.
#
#   ci/crash.sh [rounds] [further options of `harness crash`]
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-20}
[ $# -eq 0 ] || shift
target=${CARGO_TARGET_DIR:-target}

[ -x "$target/release/harness" ] && [ -x "$target/release/smalt" ] ||
    cargo build --release --quiet --bins
exec "$target/release/harness" crash --rounds "$rounds" "$@"
