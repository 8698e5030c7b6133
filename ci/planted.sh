#!/usr/bin/env bash
# Every planted bug must be caught: docs/planted.md. Built in a folder of its own, so that nothing
# of it gets into the products.
#
#   ci/planted.sh                    all, with the control run and the canary
#   ci/planted.sh --only ID          one of them; any option of `harness planted` goes
#   ci/planted.sh --markdown         the table of docs/planted.md
set -euo pipefail
cd "$(dirname "$0")/.."
products=(smalt smalt-sweeper smalt-listener)

fail() {
    echo "ci/planted.sh: $*" >&2
    exit 1
}

# Nothing that a product is built of has to do with the planted bugs.
graph() { cargo tree --locked --edges normal,build --prefix none "$@"; }
for product in "${products[@]}"; do
    if graph --package "$product" | grep '^smalt-planted '; then
        fail "$product is built of smalt-planted"
    fi
done
graph --package smalt --features planted | grep --quiet '^smalt-planted ' ||
    fail "cargo tree does not show smalt-planted where it is asked for"

build() { CARGO_TARGET_DIR=target/planted cargo "$@"; }
build build --profile planted --quiet -p smalt-harness --features planted
# The store's own tests, as one of the checks.
store_tests=$(build test --profile planted --no-run --message-format=json --quiet \
    -p smalt --lib --features planted |
    grep -o '"executable":"[^"]*"' | cut -d'"' -f4 | tail -n 1)
harness=target/planted/planted/harness

# Nor is any in a product that is built already; the harness of this folder shows that one is found.
names=$("$harness" planted --list | cut -d' ' -f2- | sed 's/^ *//' | cut -d' ' -f1)
has_bugs() { grep --quiet --text --fixed-strings --file=<(echo "$names"; echo SMALT_PLANTED) "$1"; }
has_bugs "$harness" || fail "no planted bug is found in $harness"
for product in "${products[@]}"; do
    for file in target/{release,debug}/"$product"; do
        if [ -e "$file" ] && has_bugs "$file"; then
            fail "$file has planted bugs"
        fi
    done
done

"$harness" planted --store-tests "$store_tests" "$@"
