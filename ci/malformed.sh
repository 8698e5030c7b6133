#!/usr/bin/env bash
# Sends every request of fixtures/cases/malformed to the release binary, and expects Azure's answer and an
# unchanged state.
#
#   ci/malformed.sh [further options of `harness malformed`]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

[ -x "$target/release/harness" ] && [ -x "$target/release/smalt" ] ||
    bash ci/build.sh
exec "$target/release/harness" malformed --cases fixtures/cases/malformed "$@"
