#!/usr/bin/env bash
# Fills real file systems, and removes directories, under a running server. Acknowledged data must stay,
# reads and deletes must continue, and writes must resume by themselves (docs/control.md, /ready).
# Needs root, because it mounts a tmpfs.
#
#   ci/disk.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

mount_point=$work/full
mkdir -p "$mount_point"
if ! mount -t tmpfs -o size=20m tmpfs "$mount_point" 2>/dev/null; then
    echo "disk: NOT RUN, mounting a tmpfs needs root"
    exit 0
fi
unmount() {
    umount -l "$mount_point" 2>/dev/null || true
}
trap 'unmount; stop_all' EXIT

# serve NAME DIR: starts a server with its data in DIR.
serve() {
    local log=$work/$1.log
    "$bin/smalt" --location "$2" --blobPort 0 --queuePort 0 --tablePort 0 --controlPort 0 \
        >"$log" 2>&1 &
    server=$!
    started+=("$server")
    await "$log" DefaultEndpointsProtocol= "$server"
    blob=$(sed -n 's|^ *blob *[a-z]*://||p' "$log" | head -n 1)
    control=$(sed -n 's|^ *control *[a-z]*://||p' "$log" | head -n 1)
}

# send METHOD PATH [CURL OPTION...]: sends a request signed with the public key; prints the status.
send() {
    PYTHONPATH=ci python3 - "$blob" "$@" <<'PY'
import http.client, os, sys
from email.utils import formatdate
from sas import ACCOUNT, VERSION, shared_key

host, method, path, *size = sys.argv[1:]
body = os.urandom(int(size[0])) if size else b""
target = f"/{ACCOUNT}{path}"
headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION}
headers["content-length"] = str(len(body))
if method == "PUT" and "?" not in path:
    headers["x-ms-blob-type"] = "BlockBlob"
headers["authorization"] = shared_key(method, target, headers)
connection = http.client.HTTPConnection(host, timeout=20)
connection.request(method, target, body, headers)
response = connection.getresponse()
response.read()
print(response.status)
PY
}

# expect WHAT WANTED GOT
expect() {
    [ "$2" = "$3" ] || fail "$1: $3, expected $2; $(tail -n 3 "$work"/*.log)"
}

# fill NAME SIZE COUNT: puts blobs until one is rejected; sets `filled` to their number and `status` to
# the last status.
fill() {
    local n
    filled=0
    for n in $(seq 1 "$3"); do
        status=$(send PUT "/box/$1$n" "$2")
        [ "$status" = 201 ] || break
        filled=$n
    done
}

ready() {
    curl -s -o "$work/ready" -w '%{http_code}' "http://$control/ready"
}

serve full "$mount_point/data"
expect "a container" 201 "$(send PUT '/box?restype=container')"
expect "ready" 200 "$(ready)"
fill b 1000000 40
acknowledged=$filled
expect "an upload to a full disk" 503 "$status"
[ "$acknowledged" -gt 5 ] || fail "only $acknowledged uploads succeeded before the disk was full"
fill s 12000 2000
small=$filled
expect "a small write to a full disk" 503 "$status"
expect "ready on a full disk" 503 "$(ready)"
grep -q disk_full "$work/ready" || fail "$(cat "$work/ready")"
# Another process uses the last byte.
cat /dev/zero >"$mount_point/filler" 2>/dev/null || true
expect "a read" 200 "$(send GET /box/b1)"
expect "a delete" 202 "$(send DELETE /box/b1)"
expect "a delete" 202 "$(send DELETE /box/s1)"
expect "a write" 503 "$(send PUT /box/new 100)"
rm "$mount_point/filler"
mount -o remount,size=100m "$mount_point"
expect "a write after space is freed" 201 "$(send PUT /box/new 100)"
expect "an upload after space is freed" 201 "$(send PUT /box/large 9000000)"
expect "ready after space is freed" 200 "$(ready)"
lines=$(grep -c -e WARN -e ERROR "$work/full.log" || true)
[ "$lines" -le 6 ] || fail "the log has $lines lines about the full disk"
kill -9 "$server"
wait "$server" 2>/dev/null || true
"$bin/smalt" check "$mount_point/data" >"$work/check" || fail "$(cat "$work/check")"
serve again "$mount_point/data"
for n in $(seq 2 "$acknowledged"); do
    expect "b$n after kill -9" 200 "$(send GET "/box/b$n")"
done
for n in $(seq 2 50 "$small"); do
    expect "s$n after kill -9" 200 "$(send GET "/box/s$n")"
done
expect "a deleted blob" 404 "$(send GET /box/b1)"
echo "full disk: $acknowledged uploads and $small small ones acknowledged, none lost"

rm -rf "$mount_point/data"
expect "a write to a removed directory" 503 "$(send PUT /box/gone 100)"
expect "ready without the directory" 503 "$(ready)"
grep -q directory_gone "$work/ready" || fail "$(cat "$work/ready")"
expect "health" 200 "$(curl -s -o /dev/null -w '%{http_code}' "http://$control/health")"
kill "$server"
wait "$server" 2>/dev/null || true

serve moved "$mount_point/data"
expect "a container" 201 "$(send PUT '/box?restype=container')"
mount -t tmpfs -o size=20m tmpfs "$mount_point/data"
expect "a write under another mount" 503 "$(send PUT /box/gone 100)"
umount "$mount_point/data"
echo "removed directory: nothing is acknowledged"
