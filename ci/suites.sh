#!/usr/bin/env bash
# Other people's programs against smalt, each on a fresh server: adlfs' own tests, the tests of the
# `object_store` crate, and a round with Microsoft's Python SDK. They come from PyPI and crates.io into
# build/suites (a few minutes the first time); what they fail, and why, is listed in DIFFERENCES.md.
#
#   ci/suites.sh                            all of them
#   ci/suites.sh adlfs object_store python  some of them
#
# Needs: python3, ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

adlfs_version=2026.8.0
object_store_version=0.14
account=devstoreaccount1
key='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
build=$(mkdir -p "${BUILD_DIR:-build}/suites" && cd "${BUILD_DIR:-build}/suites" && pwd)
venv=$build/venv
failures=0

python_packages() {
    [ ! -e "$venv/installed" ] || return 0
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "adlfs==$adlfs_version" \
        'azure-storage-blob>=12.24,<13' aiohttp pytest pytest-asyncio pytest-mock \
        pytest-timeout pandas dask pyarrow
    touch "$venv/installed"
}

# report NAME PASSED FAILED EXPECTED...: more than what DIFFERENCES.md explains is a failure.
report() {
    local name=$1 passed=$2 failed=$3
    shift 3
    echo "$name: $passed passed, $failed failed, $# of them expected"
    if [ "$passed" -eq 0 ] || [ "$failed" -gt $# ]; then
        failures=$((failures + 1))
    fi
}

# Its tests start an emulator by Docker: a stand-in lets them, and --host names ours.
suite_adlfs() {
    local expected=(test_ls test_find) source=$build/adlfs-$adlfs_version log=$build/adlfs.log
    python_packages
    [ -d "$source" ] || (
        cd "$build"
        "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps \
            --no-binary :all: "adlfs==$adlfs_version"
        tar xzf "adlfs-$adlfs_version.tar.gz"
    )
    start_smalt adlfs
    sed -i "s#^HOST = .*#HOST = \"$adlfs_blob\"#" "$source/adlfs/tests/constants.py"
    local stand_in=$PWD/ci/suites/no_docker
    (cd "$source" && PYTHONPATH=$stand_in "$venv/bin/python" -m pytest -q -p no:cacheprovider -o addopts= \
        --host "$adlfs_blob" --timeout 120 --tb=short -rf adlfs/tests) >"$log" 2>&1 || true
    local failed
    failed=$({ grep -E '^(FAILED|ERROR)' "$log" || true; } | sed 's/.*::\([a-z_A-Z0-9]*\).*/\1/' | sort -u)
    for name in $failed; do
        [[ " ${expected[*]} " == *" $name "* ]] || { echo "  $name" && failures=$((failures + 1)); }
    done
    report adlfs "$(count passed "$log")" "$(count failed "$log")" "${expected[@]}"
}

# count WORD LOG: the number before the word in the last line that has it.
count() {
    sed -n "s/.*[^0-9]\([0-9][0-9]*\) $1.*/\1/p; s/^\([0-9][0-9]*\) $1.*/\1/p" "$2" | tail -n 1 |
        grep . || echo 0
}

# Cargo brings the source; its tests run in a copy.
suite_object_store() {
    local fetch=$build/fetch source=$build/object_store log=$build/object_store.log
    if [ ! -d "$source" ]; then
        mkdir -p "$fetch/src"
        printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n' \
            >"$fetch/Cargo.toml"
        printf '[dependencies]\nobject_store = "%s"\n' "$object_store_version" \
            >>"$fetch/Cargo.toml"
        touch "$fetch/src/lib.rs"
        local manifest
        manifest=$(cargo metadata --quiet --format-version 1 --manifest-path "$fetch/Cargo.toml" |
            grep -o '"manifest_path":"[^"]*/object_store-[^"]*"' | head -n 1 | cut -d'"' -f4)
        cp -r "$(dirname "$manifest")" "$source"
        chmod -R u+w "$source"
        rm -f "$source/rust-toolchain.toml" "$source/Cargo.lock"
        printf '\n[workspace]\n' >>"$source/Cargo.toml"
    fi
    python_packages
    start_smalt store
    "$venv/bin/python" - "http://$store_blob/$account" "$account" "$key" <<'PY'
import sys
from azure.storage.blob import BlobServiceClient
url, name, key = sys.argv[1:]
credential = {"account_name": name, "account_key": key}
BlobServiceClient(url, credential=credential).create_container("test-bucket")
PY
    (
        cd "$source"
        export AZURITE_BLOB_STORAGE_URL=http://$store_blob TEST_INTEGRATION=1
        export AZURITE_QUEUE_STORAGE_URL=http://$store_queue AZURE_STORAGE_USE_EMULATOR=1
        export AZURE_CONTAINER_NAME=test-bucket
        CARGO_TARGET_DIR=$build/target cargo test --quiet --lib --features azure azure::
    ) >"$log" 2>&1 || true
    grep -E '^---- .* ----$' "$log" || true
    report object_store "$(count passed "$log")" "$(count failed "$log")"
}

suite_python() {
    local log=$build/python.log
    python_packages
    start_smalt python
    "$venv/bin/python" ci/suites/python_sdk.py "http://$python_blob/$account" "$account" "$key" \
        >"$log" 2>&1 || true
    grep -E '^FAILED' "$log" || true
    report "Python SDK" "$(count passed "$log")" "$(count failed "$log")"
}

[ $# -gt 0 ] || set -- adlfs object_store python
for suite in "$@"; do
    "suite_$suite"
done
[ "$failures" -eq 0 ] || fail "more fails than DIFFERENCES.md explains; logs in $build"
