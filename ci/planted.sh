#!/usr/bin/env bash
# Every planted bug must be caught: docs/planted.md. Built in a folder of its own, so that nothing
# of it gets into the products.
#
#   ci/planted.sh                    all, with the control run and the canary
#   ci/planted.sh --only ID          one of them; any option of `harness planted` goes
#   ci/planted.sh --markdown         the table of docs/planted.md
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=target/planted

cargo build --profile planted --quiet -p smalt-harness --features planted
# The store's own tests, as one of the checks.
store_tests=$(cargo test --profile planted --no-run --message-format=json --quiet \
    -p smalt --lib --features planted |
    grep -o '"executable":"[^"]*"' | cut -d'"' -f4 | tail -n 1)

target/planted/planted/harness planted --store-tests "$store_tests" "$@"
