#!/usr/bin/env bash
# What takes too long for every commit: about two hours on 2 cores. docs/proof.md has what came of
# the last run. A part that fails does not end the night; build/nightly.md says at the end what came
# of each, and build/nightly/ has all that they printed.
#
#   ci/nightly.sh                 everything
#   ci/nightly.sh bursts diff     these parts alone
#   SEED=N                        other histories, bursts and seeds; the day of the year without it
#   SCALE=10                      a tenth of each, to try the script
#   SKIP_AZURITE=1                without Azurite (needs npm)
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh

parts=${*:-histories bursts soak crash simulation shuttle planted suites conform diff fleets packages siege fuzz mutants costs}
seed=${SEED:-$(date +%-j)000000}
scale=${SCALE:-1}
harness=target/release/harness
azurite=build/azurite/node_modules/.bin/azurite

of() { echo $(($1 / scale)); }

histories() {
    # Ten million operations; every outcome that the model declares must be met.
    "$harness" histories --jobs 2 --seed "$seed" --histories "$(of 400000)" --coverage \
        $([ "$scale" -eq 1 ] && echo --require-coverage)
    "$harness" histories --jobs 2 --seed "$seed" --histories "$(of 4000)" --restarts
}

bursts() {
    "$harness" bursts --jobs 2 --seed "$seed" --bursts "$(of 1000000)"
    "$harness" bursts --seed "$seed" --bursts "$(of 1000)" --durable
}

soak() {
    "$harness" soak queue --seed "$seed" --operations "$(of 1000000)"
    "$harness" soak queue --seed "$seed" --operations "$(of 200000)" --shuffle
    "$harness" soak queue --seed "$seed" --http --seconds "$(of 900)"
}

crash() {
    "$harness" crash --rounds "$(of 100)" --seed "$seed"
    "$harness" crash --mode fast --rounds "$(of 20)" --seed "$seed"
    "$harness" crash --mode fast --kills "$(of 300)" --seed "$seed"
    cargo build --quiet -p smalt-shim --release
    "$harness" crash --seed "$seed" --kills "$(of 700)" --failpoints --images 4 --errors
}

simulation() {
    "$harness" scenario sweep --seed "$seed" --seeds "$(of 5000)" --threads 2
    "$harness" scenario listen --seed "$seed" --seeds "$(of 5000)" --threads 2
}

shuttle() {
    cargo test --quiet -p smalt --features shuttle --lib kernels
    cargo test --quiet -p smalt-listener --features shuttle --lib kernels
}

planted() { bash ci/planted.sh; }

suites() {
    bash ci/suites.sh
    bash ci/first_minutes.sh
}

conform() { bash ci/conform.sh; }

diff() {
    if [ -n "${SKIP_AZURITE:-}" ] || [ ! -x "$azurite" ]; then
        echo "NOT RUN: Azurite is not there (ci/azurite.sh installs it)"
        return
    fi
    "$harness" diff --left smalt --azurite "$azurite" --traces fixtures/traces
}

# Sweepers and listeners that are killed while they share a hundred thousand.
fleets() {
    "$harness" fleet --messages "$(of 100000)" --seed "$seed"
    "$harness" fleet sweep --blobs "$(of 100000)" --containers 20 --kill-every 700 \
        --rounds 5 --refill --seed "$seed"
}

# The programs of a release, which only here have their own profile: their size, their packages, and
# the crates compiled from what they pack.
packages() {
    unset "${!CARGO_PROFILE_RELEASE_@}"
    export CARGO_TARGET_DIR=$PWD/build/release
    export SMALT_BIN_DIR=$CARGO_TARGET_DIR/release
    cargo build --release --quiet -p smalt -p smalt-sweeper -p smalt-listener --bins
    bash ci/quickstart.sh
    bash ci/packages.sh
    bash ci/packages.sh install
    bash packaging/crates.sh --verify
    bash ci/testkit.sh
}

# Kills, full disks, jumping clocks and hostile clients at once, for an hour.
siege() { SEED=$seed bash ci/siege.sh "$(of 3600)"; }

fuzz() { bash ci/fuzz.sh "$(of 60)"; }

# One of three sets a night, in turns by the day of the year; ci/mutants.sh runs any of them. What
# survives is printed; docs/mutants.md says which survivors are known.
mutants() {
    command -v cargo-mutants >/dev/null || cargo install --quiet --locked cargo-mutants
    local sets=(emulator workers operations)
    bash ci/mutants.sh "${sets[$(($(date +%-j) % 3))]}"
}

# What a page costs, and one of a million beside one of a thousand. A target that is missed fails the
# part; bursts of other work on the machine make it miss.
costs() {
    "$harness" bench page
    "$harness" bench table --entities "$(of 1000000)"
    "$harness" bench queue --messages "$(of 1000000)"
}

# One part: what it prints is shown, kept, and ends in the report.
run() {
    local part=$1 log=build/nightly/$1.log begun=$SECONDS code
    printf '\n== %s (%s)\n' "$part" "$(date +%H:%M:%S)"
    set +e
    (
        set -e
        "$part"
    ) 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    set -e
    {
        printf '\n## %s: %s, %d min %d s\n\n' "$part" "$([ "$code" -eq 0 ] && echo clean || echo "FAILED ($code)")" \
            $(((SECONDS - begun) / 60)) $(((SECONDS - begun) % 60))
        tail -n 20 "$log" | cut -c1-240 | sed 's/^/    /'
    } >>"$report"
    [ "$code" -eq 0 ] || failed+=("$part")
}

report=build/nightly.md
failed=()
mkdir -p build/nightly
{
    echo "# A night of $(git describe --always --dirty), $(date +%Y-%m-%d)"
    echo
    echo "\`SEED=$seed SCALE=$scale ci/nightly.sh $parts\`, $(nproc) cores. The end of what each part printed:"
} >"$report"

PLANTED=1 bash ci/build.sh
export SMALT_HARNESS=$harness
for part in $parts; do
    run "$part"
done
printf '\n%d min; ' $((SECONDS / 60)) | tee -a "$report"
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}" | tee -a "$report"
    exit 1
fi
echo "every part is clean" | tee -a "$report"
