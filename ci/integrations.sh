#!/usr/bin/env bash
# Whatever starts Azurite starts smalt: each row of fixtures/integrations.toml against smalt, started
# in both ways, and against Azurite; then two emulators side by side. Needs: ci/build.sh; Azurite comes
# from npm into build/azurite. SKIP_AZURITE=1 leaves it out.
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

# field FILE NAME...: what a ready file says.
field() {
    python3 -c 'import functools, json, sys
print(functools.reduce(lambda at, name: at[name], sys.argv[2:], json.load(open(sys.argv[1]))))' "$@"
}

# alone NAME [FLAG...]: starts a smalt that chooses its control port, with the ready file $work/NAME.json.
alone() {
    local name=$1
    shift
    "$bin/smalt" "${free[@]}" --readyFile "$work/$name.json" "$@" >"$work/$name.log" 2>&1 &
    started+=("$!")
    await "$work/$name.json" connection_string "$!"
}

# refused PATTERN [FLAG...]: it must not start, and say why.
refused() {
    local pattern=$1
    shift
    if "$bin/smalt" "${free[@]}" "$@" >"$work/refused" 2>&1; then
        fail "it started with $*"
    fi
    grep -qE -- "$pattern" "$work/refused" || fail "no $pattern in: $(cat "$work/refused")"
}

echo "two emulators, neither of which was given a control port"
echo stale >"$work/one.json"
chmod 644 "$work/one.json"
alone one
alone two
one=$(field "$work/one.json" control port)
two=$(field "$work/two.json" control port)
[ "$one" != "$two" ] || fail "both control endpoints are at $one"
grep -q '(port 10003 is taken)' "$work/two.log" || fail "it is not said: $(cat "$work/two.log")"
for name in one two; do
    url=$(field "$work/$name.json" control url)
    curl -sf "$url/health" >/dev/null || fail "$name: the control endpoint does not answer"
    [ "$(stat -c %a "$work/$name.json")" = 600 ] || fail "$name: others can read the ready file"
done

# A name without a directory.
(cd "$work" && exec "$binary" "${free[@]}" --ready-file here.json) >"$work/here.log" 2>&1 &
started+=("$!")
await "$work/here.json" connection_string "$!"

echo "ports that are taken, hosts that are elsewhere"
refused "127.0.0.1:$one \(control\).*--controlPort" --controlPort "$one"
blob=$(field "$work/one.json" blob port)
refused "127.0.0.1:$blob \(blob\).*--blobPort" --blobPort "$blob"
refused '192.0.2.1:0 \(queue\).*--queueHost' --queueHost 192.0.2.1
refused '--readyFile' --readyFile "$work/none/ready.json"
refused '--blobHost.*nowhere.invalid' --blobHost nowhere.invalid

echo "the end"
kill "${started[0]}"
wait "${started[0]}" || fail "it ended with $?"
[ ! -e "$work/one.json" ] || fail "the ready file stays"

echo "a reader of its output that stands still"
mkfifo "$work/unread"
exec 9<>"$work/unread"
"$bin/smalt" azurite "${free[@]}" --readyFile "$work/unread.json" >&9 2>"$work/unread.log" &
unread=$!
started+=("$unread")
await "$work/unread.json" connection_string "$unread"
# Lines of more than a pipe holds.
url=$(field "$work/unread.json" blob url)
answers=$(curl -s -o /dev/null -w '%{http_code}\n' "$url/$account/none/[1-2000]" | sort | uniq -c)
[ "$answers" = "   2000 404" ] || fail "not all are answered: $answers"
kill "$unread"
wait "$unread" || fail "it ended with $?: $(cat "$work/unread.log")"
exec 9>&-

echo "as the first process of a container, without standard input"
if unshare --pid --fork true 2>/dev/null; then
    unshare --pid --fork --kill-child "$bin/smalt" azurite "${free[@]}" --controlPort 0 \
        <&- >"$work/first.log" 2>&1 &
    first=$!
    started+=("$first")
    await "$work/first.log" 'Table service is successfully listening' "$first"
    pkill -TERM -P "$first"
    wait "$first" || fail "the first process ended with $?: $(cat "$work/first.log")"
    grep -q 'Azurite Table service successfully closed' "$work/first.log" || fail "it was cut off"
else
    echo "NOT RUN: this machine gives no process identifiers of its own"
fi
echo "whatever starts Azurite starts smalt"
