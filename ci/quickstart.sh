#!/usr/bin/env bash
# Runs docs/workers.md from start to end, with Microsoft's Python SDK in a venv under build/. At the end
# exactly the expired blobs must be deleted or moved, and the queue must be empty.
# Needs: python3, ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-sweeper smalt-listener

venv=${BUILD_DIR:-build}/quickstart

if [ ! -e "$venv/installed" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check \
        'azure-storage-blob>=12.19,<13' 'azure-storage-queue>=12.8,<13'
    touch "$venv/installed"
fi

start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection

"$venv/bin/python" docs/quickstart.py create
"$bin/smalt-sweeper" once --container events --dead-allow dead --log-level error \
    >"$work/report" || fail "smalt-sweeper: $(cat "$work/report")"
# Messages are handled in parallel, in any order.
"$bin/smalt-listener" once --queue orders --exec 'echo "$(cat)"' --log-level error \
    >"$work/handled" || fail "smalt-listener"
"$venv/bin/python" docs/quickstart.py show | sed 's/ *$//' >"$work/shown"

sort "$work/handled" | grep . | diff - <(printf 'order %s\n' 0 1 2) || fail "the handled messages differ"
diff "$work/shown" - <<'END' || fail "the remaining blobs or messages differ"
events/keep.json
events/tomorrow.json
events/week.json
dead/2026/archived.json from archived.json
orders: 0 messages
END
cat "$work/shown"
echo "both workers behave as docs/workers.md says"
