#!/usr/bin/env bash
# Sweeps once with `--profile compat` and the original design's configuration, written with Microsoft's
# Python SDK: a state document of version 1, addressed by a SAS of its own, with SAS URIs that permit
# list, delete and read only and whose ampersands are escaped; 100 blobs per page, moves that
# overwrite. Afterwards the document is fetched as a browser does.
# Needs: ci/build.sh, ci/quickstart.sh (its venv).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-sweeper

python=${BUILD_DIR:-build}/quickstart/bin/python
start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection

state=$("$python" ci/compat.py create)
# A filter instead of a level shows the lines of the SDK as well.
"$bin/smalt-sweeper" once --profile compat --state "$state" --dead-account default \
    --log-level debug,hyper_util=debug --log json >"$work/report" 2>"$work/log" ||
    fail "smalt-sweeper: $(cat "$work/report" "$work/log")"
grep -qE '"logs": *\{[^}]*"pages": *3[,}]' <(tr -d '\n' <"$work/report") ||
    fail "250 blobs do not make three pages: $(cat "$work/report")"
grep -q 'can choose any container' "$work/log" || fail "the log does not warn about the profile"
# Reads all matches, because a reader that stops at the first one may break the pipe.
shown=$(grep -ho 'sig=[A-Za-z0-9%]*' "$work/report" "$work/log" | sort -u) || true
[ "$shown" = sig=REDACTED ] || fail "the report or the log shows a SAS"

"$python" ci/compat.py show "$state" >"$work/shown"
diff "$work/shown" - <<'END' || fail "unexpected blobs are left"
events later 3
events unmarked 4
logs other 6
paused due 5
dbc deleteme/dead 2
text/xml None
sales Init True
logs Init True
off Off True
True 252
True True
END
echo "swept a document of version 1 with SAS URIs"
