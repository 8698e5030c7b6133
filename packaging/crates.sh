#!/usr/bin/env bash
# Packs the public crates as `cargo publish` would.
#
#   packaging/crates.sh              packs
#   packaging/crates.sh --verify     also compiles each crate from what was packed: minutes
# shellcheck disable=SC2154 # what the facts set
set -euo pipefail
cd "$(dirname "$0")/.."
eval "$(python3 packaging/facts.py)"

verify=--no-verify
[ "${1:-}" != --verify ] || verify=
# shellcheck disable=SC2046,SC2086 # a list of crates, and possibly no argument
cargo package --quiet --allow-dirty $verify $(printf -- '-p %s ' $crates)
