#!/usr/bin/env bash
# The release binaries: the products as they ship, and the harness beside them.
#
# Two builds, for cargo builds a crate once for everything it is asked for: with the harness in the
# same build the products would have what the harness needs of them (`schedule`, tokio's test clock).
#
#   HARNESS_FEATURES=failpoints   a harness that can do all there is: ci/check.sh, no release
#   PLANTED=1                     the harness of ci/planted.sh, so that ci/check.sh builds no other
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

cargo build --release --quiet -p smalt -p smalt-sweeper -p smalt-listener --bins
if [ -n "${PLANTED:-}" ]; then
    bash ci/planted.sh --build
    cp target/planted/release/harness "$target/release/"
else
    cargo build --release --quiet -p smalt-harness --bin harness --features "${HARNESS_FEATURES:-}"
fi

# `smalt --version` says it when parts that are for tests were built in (emulator/src/cli.rs).
version=$("$target/release/smalt" --version)
case $version in
    *tests*)
        echo "FAILED: not a product: $version" >&2
        exit 1
        ;;
esac
