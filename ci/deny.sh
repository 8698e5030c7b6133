#!/usr/bin/env bash
# cargo-deny: licences, bans, sources and advisories. Fails when the advisory database cannot be
# fetched, unless ADVISORIES=optional says that this machine may not reach it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}

if ! command -v cargo-deny >/dev/null; then
    export PATH="$PWD/$build/tools/bin:$PATH"
    command -v cargo-deny >/dev/null ||
        cargo install cargo-deny --debug --locked --quiet --root "$build/tools"
fi

cargo deny --log-level error check bans licenses sources
if ! timeout 120 cargo deny --log-level error fetch db 2>/dev/null; then
    [ "${ADVISORIES:-required}" = optional ] || {
        echo "cannot fetch the advisory database; set ADVISORIES=optional to go on without it" >&2
        exit 1
    }
    echo "advisories: NOT RUN, their database cannot be reached (ADVISORIES=optional)"
    exit 0
fi
cargo deny --log-level error check --disable-fetch advisories
