#!/usr/bin/env bash
# Builds the release binaries: the products as they ship, and the harness.
#
# There are two builds because cargo unifies features within a build: together with the harness the
# products would get the features that only the harness needs (`schedule`, tokio's test clock).
#
#   HARNESS_FEATURES=failpoints   a harness with all checks, for ci/check.sh; not for releases
#   PLANTED=1                     uses the harness of ci/planted.sh, so that ci/check.sh builds only one
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

# `smalt --version` shows features for tests (emulator/src/cli.rs).
version=$("$target/release/smalt" --version)
case $version in
    *tests*)
        echo "FAILED: this build has features for tests: $version" >&2
        exit 1
        ;;
esac
