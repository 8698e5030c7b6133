#!/usr/bin/env bash
# Builds every package from the built programs, installs each into an empty folder, starts smalt from
# there, stores a blob, reads it back and stops it. The images have a script of their own, ci/image.sh.
#
#   ci/packages.sh           everything
#   ci/packages.sh KIND...   some of: image npm wheel deb crates binstall formula feature action, and
#                            install, which compiles
#
# Needs: ci/build.sh, ci/quickstart.sh (its venv), npm and the package registries.
# shellcheck disable=SC2154 # what the facts and service.sh set
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
eval "$(python3 packaging/facts.py)"
# shellcheck disable=SC2086 # the list of programs
need $programs

build=$PWD/${BUILD_DIR:-build}
python=$build/quickstart/bin/python
tools=$build/packaging-tools
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false

# The limit holds for releases, not for builds for checks (ci/build.sh, ci/profile.sh).
sizes() {
    local program size release=yes
    [ "$(basename "$bin")" != checks ] && [ -z "${CARGO_PROFILE_RELEASE_LTO:-}" ] || release=
    for program in $programs; do
        size=$(stat -c %s "$bin/$program")
        printf '%-16s %5.1f MB\n' "$program" "$((size / 100000))e-1"
        [ -z "$release" ] || [ "$size" -le "$size_limit" ] ||
            fail "$program is larger than $size_limit bytes"
    done
    [ -n "$release" ] ||
        not_run "the size limit of $size_limit bytes: these programs are built for checks, not for release"
}

# python_tools: a venv with the tools that build and check packages.
python_tools() {
    if [ ! -e "$tools/installed" ]; then
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check \
            'hatchling>=1.27,<2' 'uv>=0.9,<1' 'check-jsonschema>=0.35,<1'
        touch "$tools/installed"
    fi
}

# serves NAME FOLDER [STATUS]: starts the smalt of this folder, stores and reads a blob, sends SIGTERM
# and expects that it exits with the status (0 by default) and its ports are closed.
serves() {
    local name=$1 connection=$1_connection control=$1_control status=0
    bin=$2 start_smalt "$name"
    "$python" ci/roundtrip.py "${!connection}" || fail "$name: cannot store and read a blob"
    kill "${started[-1]}"
    wait "${started[-1]}" || status=$?
    [ "$status" = "${3:-0}" ] || fail "$name exits with $status: $(cat "$work/$name.log")"
    for _ in $(seq 1 30); do
        (exec 3<>"/dev/tcp/${!control/://}") 2>/dev/null || break
        sleep 0.1
    done
    if (exec 3<>"/dev/tcp/${!control/://}") 2>/dev/null; then fail "$name still serves"; fi
    echo "$name: installed, started, used, stopped"
}

# says_version FOLDER: expects each program of this folder to print the version.
says_version() {
    local program
    for program in $programs; do
        "$1/$program" --version | grep -q " $version" || fail "$1/$program prints another version"
    done
}

# Serves the built packages as a registry for npm, pip and uv.
registry() {
    if [ -z "${registry_url:-}" ]; then
        mkdir -p "$work/registry"
        python3 -u -m http.server --bind 127.0.0.1 --directory "$work/registry" 0 \
            >"$work/registry.log" 2>&1 &
        started+=("$!")
        await "$work/registry.log" "Serving HTTP" "$!"
        registry_url=http://127.0.0.1:$(sed -n 's/^Serving HTTP .* port \([0-9]*\) .*/\1/p' "$work/registry.log")
    fi
    [ -d "$out/npm" ] || python3 packaging/npm.py
    python3 ci/registry.py "$work/registry" "$registry_url"
}

# wrapper NAME COMMAND...: makes a folder whose `smalt` runs this command, for `serves`.
wrapper() {
    local name=$1
    shift
    mkdir -p "$work/$name"
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$work/$name/smalt"
    chmod +x "$work/$name/smalt"
}

test_npm() {
    python3 packaging/npm.py
    registry
    local prefix=$work/npm npm="--registry $registry_url --cache $work/npm-cache --loglevel error"
    # shellcheck disable=SC2086
    npm install --prefix "$prefix" $npm smalt
    serves npm "$prefix/node_modules/.bin"
    says_version "$prefix/node_modules/.bin"
    (cd "$prefix" && node --input-type=module -e \
        'import { program } from "smalt"; console.log(program("smalt-sweeper"))') |
        grep -q "/@smalt/$target/bin/smalt-sweeper$" || fail "program() of the npm package returns another path"
    wrapper npx "npx --yes $npm smalt"
    # The types work in a project that depends on the package.
    cat >"$prefix/typed.mts" <<'END'
import { program } from "smalt";
export const path: string = program("smalt-listener");
// @ts-expect-error There is no such program.
program("nothing");
END
    node "$tools/npm/node_modules/typescript/bin/tsc" --noEmit --strict --module nodenext \
        "$prefix/typed.mts" || fail "the types of the npm package are wrong"
    # npm dies from the signal.
    serves npx "$work/npx" 143
    rm -rf "$prefix/node_modules/@smalt"
    if "$prefix/node_modules/.bin/smalt" --version >"$work/refused" 2>&1; then
        fail "smalt starts without its platform package"
    fi
    grep -q "optional dependencies" "$work/refused" || fail "$(cat "$work/refused")"
}

test_wheel() {
    python_tools
    rm -rf "$out/pypi"
    (cd packaging/pypi && "$tools/bin/hatchling" build --target wheel --directory "$out/pypi")
    registry
    local index=$registry_url/simple prefix=$work/pypi
    python3 -m venv "$prefix"
    "$prefix/bin/pip" install --quiet --disable-pip-version-check --index-url "$index" smalt
    serves pip "$prefix/bin"
    says_version "$prefix/bin"
    "$prefix/bin/python" -m smalt --version | grep -q "^smalt $version" || fail "python -m smalt does not print the version"
    "$prefix/bin/pip" install --quiet --disable-pip-version-check --index-url "$index" \
        --target "$work/pypi-target" smalt
    PYTHONPATH=$work/pypi-target python3 -m smalt --version | grep -q "^smalt $version" ||
        fail "python -m smalt of pip install --target"
    wrapper uvx "$tools/bin/uvx --quiet --no-config --cache-dir $work/uv --default-index $index smalt"
    serves uvx "$work/uvx"
}

test_deb() {
    if ! have dpkg-shlibdeps dpkg-dev; then
        not_run "the Debian package: dpkg-dev cannot be installed"
        return
    fi
    bash packaging/deb.sh
    local prefix=$work/deb
    mkdir -p "$prefix/var/lib/dpkg/info" "$prefix/var/lib/dpkg/updates"
    # dpkg checks the dependencies against the packages of this machine.
    cp /var/lib/dpkg/status "$prefix/var/lib/dpkg/"
    in_prefix() {
        dpkg --force-not-root --log=/dev/null --instdir="$prefix" \
            --admindir="$prefix/var/lib/dpkg" "$@" >"$work/deb.log" 2>&1 ||
            fail "dpkg $1: $(cat "$work/deb.log")"
    }
    in_prefix --install "$out/deb/smalt_${version}_$arch.deb"
    serves deb "$prefix/usr/bin"
    says_version "$prefix/usr/bin"
    in_prefix --purge smalt
    [ ! -e "$prefix/usr" ] || fail "the package leaves files behind: $(find "$prefix/usr")"
}

test_crates() {
    bash packaging/crates.sh
    local crate
    for crate in $crates; do
        tar -tzf "${CARGO_TARGET_DIR:-target}/package/$crate-$version.crate" |
            grep "/LICENSE-MIT$" >/dev/null || fail "$crate contains no licence"
    done
    echo "packed: $crates"
}

test_image() {
    bash ci/image.sh
}

# Not by default: it compiles.
test_install() {
    cargo install --quiet --locked --path emulator --root "$work/cargo"
    serves install "$work/cargo/bin"
}

# cargo-binstall downloads the URL in the manifests: it must exist in the registry.
test_binstall() {
    registry
    local folder url
    for folder in emulator sweeper listener; do
        url=$(python3 - "$folder" <<'END'
import sys
sys.path.insert(0, "packaging")
import facts
print(facts.manifest(sys.argv[1])["package"]["metadata"]["binstall"]["pkg-url"]
      .replace("{ target }", facts.TARGET).replace("{ version }", facts.VERSION))
END
        )
        [ -f "$work/registry/${url#https://registry.npmjs.org/}" ] || fail "binstall: $url is not in the registry"
    done
    echo "binstall: $url is in the registry"
    not_run "cargo-binstall itself: it takes minutes to build"
}

test_formula() {
    registry
    python3 packaging/homebrew.py
    if have ruby ruby; then
        ruby -c "$out/homebrew/smalt.rb" >/dev/null || fail "the formula is not valid Ruby"
    else
        not_run "the syntax of the formula: ruby cannot be installed"
    fi
    not_run "the formula: no package registry has brew"
}

test_feature() {
    registry
    python3 packaging/devcontainer.py
    local feature=$work/feature
    mkdir -p "$feature"
    tar -xf "$out/devcontainer/devcontainer-feature-smalt.tgz" -C "$feature"
    # As the devcontainer tools run it, except for the folder.
    VERSION=$version SMALT_REGISTRY=$registry_url sh "$feature/install.sh" "$feature/bin"
    serves feature "$feature/bin"
    says_version "$feature/bin"
    not_run "the feature in a container: that needs a container engine"
}

test_action() {
    registry
    python_tools
    "$tools/bin/check-jsonschema" --builtin-schema vendor.github-actions \
        packaging/action/action.yml
    "$tools/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    local runner=$work/runner
    mkdir -p "$runner"
    export RUNNER_TEMP=$runner GITHUB_PATH=$runner/path GITHUB_ENV=$runner/env
    export GITHUB_OUTPUT=$runner/output SMALT_REGISTRY=$registry_url
    SMALT_FLAGS="--inMemoryPersistence --blobPort 0 --queuePort 0 --tablePort 0 --controlPort 0" \
        bash packaging/action/start.sh
    started+=("$(sed -n 's/^pid=//p' "$runner/output")")
    "$python" ci/roundtrip.py "$(sed -n 's/^AZURE_STORAGE_CONNECTION_STRING=//p' "$runner/env")" ||
        fail "the action's connection string does not work"
    says_version "$(cat "$runner/path")"
    echo "action: its script installed and started smalt, which served a request"
    not_run "the action on GitHub"
}

sizes
kinds=("$@")
if [ $# = 0 ]; then
    kinds=(npm wheel deb crates binstall formula feature action)
    # The images do not depend on the other packages, so they are built in parallel.
    bash ci/image.sh >"$work/image" 2>&1 &
    images=$!
    started+=("$images")
fi
for kind in "${kinds[@]}"; do
    printf -- '-- %s (after %d s)\n' "$kind" "$SECONDS"
    "test_$kind"
done
if [ -n "${images:-}" ]; then
    printf -- '-- image (after %d s)\n' "$SECONDS"
    wait "$images" || fail "$(cat "$work/image")"
    cat "$work/image"
fi
