#!/usr/bin/env bash
# The conformance suite against the release binary, by http and by https, and, where npm is there,
# against Azurite beside it. Reports go to build/conform.{html,md,json}.
#
#   ci/conform.sh [further options of `harness conform`]
#
# SKIP_AZURITE=1 leaves Azurite out.
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
    echo "Azurite is left out"
fi
"$bin/harness" conform "${targets[@]}" --smalt "$bin/smalt" --html "$build/conform.html" \
    --markdown "$build/conform.md" --json "$build/conform.json" "$@"
