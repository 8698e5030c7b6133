#!/usr/bin/env bash
# Every request of fixtures/cases/malformed against the release binary: Azure's answer, no harm done.
#
#   ci/malformed.sh [further options of `harness malformed`]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

[ -x "$target/release/harness" ] && [ -x "$target/release/smalt" ] ||
    bash ci/build.sh
exec "$target/release/harness" malformed --cases fixtures/cases/malformed "$@"
