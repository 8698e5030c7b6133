#!/usr/bin/env bash
# Every planted bug must be caught: docs/planted.md. The bugs of fixtures/planted are put into a copy
# of the tree, in target/planted/tree, and everything that runs them is built there.
#
#   ci/planted.sh                    all, with the control run and the canary
#   ci/planted.sh --only ID          one of them; any option of `harness planted` goes
#   ci/planted.sh --markdown         the table of docs/planted.md
#   ci/planted.sh --build            only build the harness, target/planted/release/harness
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh
export CARGO_INCREMENTAL=0

# What is built already need not be built twice; links take no room.
if [ ! -d target/planted/release ] && [ -d target/release/.fingerprint ]; then
    mkdir -p target/planted/release
    cp -a --link target/release/{deps,build,.fingerprint} target/planted/release/
fi
export CARGO_TARGET_DIR=$PWD/target/planted
tree=$CARGO_TARGET_DIR/tree
harness=$CARGO_TARGET_DIR/release/harness
cargo run --release --quiet -p smalt-planted -- "$tree"
in_tree() { (cd "$tree" && cargo "$@" --release --quiet --features $HARNESS_FEATURES); }
in_tree build -p smalt-harness --bin harness
[ "${1:-}" != --build ] || exit 0

# Tests of the parts, which are checks as well: those of the libraries, and the workers' own against
# models of the service. In one build, or each would have its own features of what they are built
# of.
tests=()
while read -r test; do
    tests+=(--tests "$test")
done < <(in_tree test --no-run --message-format=json \
    -p smalt -p smalt-sleeve -p smalt-sweeper -p smalt-listener --lib --test listener --test sweeper |
    sed -n 's|.*"package_id":"[^"]*#\([a-z-]*\)@.*"executable":"\([^"]*/deps/[^"]*\)".*|\1=\2|p')

"$harness" planted "${tests[@]}" "$@"
