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
. ci/profile.sh
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

# What is built already need not be built twice; links take no room.
if [ ! -d target/planted/release ] && [ -d target/release/.fingerprint ]; then
    mkdir -p target/planted/release
    cp -a --link target/release/{deps,build,.fingerprint} target/planted/release/
fi
build() { CARGO_TARGET_DIR=target/planted CARGO_INCREMENTAL=0 cargo "$@"; }
harness=${SMALT_HARNESS:-target/planted/release/harness}
[ -n "${SMALT_HARNESS:-}" ] ||
    build build --release --quiet -p smalt-harness --bin harness --features $HARNESS_FEATURES
# Tests of the parts, which are checks as well: those of the libraries, and the workers' own against
# models of the service. In one build, or each would have its own features of what they are built
# of.
tests=()
while read -r test; do
    tests+=(--tests "$test")
done < <(build test --release --no-run --message-format=json --quiet --features $HARNESS_FEATURES \
    -p smalt -p smalt-sleeve -p smalt-sweeper -p smalt-listener --lib --test listener --test sweeper |
    sed -n 's|.*"package_id":"[^"]*#\([a-z-]*\)@.*"executable":"\([^"]*/deps/[^"]*\)".*|\1=\2|p')

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
