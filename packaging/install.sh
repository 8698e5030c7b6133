#!/bin/sh
# Installs the programs of smalt into a folder. They come from the npm registry; node is not needed.
#
#   SMALT_VERSION=0.1.0 install.sh [FOLDER]      FOLDER defaults to /usr/local/bin
#   SMALT_REGISTRY=URL                           uses a mirror of the registry
#
# The devcontainer feature runs it with its option `version` in VERSION.
set -eu

folder=${1:-/usr/local/bin}
version=${SMALT_VERSION:-${VERSION:-}}
registry=${SMALT_REGISTRY:-https://registry.npmjs.org}

stop() {
    echo "cannot install smalt: $*" >&2
    exit 1
}

[ -n "$version" ] || stop "set SMALT_VERSION, for example SMALT_VERSION=0.1.0"
case $(uname -m) in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
    *) stop "there is no package for the processor $(uname -m)" ;;
esac
case $(uname -s) in
    # glibc is there when its loader is. The musl programs are static and run everywhere.
    Linux) if ls /lib*/ld-linux-* >/dev/null 2>&1; then libc=gnu; else libc=musl; fi
        target=$cpu-unknown-linux-$libc ;;
    Darwin) target=$cpu-apple-darwin ;;
    *) stop "there is no package for $(uname -s)" ;;
esac

url=$registry/@smalt/$target/-/$target-$version.tgz
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
if command -v curl >/dev/null; then
    curl -fsSL -o "$unpacked/programs.tgz" "$url" || stop "cannot fetch $url"
elif command -v wget >/dev/null; then
    wget -q -O "$unpacked/programs.tgz" "$url" || stop "cannot fetch $url"
else
    stop "install curl or wget"
fi
tar -xzf "$unpacked/programs.tgz" -C "$unpacked"
mkdir -p "$folder"
for program in "$unpacked"/package/bin/*; do
    # The rename replaces a program that is running, which cp refuses to overwrite.
    cp "$program" "$folder/.${program##*/}.new"
    chmod 755 "$folder/.${program##*/}.new"
    mv "$folder/.${program##*/}.new" "$folder/${program##*/}"
done
"$folder/smalt" --version
