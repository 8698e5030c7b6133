#!/usr/bin/env bash
# Coverage-guided fuzzing of what smalt parses and serves, each kind for some seconds, under a budget
# on the blocks of code that a byte of input may execute (harness/fuzz). Needs a nightly compiler.
#
#   ci/fuzz.sh [SECONDS] [KIND...]     a minute of each kind
#
# The script prints the path of a failing input: fix the defect, and put the file into
# fixtures/fuzz/KIND, where `cargo test` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
kinds=${*:-control documents requests sockets state workers}
build=$PWD/${BUILD_DIR:-build}

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzzing: NOT RUN, there is no nightly compiler (rustup toolchain install nightly)"
    exit 0
fi
export PATH="$build/tools/bin:$PATH"
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked --quiet --root "$build/tools"

# The callback of this instrumentation counts what an input costs.
export RUSTFLAGS="-Cllvm-args=-sanitizer-coverage-trace-pc"
cargo +nightly fuzz build --fuzz-dir harness/fuzz --sanitizer none
for kind in $kinds; do
    kept=fixtures/fuzz/$kind found=harness/fuzz/corpus/$kind failed=harness/fuzz/artifacts/$kind
    mkdir -p "$found" "$failed"
    printf '%s: ' "$kind"
    if ! harness/fuzz/target/*/release/"$kind" "$found" "$kept" -max_total_time="$seconds" -max_len=4096 \
        -timeout=20 -artifact_prefix="$failed/" -print_final_stats=1 >"$failed.log" 2>&1; then
        tail -n 40 "$failed.log" | cut -c1-300
        echo "FAILED: $kind; the input is in $failed/" >&2
        exit 1
    fi
    sed -n 's/.*number_of_executed_units: *//p' "$failed.log" | tr '\n' ' '
    echo "inputs, none failed"
done
