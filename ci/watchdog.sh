#!/usr/bin/env bash
# Checks that no request blocks the server: sends all expensive requests at once, while `/health` and a
# small read must be answered within a second, and SIGTERM must work. The server runs in memory, where
# commits run on the same threads, with the threads of a machine of two processors. Needs: ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

export TOKIO_WORKER_THREADS=2
start_smalt memory
python3 ci/watchdog.py "$memory_blob" "$memory_queue" "$memory_table" "$memory_control" \
    "${started[-1]}" "$@"
