#!/usr/bin/env bash
# Checks that every planted bug is caught (docs/planted.md). Puts the bugs of fixtures/planted into a
# copy of the tree, in target/planted/tree, and builds the programs there.
#
#   ci/planted.sh                    all bugs, with the control run and the canary
#   ci/planted.sh --only ID          one of them; accepts every option of `harness planted`
#   ci/planted.sh --markdown         the table of docs/planted.md
#   ci/planted.sh --build            only build the harness, target/planted/release/harness
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh
export CARGO_INCREMENTAL=0

# Reuses the existing build; links take no space.
if [ ! -d target/planted/release ] && [ -d target/release/.fingerprint ]; then
    mkdir -p target/planted/release
    cp -a --link target/release/{deps,build,.fingerprint} target/planted/release/
fi
export CARGO_TARGET_DIR=$PWD/target/planted
tree=$CARGO_TARGET_DIR/tree
harness=$CARGO_TARGET_DIR/release/harness
cargo run --release --quiet -p smalt-planted -- "$tree"
in_tree() { (cd "$tree" && cargo "$@" --release --quiet); }
in_tree build -p smalt-harness --bin harness
[ "${1:-}" != --build ] || exit 0

# The tests of the libraries and of the workers are checks as well. They are built at once, because
# separate builds would compile dependencies with different features.
in_tree test --no-run --message-format=json \
    -p smalt -p smalt-sleeve -p smalt-sweeper -p smalt-listener --lib --test listener --test service --test sweeper \
    >"$CARGO_TARGET_DIR/tests.json"
tests=()
while read -r test; do
    tests+=(--tests "$test")
done < <(sed -n 's|.*"package_id":"[^"]*#\([a-z-]*\)@.*"executable":"\([^"]*/deps/[^"]*\)".*|\1=\2|p' \
    "$CARGO_TARGET_DIR/tests.json")

"$harness" planted "${tests[@]}" "$@"
