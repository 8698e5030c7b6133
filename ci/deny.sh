#!/usr/bin/env bash
# Runs cargo-deny: licences, bans, sources and advisories. Fails when it cannot fetch the advisory
# database, unless ADVISORIES=optional is set.
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
        echo "cannot fetch the advisory database; set ADVISORIES=optional to skip it" >&2
        exit 1
    }
    echo "advisories: NOT RUN, the database is unreachable (ADVISORIES=optional)"
    exit 0
fi
cargo deny --log-level error check --disable-fetch advisories
