# How programs for checks are built: sourced, not run. The release profile without link-time
# optimisation: linking would take longer than the checks run. Releases and figures have it.
# shellcheck shell=bash
export CARGO_PROFILE_RELEASE_LTO=off
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_OPT_LEVEL=2
