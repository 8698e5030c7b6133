#!/usr/bin/env bash
# Every planted bug must be caught: docs/planted.md. Built in a folder of its own, so that nothing
# of it gets into the products.
#
#   ci/planted.sh                    all, with the control run and the canary
#   ci/planted.sh --only ID          one of them; any option of `harness planted` goes
#   ci/planted.sh --markdown         the table of docs/planted.md
#   SMALT_HARNESS=FILE               a release build of the harness with the feature `planted`
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

# What both are built of is the same: it need not be built twice.
profiles=(debug)
[ -n "${SMALT_HARNESS:-}" ] || profiles+=(release)
for profile in "${profiles[@]}"; do
    if [ ! -d target/planted/$profile ] && [ -d target/$profile/.fingerprint ]; then
        mkdir -p target/planted/$profile
        cp -a target/$profile/{deps,build,.fingerprint} target/planted/$profile/
    fi
done
build() { CARGO_TARGET_DIR=target/planted CARGO_INCREMENTAL=0 cargo "$@"; }
harness=${SMALT_HARNESS:-target/planted/release/harness}
[ -n "${SMALT_HARNESS:-}" ] || build build --release --quiet -p smalt-harness --features planted --bins
# Tests of the parts, which are checks as well: few and short, and linking them for release would
# take longer than they run. The programs that they test are built beside them, outside of deps.
tests=()
tests_of() {
    local package=$1 file
    shift
    while read -r file; do
        tests+=(--tests "$package=$file")
    done < <(build test --no-run --message-format=json --quiet \
        -p "$package" --features planted "$@" |
        grep -o '"executable":"[^"]*/deps/[^"]*"' | cut -d'"' -f4)
}
tests_of smalt --lib
tests_of smalt-sleeve --lib
tests_of smalt-sweeper --lib --tests
tests_of smalt-listener --lib --tests

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

"$harness" planted "${tests[@]}" "$@"
