# How programs for checks are built: sourced, not run. The release profile without link-time
# optimisation and line tables: making them would take longer than the checks run. Releases and
# figures have both.
# shellcheck shell=bash
export CARGO_PROFILE_RELEASE_LTO=off
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_OPT_LEVEL=2
export CARGO_PROFILE_RELEASE_DEBUG=false
# One harness with everything that its checks can need; the products are built without (ci/build.sh).
export HARNESS_FEATURES=failpoints
