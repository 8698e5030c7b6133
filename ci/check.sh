#!/usr/bin/env bash
# Runs the checks besides `cargo test`, locally and in CI, the quick ones first. Stops at the first
# failure.
#
#   ci/check.sh            everything
#   SKIP_AZURITE=1         skips the checks against Azurite (they need npm)
#   SMALT_CORPUS=DIR       recordings of production to replay; by default ../shared/recordings, if it exists
#   SMALT_CORPUS_DFS=DIR   those of Data Lake Storage; by default ../shared/recordings-dfs, if it exists
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (after %d min %02d s)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# Meanwhile, because it mostly waits for the network.
dependencies=$(mktemp)
trap 'rm -f "$dependencies"' EXIT
bash ci/deny.sh >"$dependencies" 2>&1 &
denied=$!

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings

step "documentation"
# With all features, like the lints, so that dependencies are compiled once.
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --quiet

step "dependencies"
wait "$denied" || {
    cat "$dependencies"
    exit 1
}
cat "$dependencies"

step "programs, and the tests of \`cargo test\`"
bash ci/build.sh checks
export SMALT_BIN_DIR=target/checks
harness=$SMALT_BIN_DIR/harness

corpus=${SMALT_CORPUS:-../shared/recordings}
if [ -d "$corpus" ]; then
    step "recordings of production"
    # Tests the comparison itself: a mirror of the recordings must pass whole, and use every relaxed
    # rule.
    "$harness" replay --corpus "$corpus" --operations all --target mirror \
        --require recordings=100 --require rules=100 | tail -n 5
    # Names the recordings that have become worse.
    "$harness" replay --corpus "$corpus" --operations all --require recordings=92 \
        --accepted fixtures/recordings.tsv | tail -n 5
    # The emulator's rates may rise, and these numbers with them, but never fall.
    "$harness" replay --corpus "$corpus" --service blob --operations all \
        --require recordings=91.5 --require status=96.9 --require code=97
    "$harness" replay --corpus "$corpus" --service queue --operations all \
        --require recordings=97.5 --require status=100 --require code=100
    "$harness" replay --corpus "$corpus" --service table --operations all \
        --require recordings=91 --require status=100 --require code=100
else
    step "recordings of production: NOT RUN, no corpus (set SMALT_CORPUS)"
fi

lake=${SMALT_CORPUS_DFS:-../shared/recordings-dfs}
if [ -d "$lake" ]; then
    step "recordings of Data Lake Storage"
    "$harness" replay --corpus "$lake" --operations all \
        --require recordings=92.5 --require status=99.5 --require code=99.5 \
        --accepted fixtures/recordings-dfs.tsv
else
    step "recordings of Data Lake Storage: NOT RUN, no corpus (set SMALT_CORPUS_DFS)"
fi

if [ -d "$corpus" ] && [ -d "$lake" ]; then
    step "facts distilled from recordings"
    "$harness" facts --corpus "$corpus" --corpus "$lake"
else
    step "facts distilled from recordings: NOT RUN, they need both corpora"
fi

step "random histories, and clients at once"
"$harness" check histories --jobs 2 --cases 20000 --seed 1000 --require-matrix
"$harness" check histories --jobs 2 --cases 200 --seed 2000 --restarts
"$harness" check bursts --jobs 2 --cases 3000 --seed 1000

step "malformed requests"
bash ci/malformed.sh

step "simulation"
"$harness" check sweep --cases 500 --jobs 2
"$harness" check listen --cases 500 --jobs 2
"$harness" check sweep --cases 200 --jobs 2 --engine sled
"$harness" check listen --cases 200 --jobs 2 --engine sled

if command -v valgrind >/dev/null; then
    step "instructions per operation"
    python3 ci/budget.py checks
else
    step "instructions per operation: NOT RUN, no valgrind"
fi

step "renames of a directory of many files"
"$harness" bench rename --files 20000

step "kill -9"
bash ci/crash.sh 20

step "full disks"
bash ci/disk.sh

step "a watchdog, while clients ask for all the work they can"
bash ci/watchdog.sh

step "TLS and host names"
bash ci/tls.sh

step "strangers at the ports"
bash ci/strangers.sh

step "the first minutes, with Microsoft's Python SDK"
bash ci/quickstart.sh
bash ci/compat.sh
bash ci/deputy.sh

step "events, with Event Grid's own clients, under kill -9"
bash ci/events.sh

step "fleets of listeners under kill -9"
bash ci/fleet.sh
bash ci/billing.sh
bash ci/channels.sh
bash ci/agent.sh

step "packages and images"
bash ci/packages.sh
bash ci/testkit.sh python node

step "what starts Azurite starts smalt"
bash ci/integrations.sh

if [ -n "${SKIP_AZURITE:-}" ]; then
    step "Azurite: NOT RUN (SKIP_AZURITE)"
else
    step "the same scenarios on smalt and on Azurite"
    bash ci/azurite.sh
    step "a data directory of Azurite, imported"
    bash ci/azurite_import.sh
fi
step "done"
