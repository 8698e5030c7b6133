#!/bin/sh
# Installs the programs of smalt into a folder, from the npm registry and without node.
#
#   SMALT_VERSION=0.1.0 install.sh [FOLDER]      FOLDER is /usr/local/bin unless it is given
#   SMALT_REGISTRY=URL                           a mirror of the registry
#
# It is also the script of the devcontainer feature, whose option VERSION it takes.
set -eu

folder=${1:-/usr/local/bin}
version=${SMALT_VERSION:-${VERSION:-}}
registry=${SMALT_REGISTRY:-https://registry.npmjs.org}

stop() {
    echo "smalt is not installed: $*" >&2
    exit 1
}

[ -n "$version" ] || stop "say which version: SMALT_VERSION=0.1.0"
case $(uname -m) in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
    *) stop "there are no programs for $(uname -m)" ;;
esac
case $(uname -s) in
    # A Linux with glibc has its loader; programs for musl are linked statically.
    Linux) if ls /lib*/ld-linux-* >/dev/null 2>&1; then libc=gnu; else libc=musl; fi
        target=$cpu-unknown-linux-$libc ;;
    Darwin) target=$cpu-apple-darwin ;;
    *) stop "there are no programs for $(uname -s)" ;;
esac

url=$registry/@smalt/$target/-/$target-$version.tgz
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
if command -v curl >/dev/null; then
    curl -fsSL -o "$unpacked/programs.tgz" "$url" || stop "cannot fetch $url"
elif command -v wget >/dev/null; then
    wget -q -O "$unpacked/programs.tgz" "$url" || stop "cannot fetch $url"
else
    stop "neither curl nor wget is there"
fi
tar -xzf "$unpacked/programs.tgz" -C "$unpacked"
mkdir -p "$folder"
for program in "$unpacked"/package/bin/*; do
    # Beside its place first: whoever starts it meanwhile sees the old one or the new one.
    cp "$program" "$folder/.${program##*/}.new"
    chmod 755 "$folder/.${program##*/}.new"
    mv "$folder/.${program##*/}.new" "$folder/${program##*/}"
done
"$folder/smalt" --version
