# The build profile of programs for checks: sourced, not run. It is the release profile without link-time
# optimisation and line tables, which take longer to build than the checks run. Releases and published
# figures have both.
# shellcheck shell=bash
export CARGO_PROFILE_RELEASE_LTO=off
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_OPT_LEVEL=2
export CARGO_PROFILE_RELEASE_DEBUG=false
