#!/usr/bin/env bash
# Builds the Debian package of all programs, with completions and the units of the workers.
# Needs dpkg-dev, which build-essential installs.
# shellcheck disable=SC2154 # what the facts set
set -euo pipefail
cd "$(dirname "$0")/.."
eval "$(python3 packaging/facts.py)"

root=$out/deb/root
rm -rf "$out/deb"
mkdir -p "$root/DEBIAN" "$root/usr/share/doc/smalt"

# completions PROGRAM SHELL: the emulator has a flag for it, the workers have a command.
completions() {
    if [ "$1" = smalt ]; then "$bin/$1" --completions "$2"; else "$bin/$1" completions "$2"; fi
}
for program in $programs; do
    install -D -m 755 "$bin/$program" "$root/usr/bin/$program"
    completions "$program" bash |
        install -D -m 644 /dev/stdin "$root/usr/share/bash-completion/completions/$program"
    completions "$program" zsh |
        install -D -m 644 /dev/stdin "$root/usr/share/zsh/vendor-completions/_$program"
    completions "$program" fish |
        install -D -m 644 /dev/stdin "$root/usr/share/fish/vendor_completions.d/$program.fish"
done
for unit in docs/deploy/*.service; do
    sed 's|/usr/local/bin/|/usr/bin/|' "$unit" |
        install -D -m 644 /dev/stdin "$root/usr/lib/systemd/system/${unit##*/}"
done
cat LICENSE-MIT LICENSE-APACHE >"$root/usr/share/doc/smalt/copyright"

# dpkg-shlibdeps requires the control file of a source package.
mkdir -p "$out/deb/debian"
printf 'Source: smalt\n\nPackage: smalt\nArchitecture: any\n' >"$out/deb/debian/control"
# shellcheck disable=SC2046,SC2086 # the list of programs
depends=$(cd "$out/deb" && dpkg-shlibdeps -O $(printf 'root/usr/bin/%s ' $programs) |
    sed -n 's/^shlibs:Depends=//p')

cat >"$root/DEBIAN/control" <<END
Package: smalt
Version: $version
Architecture: $arch
Maintainer: the smalt project <smalt@localhost>
Depends: $depends
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Section: devel
Priority: optional
Description: ${description%.}
 One program that answers requests as Azure Storage does, for development and
 tests, and the workers smalt-sweeper and smalt-listener.
END
# Independent of the umask.
chmod -R u=rwX,go=rX "$root"
# gzip takes a tenth of the time of xz and adds a fifth to the size; Debian 11 cannot read zstd.
dpkg-deb --root-owner-group -Zgzip --build "$root" "$out/deb/smalt_${version}_$arch.deb" >/dev/null
rm -r "$root" "$out/deb/debian"
