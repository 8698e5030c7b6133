#!/usr/bin/env bash
# Runs faults, kills, full disks, jumping clocks and hostile clients at once, on a small disk. No
# acknowledged write may be lost, and memory, descriptors and disk must not grow. Needs: ci/build.sh,
# python3.
#
#   ci/siege.sh [SECONDS]      two minutes by default; an hour at night
#   SEED=N                     another sequence of attacks
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

disk=$work/disk
mkdir "$disk"
if mount -t tmpfs -o size=192m smalt-siege "$disk" 2>/dev/null; then
    trap 'umount -l "$disk"; stop_all' EXIT
else
    echo "full disks: NOT RUN, mounting a small disk needs root"
fi
python3 ci/siege.py "$bin/smalt" "$disk" --seconds "${1:-120}" --seed "${SEED:-1}" || {
    tail -n 20 "$disk.log" >&2
    exit 1
}
