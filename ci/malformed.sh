#!/usr/bin/env bash
# Sends every request of fixtures/cases/malformed to the release binary, and expects Azure's answer and an
# unchanged state.
#
#   ci/malformed.sh [further options of `harness malformed`]
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt harness

"$bin/harness" malformed --cases fixtures/cases/malformed "$@"
