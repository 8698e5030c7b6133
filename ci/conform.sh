#!/usr/bin/env bash
# Runs the conformance suite against the release binary, over HTTP and HTTPS, and against Azurite if npm
# is installed. Reports go to build/conform.{html,md,json}.
#
#   ci/conform.sh [further options of `harness conform`]
#
# SKIP_AZURITE=1 skips Azurite.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt harness

build=${BUILD_DIR:-build}
targets=(--target smalt --target smalt-https)

mkdir -p "$build"
if [ -z "${SKIP_AZURITE:-}" ] && command -v npm >/dev/null; then
    install_azurite "$build/azurite"
    targets+=(--target azurite --azurite "$build/azurite")
else
    echo "skipping Azurite"
fi
"$bin/harness" conform "${targets[@]}" --smalt "$bin/smalt" --html "$build/conform.html" \
    --markdown "$build/conform.md" --json "$build/conform.json" "$@"
