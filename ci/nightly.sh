#!/usr/bin/env bash
# Runs the checks that take too long for every commit: about two hours on 2 cores. docs/proof.md
# describes them. A failing part does not end the run; build/nightly.md reports every part, and
# build/nightly/ has their outputs.
#
#   ci/nightly.sh                 everything
#   ci/nightly.sh bursts diff     only these parts
#   SEED=N                        other histories, bursts and seeds; by default the day of the year
#   SCALE=10                      runs a tenth of each, to test the script
#   SKIP_AZURITE=1                skips Azurite (needs npm)
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh

parts=${*:-histories bursts soak crash simulation shuttle planted suites conform diff fleets packages siege fuzz mutants costs figures}
seed=${SEED:-$(date +%-j)000000}
scale=${SCALE:-1}
harness=target/release/harness
azurite=build/azurite/node_modules/.bin/azurite

of() { echo $(($1 / scale)); }

histories() {
    "$harness" check histories --jobs 2 --seed "$seed" --cases "$(of 4000)" --restarts
    # Ten million operations; every outcome that the model declares must occur. It comes last, so that the
    # report has its matrix.
    "$harness" check histories --jobs 2 --seed "$seed" --cases "$(of 400000)" --coverage \
        $([ "$scale" -eq 1 ] && echo --require-coverage)
}

bursts() {
    "$harness" check bursts --jobs 2 --seed "$seed" --cases "$(of 1000000)"
    "$harness" check bursts --seed "$seed" --cases "$(of 1000)" --durable
}

soak() {
    "$harness" check soak --seed "$seed" --operations "$(of 1000000)"
    "$harness" check soak --seed "$seed" --operations "$(of 200000)" --shuffle
    "$harness" check soak --seed "$seed" --http --seconds "$(of 900)"
}

crash() {
    "$harness" check crash --cases "$(of 100)" --seed "$seed"
    "$harness" check crash --mode fast --cases "$(of 20)" --seed "$seed"
    "$harness" check crash --mode fast --part kills --cases "$(of 300)" --seed "$seed"
    "$harness" check crash --part kills --cases "$(of 700)" --seed "$seed"
    "$harness" check crash --part failpoints --seed "$seed"
    "$harness" check crash --part images --cases 4 --seed "$seed"
    "$harness" check crash --part errors --seed "$seed"
}

simulation() {
    "$harness" check sweep --seed "$seed" --cases "$(of 5000)" --jobs 2
    "$harness" check listen --seed "$seed" --cases "$(of 5000)" --jobs 2
    "$harness" check sweep --seed "$seed" --cases "$(of 1000)" --jobs 2 --engine sled
    "$harness" check listen --seed "$seed" --cases "$(of 1000)" --jobs 2 --engine sled
}

shuttle() {
    cargo test --quiet -p smalt --features shuttle --lib kernels
    cargo test --quiet -p smalt-listener --features shuttle --lib kernels
}

planted() { bash ci/planted.sh; }

suites() {
    bash ci/suites.sh
    bash ci/adls.sh
    bash ci/identity.sh
    bash ci/first_minutes.sh
}

conform() { bash ci/conform.sh; }

diff() {
    if [ -n "${SKIP_AZURITE:-}" ] || [ ! -x "$azurite" ]; then
        echo "NOT RUN: Azurite is missing; run ci/azurite.sh to install it"
        return
    fi
    "$harness" diff --left smalt --azurite "$azurite" --traces fixtures/traces
}

# Sweepers and listeners that share a hundred thousand blobs and messages, and are killed.
fleets() {
    "$harness" check fleet --messages "$(of 100000)" --seed "$seed"
    "$harness" check fleet sweep --blobs "$(of 100000)" --containers 20 --kill-every 700 \
        --cases 5 --refill --seed "$seed"
}

# The programs with the release profile: their size, their packages, and the crates compiled from their
# packages.
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

# One of three sets per night, by the day of the year; ci/mutants.sh runs any of them. It prints the
# survivors; docs/mutants.md lists the known ones.
mutants() {
    command -v cargo-mutants >/dev/null || cargo install --quiet --locked cargo-mutants
    local sets=(emulator workers operations)
    bash ci/mutants.sh "${sets[$(($(date +%-j) % 3))]}"
}

# The cost of a page, and of one among a million compared with one among a thousand, and renames of a
# directory of a million files. A missed target fails the part; other work on the machine can cause that.
costs() {
    "$harness" bench page
    "$harness" bench table --entities "$(of 1000000)"
    "$harness" bench queue --messages "$(of 1000000)"
    "$harness" bench rename --files "$(of 1000000)" --require
}

# The figures of docs/sweeper.md and docs/listener.md: fleets on the virtual clock, and push beside
# polling between processes.
figures() {
    SCALE=$scale bash ci/scale.sh
    bash ci/push.sh
}

# Runs one part: shows its output, keeps it, and adds its end to the report.
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
        tail -n 24 "$log" | cut -c1-240 | sed 's/^/    /'
    } >>"$report"
    [ "$code" -eq 0 ] || failed+=("$part")
}

report=build/nightly.md
failed=()
mkdir -p build/nightly
{
    echo "# Nightly checks of $(git describe --always --dirty), $(date +%Y-%m-%d)"
    echo
    echo "\`SEED=$seed SCALE=$scale ci/nightly.sh $parts\`, $(nproc) cores. The end of each part's output:"
} >"$report"

PLANTED=1 bash ci/build.sh
for part in $parts; do
    run "$part"
done
printf '\n%d min; ' $((SECONDS / 60)) | tee -a "$report"
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}" | tee -a "$report"
    exit 1
fi
echo "every part passed" | tee -a "$report"
