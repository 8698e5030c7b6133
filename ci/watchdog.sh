#!/usr/bin/env bash
# No request stops the server: whatever a client can make long runs at once, and `/health` and a small
# read are answered within a second all the time; SIGTERM is heard. In memory, where commits run on
# the same threads, and with as many of these as a machine of two processors has. Needs: ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

export TOKIO_WORKER_THREADS=2
start_smalt memory
python3 ci/watchdog.py "$memory_blob" "$memory_queue" "$memory_table" "$memory_control" \
    "${started[-1]}" "$@"
