#!/usr/bin/env bash
# Builds the container images, inspects them with skopeo, unpacks them with umoci, and runs their own
# commands and health checks with chroot in a network namespace, as a container engine would.
#
# Needs: ci/build.sh, ci/quickstart.sh (its venv); root, or sudo without a password. Installs skopeo and
# umoci.
# shellcheck disable=SC2154 # what the facts and service.sh set
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
eval "$(python3 packaging/facts.py)"
python=$PWD/${BUILD_DIR:-build}/quickstart/bin/python
images=$out/image

# setting IMAGE NAME: prints a value of the configuration, text as it is and the rest as JSON.
setting() {
    python3 - "$work/$1.json" "$2" <<'END'
import json, sys
value = json.load(open(sys.argv[1]))["config"]
for name in sys.argv[2].split("/"):
    value = value.get(name)
print(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
END
}
expect() {
    local found
    found=$(setting "$1" "$2")
    [ "$found" = "$3" ] || fail "$1 has $2 $found, not $3"
}

build_images() {
    python3 packaging/image.py
    mkdir -p "$work/again/image"
    cp -r "$images/tools" "$work/again/image/"
    PACKAGES_DIR=$work/again python3 packaging/image.py smalt >/dev/null
    cmp "$images/smalt.tar" "$work/again/image/smalt.tar" || fail "a second build differs"
    rm -rf "$work/again"
}

inspect_images() {
    local program
    for program in $programs; do
        # The file is an archive in both formats.
        skopeo inspect --raw --config "oci-archive:$images/$program.tar" >"$work/$program.json"
        skopeo inspect "docker-archive:$images/$program.tar" >/dev/null
        expect "$program" Labels/org.opencontainers.image.version "$version"
        setting "$program" Labels/org.opencontainers.image.licenses | grep -qF "($licence)" ||
            fail "$program: the label with the licence is wrong"
    done
    expect smalt Cmd '["azurite", "-l", "/data", "--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0"]'
    expect smalt Entrypoint null
    expect smalt Volumes '{"/data": {}}'
    expect smalt ExposedPorts '{"10000/tcp": {}, "10001/tcp": {}, "10002/tcp": {}, "10003/tcp": {}}'
    expect smalt Labels/org.springframework.boot.service-connection azure-storage/azurite
    expect smalt-sweeper Entrypoint '["smalt-sweeper"]'
    expect smalt-listener User 65532:65532
    echo "reproducible, and the configurations are correct"
}

if [ $# = 0 ]; then
    build_images
    if ! as_root true 2>/dev/null; then
        not_run "the images: they were built, but inspecting and starting them needs root"
        exit 0
    fi
    for tool in skopeo umoci; do
        have "$tool" "$tool" || fail "cannot install $tool, which inspects images"
    done
    inspect_images
    as_root env "PATH=$PATH" "BUILD_DIR=${BUILD_DIR:-build}" "PACKAGES_DIR=$out" \
        "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" "SMALT_TARGET=$target" \
        unshare --net bash ci/image.sh inside
    exit 0
fi

# The rest runs as root in a network namespace.

# enter IMAGE USER: sets `within`, a prefix that runs a command in an unpacked image.
enter() {
    within=(chroot --userspec="$2" "$work/$1/rootfs"
        /bin/busybox env -i PATH=/usr/local/bin:/bin)
}
inside() {
    enter "$1" "$2"
    shift 2
    "${within[@]}" "$@"
}

# Resolves every name to this machine, to test that the programs in the images resolve names.
name_server() {
    python3 - <<'END' &
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
while True:
    query, client = server.recvfrom(512)
    end = query.index(b"\0", 12) + 5
    address = query[end - 4 : end - 2] == b"\0\1"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1" if address else b""
    counts = b"\0\1" + (b"\0\1" if address else b"\0\0") + b"\0\0\0\0"
    server.sendto(query[:2] + b"\x81\x80" + counts + query[12:end] + answer, client)
END
    started+=("$!")
}

# begin_smalt USER FLAG...: starts the command of the image with these flags added.
begin_smalt() {
    local user=$1 command
    shift
    mapfile -t command < <(setting smalt Cmd | python3 -c 'import json, sys
print(*json.load(sys.stdin), sep="\n")')
    enter smalt "$user"
    "${within[@]}" "${command[@]}" "$@" >"$work/smalt.log" 2>&1 &
    started+=("$!")
    await "$work/smalt.log" DefaultEndpointsProtocol= "$!"
}
end_smalt() {
    kill "${started[-1]}"
    wait "${started[-1]}" || fail "smalt did not exit cleanly: $(cat "$work/smalt.log")"
}

local_connection=$(python3 - "$key" <<'END'
import sys
print(f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={sys.argv[1]};"
      "BlobEndpoint=http://HOST:10000/devstoreaccount1;"
      "QueueEndpoint=http://HOST:10001/devstoreaccount1;")
END
)

for program in $programs; do
    umoci unpack --image "$images/$program:$version" "$work/$program" >/dev/null 2>&1 ||
        fail "umoci cannot unpack $program"
    skopeo inspect --raw --config "oci:$images/$program:$version" >"$work/$program.json"
    # A node, not a mount: removing the folder must never reach the /dev of this machine.
    mkdir -p "$work/$program/rootfs/dev"
    mknod -m 666 "$work/$program/rootfs/dev/null" c 1 3
    echo "nameserver 127.0.0.1" >"$work/$program/rootfs/etc/resolv.conf"
    echo "127.0.0.1 localhost" >"$work/$program/rootfs/etc/hosts"
done
inside smalt 0:0 ifconfig lo 127.0.0.1 up
name_server
health=$(setting smalt Healthcheck/Test | python3 -c 'import json, sys; print(json.load(sys.stdin)[1])')

for user in 0:0 1234:1234; do
    if inside smalt "$user" sh -c "$health" >/dev/null 2>&1; then fail "healthy before the start"; fi
    rm -rf "$work/smalt/rootfs/data"
    mkdir -m 1777 "$work/smalt/rootfs/data"
    begin_smalt "$user"
    inside smalt "$user" sh -c "$health" >/dev/null || fail "not healthy as $user"
    for port in 10000 10001 10002; do
        inside smalt "$user" nc -z localhost "$port" || fail "nc -z: port $port is closed"
    done
    "$python" ci/roundtrip.py "${local_connection//HOST/127.0.0.1}" put
    end_smalt
    # The next container with the same volume.
    begin_smalt "$user" --copySourceAllow source.test --copySourceAllow 127.0.0.1
    "$python" ci/roundtrip.py "${local_connection//HOST/127.0.0.1}" get
    echo "as $user: started, healthy, kept a blob over a restart"
    [ "$user" = 1234:1234 ] || end_smalt
done

mkdir "$work/source"
echo "read from a name" >"$work/source/file"
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/source" 8000 >"$work/source.log" 2>&1 &
started+=("$!")
await "$work/source.log" "Serving HTTP" "$!"
copied=$("$python" ci/roundtrip.py "${local_connection//HOST/127.0.0.1}" copy http://source.test:8000/file)
[ "$copied" = "read from a name" ] || fail "a copy from a host name contains: $copied"
export AZURE_STORAGE_CONNECTION_STRING=${local_connection//HOST/127.0.0.1}
"$python" docs/quickstart.py create
worker() {
    inside "$1" 65532:65532 "$@" --connection-string "${local_connection//HOST/storage.test}" \
        --log-level error >"$work/report" 2>&1 || fail "$1: $(cat "$work/report")"
}
worker smalt-sweeper once --container events --dead-allow dead
worker smalt-listener once --queue orders --exec 'cat'
"$python" docs/quickstart.py show | grep -q "orders: 0 messages" || fail "the listener left messages"
echo "the programs of all images resolve names"
for name in azurite azurite-blob azurite-queue azurite-table smalt; do
    inside smalt 1234:1234 "$name" --version | grep -q "$version" || fail "$name does not run"
done
