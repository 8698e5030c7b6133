#!/usr/bin/env bash
# Runs both simulations, histories and bursts in turns with new seeds, until you stop it. It keeps each
# failure with its commit in a file in build/soak/, and continues.
#
#   ci/soak.sh                    until Ctrl-C
#   HOURS=8 ci/soak.sh            for eight hours, and until the current round ends
#   SEED=N                        begins with this seed; by default the seconds of the clock
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh

# A round takes about five minutes on 2 cores.
seeds=1000
histories=20000
bursts=3000

seed=${SEED:-$(date +%s)000}
end=$((SECONDS + 3600 * ${HOURS:-1000000}))
bash ci/build.sh
harness=target/release/harness
commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain)" ] || commit+=+changes
mkdir -p build/soak
rounds=0 finds=0

# Runs one part; keeps its output if it fails.
part() {
    local name=$1 report
    shift
    report=build/soak/$name-$seed-$commit.txt
    if "$harness" "$@" >"$report" 2>&1; then
        rm "$report"
    else
        finds=$((finds + 1))
        printf 'commit %s: harness %s\n' "$commit" "$*" >>"$report"
        echo "FOUND: $report"
    fi
}

trap 'exit 130' INT
trap 'echo "$rounds rounds on $commit, $finds failures"' EXIT
while [ "$SECONDS" -lt "$end" ]; do
    part sweep check sweep --seed "$seed" --cases $seeds --jobs 2
    part listen check listen --seed "$seed" --cases $seeds --jobs 2
    part histories check histories --jobs 2 --seed "$seed" --cases $histories
    part bursts check bursts --jobs 2 --seed "$seed" --cases $bursts
    rounds=$((rounds + 1))
    echo "$(date +%H:%M:%S) round $rounds, from seed $seed: $finds failures so far"
    seed=$((seed + histories))
done
[ "$finds" -eq 0 ]
