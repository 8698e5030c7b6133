#!/usr/bin/env bash
# Builds the programs: the products as they ship, the harness, and the shim of its crash test.
#
#   ci/build.sh              the release profile, in target/release
#   ci/build.sh checks       the profile of `cargo test`, in target/checks: for ci/check.sh, which thereby
#                            compiles nothing that `cargo test` does not need as well
#   PLANTED=1 ci/build.sh    the harness of ci/planted.sh, so that ci/nightly.sh builds no other
#
# There are two builds because cargo unifies features within a build: together with the harness the
# products would get the features that only the harness needs (`schedule`, `failpoints`).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
products=(-p smalt -p smalt-sweeper -p smalt-listener --bins)
shim=()
[ "$(uname)" != Linux ] || shim=(-p smalt-shim)

if [ "${1:-release}" = checks ]; then
    bin=$target/checks
    mkdir -p "$bin/examples"
    # With tokio as `cargo test` needs it, so that what depends on tokio is compiled once.
    cargo build --quiet "${products[@]}" --features tokio/test-util
    cp "$target"/debug/smalt{,-sweeper,-listener} "$bin/"
    # `cargo test` builds the programs of its own that the checks need, too.
    cargo test --quiet --no-run
    [ -z "${shim[*]}" ] || cargo build --quiet "${shim[@]}"
    cp "$target"/debug/{harness,libsmalt_shim.*} "$bin/"
    cp "$target"/debug/examples/{billing,channels} "$bin/examples/"
else
    bin=$target/release
    cargo build --release --quiet "${products[@]}"
    [ -z "${shim[*]}" ] || cargo build --release --quiet "${shim[@]}"
    if [ -n "${PLANTED:-}" ]; then
        bash ci/planted.sh --build
        cp target/planted/release/harness "$bin/"
    else
        cargo build --release --quiet -p smalt-harness --bin harness
    fi
fi

# `smalt --version` shows features for tests (emulator/src/cli.rs).
version=$("$bin/smalt" --version)
case $version in
    *tests*)
        echo "FAILED: this build has features for tests: $version" >&2
        exit 1
        ;;
esac
