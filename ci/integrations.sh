#!/usr/bin/env bash
# Checks that programs which start Azurite can start smalt: runs each row of fixtures/integrations.toml
# with smalt, started in both ways, and with Azurite; then runs two emulators at once. Needs:
# ci/build.sh; Azurite comes from npm into build/azurite. SKIP_AZURITE=1 skips it.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

python3 ci/integrations.py smalt "$bin/smalt"
python3 ci/integrations.py argument "$bin/smalt"
if [ -z "${SKIP_AZURITE:-}" ]; then
    build=$(mkdir -p "${BUILD_DIR:-build}/azurite" && cd "${BUILD_DIR:-build}/azurite" && pwd)
    install_azurite "$build"
    python3 ci/integrations.py azurite "$node" "$build"
fi

binary=$(realpath "$bin/smalt")
free=(--inMemoryPersistence --blobPort 0 --queuePort 0 --tablePort 0)

# field FILE NAME...: prints a field of a ready file.
field() {
    python3 -c 'import functools, json, sys
print(functools.reduce(lambda at, name: at[name], sys.argv[2:], json.load(open(sys.argv[1]))))' "$@"
}

# alone NAME [FLAG...]: starts smalt without a control port, with the ready file $work/NAME.json.
alone() {
    local name=$1
    shift
    "$bin/smalt" "${free[@]}" --readyFile "$work/$name.json" "$@" >"$work/$name.log" 2>&1 &
    started+=("$!")
    await "$work/$name.json" connection_string "$!"
}

# refused PATTERN [FLAG...]: expects that smalt fails to start, with an error that matches PATTERN.
refused() {
    local pattern=$1
    shift
    if "$bin/smalt" "${free[@]}" "$@" >"$work/refused" 2>&1; then
        fail "smalt started with $*, which must fail"
    fi
    grep -qE -- "$pattern" "$work/refused" || fail "no $pattern in: $(cat "$work/refused")"
}

echo "two emulators without a given control port"
echo stale >"$work/one.json"
chmod 644 "$work/one.json"
alone one
alone two
one=$(field "$work/one.json" control port)
two=$(field "$work/two.json" control port)
[ "$one" != "$two" ] || fail "both control endpoints are at $one"
grep -q '(port 10003 is taken)' "$work/two.log" || fail "the log does not mention the taken port: $(cat "$work/two.log")"
for name in one two; do
    url=$(field "$work/$name.json" control url)
    curl -sf "$url/health" >/dev/null || fail "$name: the control endpoint does not answer"
    [ "$(stat -c %a "$work/$name.json")" = 600 ] || fail "$name: others can read the ready file"
done

# A file name without a directory.
(cd "$work" && exec "$binary" "${free[@]}" --ready-file here.json) >"$work/here.log" 2>&1 &
started+=("$!")
await "$work/here.json" connection_string "$!"

echo "taken ports, foreign hosts"
refused "127.0.0.1:$one \(control\).*--controlPort" --controlPort "$one"
blob=$(field "$work/one.json" blob port)
refused "127.0.0.1:$blob \(blob\).*--blobPort" --blobPort "$blob"
refused '192.0.2.1:0 \(queue\).*--queueHost' --queueHost 192.0.2.1
refused '--readyFile' --readyFile "$work/none/ready.json"
refused '--blobHost.*nowhere.invalid' --blobHost nowhere.invalid

echo "shutdown"
kill "${started[0]}"
wait "${started[0]}" || fail "smalt exits with $?"
[ ! -e "$work/one.json" ] || fail "smalt does not remove the ready file"

echo "a reader that stops reading the output"
mkfifo "$work/unread"
exec 9<>"$work/unread"
"$bin/smalt" azurite "${free[@]}" --readyFile "$work/unread.json" >&9 2>"$work/unread.log" &
unread=$!
started+=("$unread")
await "$work/unread.json" connection_string "$unread"
# More lines than a pipe holds.
url=$(field "$work/unread.json" blob url)
answers=$(curl -s -o /dev/null -w '%{http_code}\n' "$url/$account/none/[1-2000]" | sort | uniq -c)
[ "$answers" = "   2000 404" ] || fail "some requests have no answer: $answers"
kill "$unread"
wait "$unread" || fail "smalt exits with $?: $(cat "$work/unread.log")"
exec 9>&-

echo "the first process of a container, without standard input"
if unshare --pid --fork true 2>/dev/null; then
    unshare --pid --fork --kill-child "$bin/smalt" azurite "${free[@]}" --controlPort 0 \
        <&- >"$work/first.log" 2>&1 &
    first=$!
    started+=("$first")
    await "$work/first.log" 'Table service is successfully listening' "$first"
    pkill -TERM -P "$first"
    wait "$first" || fail "the first process exits with $?: $(cat "$work/first.log")"
    grep -q 'Azurite Table service successfully closed' "$work/first.log" || fail "smalt stopped before the table service was closed"
else
    echo "NOT RUN: this machine allows no PID namespace"
fi
echo "programs that start Azurite can start smalt"
