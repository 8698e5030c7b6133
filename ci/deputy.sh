#!/usr/bin/env bash
# Writes hostile blobs into a swept container and hostile messages into a queue. The workers must not
# touch anything else, give no credential to a command, and print no terminal control characters.
# Needs: ci/build.sh, ci/quickstart.sh (its venv).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt smalt-sweeper smalt-listener

python=${BUILD_DIR:-build}/quickstart/bin/python
start_smalt smalt
export AZURE_STORAGE_CONNECTION_STRING=$smalt_connection
"$python" ci/deputy.py plant
"$python" ci/deputy.py show >"$work/before"

sweep=(--container inbox --dead-account default --state smalt-sweeper/TimeToLiveBlobs)
"$bin/smalt-sweeper" plan "${sweep[@]}" >"$work/texts" 2>&1 || fail "plan: $(cat "$work/texts")"
code=0
"$bin/smalt-sweeper" once "${sweep[@]}" >"$work/report" 2>>"$work/texts" || code=$?
[ "$code" = 1 ] || fail "a sweep with rejected blobs exited with $code, expected 1: $(cat "$work/report")"
grep -q '"dbc_not_allowed": 4' "$work/report" || fail "not all hostile blobs were rejected: $(cat "$work/report")"
grep -q 'WARN.*--dead-allow con1 ' "$work/texts" || fail "the output does not say how to allow a destination"

cat >"$work/listener.toml" <<END
[storage]
connection_string = "env:SECRET_UNDER_ANY_NAME"
[[listener.queue]]
name = "jobs"
encoding = "base64"
max_dequeue = 1
offload = { container = "payloads" }
handler = { exec = "env >>$work/environment; exit 65", env = ["PASSED"] }
END
listen() {
    env -u AZURE_STORAGE_CONNECTION_STRING SECRET_UNDER_ANY_NAME="$smalt_connection" PASSED=yes \
        AZURE_CLIENT_SECRET=SECRET IDENTITY_HEADER=SECRET SMALT_TOKEN=SECRET \
        "$bin/smalt-listener" "$@"
}
listen once --config "$work/listener.toml" >>"$work/texts" 2>&1 || true
grep -q '^PASSED=yes$' "$work/environment" ||
    fail "the command did not get a named variable: $(cat "$work/texts")"
! grep -E 'SECRET|AccountKey' "$work/environment" || fail "a command got a credential"
for command in 'peek --queue texts' 'poison list --queue jobs' \
    'poison requeue --queue jobs --all --dry-run'; do
    # shellcheck disable=SC2086
    listen $command --config "$work/listener.toml" >>"$work/texts" 2>&1 || fail "$command: $(cat "$work/texts")"
done

"$python" ci/deputy.py check <"$work/texts" || fail "the output contains terminal control characters"
# The state document belongs to the sweeper.
"$python" ci/deputy.py show | sed 's/ smalt-sweeper\b//' >"$work/after"
diff "$work/before" "$work/after" || fail "hostile blobs or messages changed other data"
echo "hostile blobs and messages changed no other data"
