#!/usr/bin/env bash
# Attacks the ports of a running smalt: more connections than file descriptors, and foreign host names.
# Needs: ci/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

# status ADDRESS HOST: prints the status of an anonymous read with a host name, on its own connection.
status() {
    local socket line
    exec {socket}<>"/dev/tcp/${1%:*}/${1##*:}"
    printf 'GET /%s/box/b HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$account" "$2" >&"$socket"
    read -r -t 20 -u "$socket" _ line _ || line=none
    exec {socket}>&-
    echo "$line"
}
# expect STATUS ADDRESS HOST
expect() {
    local found
    found=$(status "$2" "$3")
    [ "$found" = "$1" ] || fail "Host: $3 gets $found, expected $1"
}

echo "host names"
start_smalt plain
expect 404 "$plain_blob" "$plain_blob"
expect 404 "$plain_blob" azurite:10000
expect 400 "$plain_blob" "$account.blob.evil.example"
expect 403 "$plain_control" evil.example
start_smalt told --allowHost 'storage.example,*.allowed.example'
expect 404 "$told_blob" storage.example
expect 404 "$told_blob" a.allowed.example
expect 400 "$told_blob" evil.example
expect 404 "$told_control" storage.example

echo "descriptors"
limit=$(ulimit -Sn)
ulimit -Sn 64
start_smalt few
ulimit -Sn "$limit"
sockets=()
for _ in $(seq 100); do
    exec {socket}<>"/dev/tcp/${few_blob%:*}/${few_blob##*:}"
    sockets+=("$socket")
done
seconds=4
sleep "$seconds"
lines=$(grep -c "cannot accept connections" "$work/few.log") || fail "the log does not say that descriptors ran out"
# One line at once and one per second, with a margin for a slow machine.
[ "$lines" -le $((2 * seconds)) ] || fail "$lines lines in $seconds seconds"
for socket in "${sockets[@]}"; do
    exec {socket}>&-
done
expect 404 "$few_blob" localhost
echo "$lines lines in $seconds seconds, then smalt serves again"
