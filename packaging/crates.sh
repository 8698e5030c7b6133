#!/usr/bin/env bash
# Packs the public crates as `cargo publish` would, so that they can be published in this order.
#
#   packaging/crates.sh              the files only
#   packaging/crates.sh --verify     each is also unpacked and compiled: minutes
# shellcheck disable=SC2154 # what the facts set
set -euo pipefail
cd "$(dirname "$0")/.."
eval "$(python3 packaging/facts.py)"

verify=--no-verify
[ "${1:-}" != --verify ] || verify=
# shellcheck disable=SC2046,SC2086 # the list of crates, and no argument at all
cargo package --quiet --allow-dirty $verify $(printf -- '-p %s ' $crates)
