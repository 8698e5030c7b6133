#!/usr/bin/env bash
# Seeds without end, by hand: both simulations, histories and bursts in turns, until it is stopped.
# What fails is kept with its commit in build/soak/, one file for each find, and the rest goes on.
#
#   ci/soak.sh                    until Ctrl-C
#   HOURS=8 ci/soak.sh            that long, and the round that is begun
#   SEED=N                        begins there; the seconds of the day's clock without it
#   SMALT_HARNESS=FILE            a release build of the harness
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/profile.sh

# Of a round: some five minutes on 2 cores.
seeds=1000
histories=20000
bursts=3000

seed=${SEED:-$(date +%s)000}
end=$((SECONDS + 3600 * ${HOURS:-1000000}))
[ -n "${SMALT_HARNESS:-}" ] || bash ci/build.sh
harness=${SMALT_HARNESS:-target/release/harness}
commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain)" ] || commit+=+changes
mkdir -p build/soak
rounds=0 finds=0

# Runs one part; what it printed stays where it failed.
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
trap 'echo "$rounds rounds on $commit, $finds finds"' EXIT
while [ "$SECONDS" -lt "$end" ]; do
    part sweep check sweep --seed "$seed" --cases $seeds --jobs 2
    part listen check listen --seed "$seed" --cases $seeds --jobs 2
    part histories check histories --jobs 2 --seed "$seed" --cases $histories
    part bursts check bursts --jobs 2 --seed "$seed" --cases $bursts
    rounds=$((rounds + 1))
    echo "$(date +%H:%M:%S) round $rounds, from seed $seed: $finds finds so far"
    seed=$((seed + histories))
done
[ "$finds" -eq 0 ]
