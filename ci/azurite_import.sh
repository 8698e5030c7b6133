#!/usr/bin/env bash
# Imports a data directory of Azurite into smalt, and compares what Microsoft's SDKs read from both.
# Then it tests failures: kill -9 in the middle leaves nothing or everything, the error names missing
# extents, and Azurite's files never change.
# Azurite comes from npm into build/azurite. Needs: ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

build=${BUILD_DIR:-build}/azurite
install_azurite "$build"
venv=${BUILD_DIR:-build}/azurite-import
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check \
        azure-storage-blob azure-storage-queue azure-data-tables
fi
made=$work/azurite

# begin_azurite: starts it on the data in $made, and sets $connection.
begin_azurite() {
    start_azurite "$build" "$made"
    connection="DefaultEndpointsProtocol=http;AccountName=$account;AccountKey=$key"
    connection+=";BlobEndpoint=http://$azurite_blob/$account"
    connection+=";QueueEndpoint=http://$azurite_queue/$account"
    connection+=";TableEndpoint=http://$azurite_table/$account"
}

stop_azurite() {
    kill "$azurite_pid"
    wait "$azurite_pid" 2>/dev/null || true
}

# start_on DIR [FLAG...]: starts smalt with its data in DIR, and sets $connection and $smalt_pid.
start_on() {
    local log=$work/smalt.log
    : >"$log"
    "$bin/smalt" -l "$@" --blobPort 0 --queuePort 0 --tablePort 0 --controlPort 0 >"$log" 2>&1 &
    smalt_pid=$!
    started+=("$smalt_pid")
    await "$log" DefaultEndpointsProtocol= "$smalt_pid"
    connection=$(sed -n 's|^ *\(DefaultEndpointsProtocol=\)|\1|p' "$log")
}

stop_smalt() {
    kill "$smalt_pid"
    wait "$smalt_pid" 2>/dev/null || true
}

# tell FILE: writes everything that the SDKs read into FILE, without the ports.
tell() {
    "$venv/bin/python" ci/azurite_data.py tell "$connection" |
        sed 's|http://127.0.0.1:[0-9]*|http://HOST|g' >"$1"
}

# fingerprint DIR: prints the hashes of Azurite's files in it.
fingerprint() {
    (cd "$1" && find . -name '__*' -prune -print0 | sort -z | xargs -0 -I{} find {} -type f -print0 |
        sort -z | xargs -0 sha256sum)
}

begin_azurite
"$venv/bin/python" ci/azurite_data.py fill "$connection"
stop_azurite
begin_azurite
tell "$work/azurite.json"
stop_azurite
fingerprint "$made" >"$work/before"
# Copies from this Azurite contain its port.
sed -i 's|http://127.0.0.1:[0-9]*|http://HOST|g' "$work/azurite.json"

# smalt on Azurite's own directory.
cp -r "$made" "$work/same"
start_on "$work/same"
grep -q 'Imported from Azurite' "$work/smalt.log" || fail "the log does not mention the import"
tell "$work/same.json"
diff "$work/azurite.json" "$work/same.json" || fail "Azurite (<) and smalt (>) differ"
stop_smalt
fingerprint "$work/same" | diff "$work/before" - || fail "Azurite's files were changed"
# The second start uses smalt's own data.
start_on "$work/same"
! grep -q 'Imported' "$work/smalt.log" || fail "the second start imports again"
tell "$work/again.json"
diff "$work/same.json" "$work/again.json" || fail "a restart (>) differs"
stop_smalt
# smalt reports that Azurite has written to the directory since.
echo ' ' >>"$work/same/__azurite_db_blob__.json"
start_on "$work/same"
grep -q 'not in this store' "$work/smalt.log" || fail "smalt does not report that Azurite's data have changed"
stop_smalt

# Import into another directory, from a read-only one.
chmod -R a-w "$made"
start_on "$work/other" --importAzurite "$made"
tell "$work/other.json"
diff "$work/azurite.json" "$work/other.json" || fail "--importAzurite (>) differs"
stop_smalt
chmod -R u+w "$made"
fingerprint "$made" | diff "$work/before" - || fail "Azurite's files were changed"

# kill -9 in the middle, several times: the next start imports everything.
for turn in $(seq 1 "${KILLS:-12}"); do
    rm -rf "$work/killed"
    "$bin/smalt" -l "$work/killed" --importAzurite "$made" --blobPort 0 --queuePort 0 --tablePort 0 \
        --controlPort 0 >/dev/null 2>&1 &
    smalt_pid=$!
    sleep "0.0$((RANDOM % 90 + 10))"
    kill -9 "$smalt_pid" 2>/dev/null || true
    wait "$smalt_pid" 2>/dev/null || true
    start_on "$work/killed" --importAzurite "$made"
    tell "$work/killed.json"
    diff "$work/azurite.json" "$work/killed.json" >/dev/null || fail "incomplete import after kill $turn"
    stop_smalt
done

# smalt rejects an invalid directory, and the error says why.
# refused WORD DIR: expects that a start on DIR fails, that the error contains WORD, and that no data
# are left.
refused() {
    local log=$work/refused.log
    ! timeout 20 "$bin/smalt" -l "$2" --blobPort 0 --queuePort 0 --tablePort 0 --controlPort 0 \
        >"$log" 2>&1 || fail "smalt started on $2, which must fail"
    grep -q "$1" "$log" || fail "the error does not contain $1: $(cat "$log")"
}
cp -r "$made" "$work/broken"
extent=$(basename "$(find "$work/broken/__blobstorage__" -type f | head -n 1)")
rm "$work/broken/__blobstorage__/$extent"
refused "$extent" "$work/broken"
cp -r "$made" "$work/newer"
sed -i 's/"databaseVersion":1.5/"databaseVersion":9.5/' "$work/newer/__azurite_db_table__.json"
refused 'version 9.5' "$work/newer"
echo "smalt serves the data of Azurite $azurite_version, and imports them completely or not at all"
