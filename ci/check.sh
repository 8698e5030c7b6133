#!/usr/bin/env bash
# Runs the checks besides `cargo test`, locally and in CI. Stops at the first failure.
#
#   ci/check.sh            everything
#   SKIP_AZURITE=1         skips the checks against Azurite (they need npm)
#   SMALT_CORPUS=DIR       recordings of production to replay; by default ../shared/recordings, if it exists
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (after %d min %02d s)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings

step "documentation"
# With all features, like the lints, so that dependencies are compiled once.
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --quiet

step "dependencies"
bash ci/deny.sh

step "binaries"
. ci/profile.sh
PLANTED=1 bash ci/build.sh
export SMALT_HARNESS=target/release/harness

step "kill -9"
bash ci/crash.sh 20

step "malformed requests"
bash ci/malformed.sh

step "full disks"
bash ci/disk.sh

step "a watchdog, while clients ask for all the work they can"
bash ci/watchdog.sh

step "TLS and host names"
bash ci/tls.sh

step "strangers at the ports"
bash ci/strangers.sh

step "what starts Azurite starts smalt"
bash ci/integrations.sh

step "the first minutes, with Microsoft's Python SDK"
bash ci/quickstart.sh
bash ci/compat.sh
bash ci/deputy.sh

step "packages and images"
bash ci/packages.sh
bash ci/testkit.sh python node

step "fleets of listeners under kill -9"
bash ci/fleet.sh
bash ci/billing.sh
bash ci/channels.sh

step "random histories, and clients at once"
"$SMALT_HARNESS" check histories --jobs 2 --cases 20000 --seed 1000
"$SMALT_HARNESS" check histories --jobs 2 --cases 200 --seed 2000 --restarts
"$SMALT_HARNESS" check bursts --jobs 2 --cases 3000 --seed 1000

step "simulation"
"$SMALT_HARNESS" check sweep --cases 500 --jobs 2
"$SMALT_HARNESS" check listen --cases 500 --jobs 2
"$SMALT_HARNESS" check sweep --cases 200 --jobs 2 --engine sled
"$SMALT_HARNESS" check listen --cases 200 --jobs 2 --engine sled

step "planted bugs"
bash ci/planted.sh

corpus=${SMALT_CORPUS:-../shared/recordings}
if [ -d "$corpus" ]; then
    step "recordings of production"
    # Tests the comparison itself: a mirror of the recordings must pass completely, and use every relaxed
    # rule.
    "$SMALT_HARNESS" replay --corpus "$corpus" --operations all --target mirror \
        --require recordings=100 --require rules=100 | tail -n 5
    # The emulator's rates may rise, and these numbers with them, but never fall.
    "$SMALT_HARNESS" replay --corpus "$corpus" --service blob --operations all \
        --require recordings=91.5 --require status=96.9 --require code=97
    "$SMALT_HARNESS" replay --corpus "$corpus" --service queue --operations all \
        --require recordings=97.5 --require status=100 --require code=100
    "$SMALT_HARNESS" replay --corpus "$corpus" --service table --operations all \
        --require recordings=91 --require status=100 --require code=100
else
    step "recordings of production: NOT RUN, no corpus (set SMALT_CORPUS)"
fi

if [ -n "${SKIP_AZURITE:-}" ]; then
    step "Azurite: NOT RUN (SKIP_AZURITE)"
else
    step "the same scenarios on smalt and on Azurite"
    bash ci/azurite.sh
    step "a data directory of Azurite, imported"
    bash ci/azurite_import.sh
fi
