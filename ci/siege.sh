#!/usr/bin/env bash
# Faults, kills, full disks, jumping clocks and hostile clients at once, on a small disk: nothing that
# was acknowledged is lost, and memory, descriptors and disk stay flat. Needs: ci/build.sh, python3.
#
#   ci/siege.sh [SECONDS]      two minutes without a number; the night takes an hour
#   SEED=N                     other moves
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

disk=$work/disk
mkdir "$disk"
if mount -t tmpfs -o size=192m smalt-siege "$disk" 2>/dev/null; then
    trap 'umount -l "$disk"; stop_all' EXIT
else
    echo "full disks: NOT RUN, a small disk cannot be mounted here"
fi
python3 ci/siege.py "$bin/smalt" "$disk" --seconds "${1:-120}" --seed "${SEED:-1}" || {
    tail -n 20 "$disk.log" >&2
    exit 1
}
