#!/usr/bin/env bash
# Runs other people's programs against smalt, each on a fresh server: adlfs' own tests, the tests of the
# `object_store` crate, rounds with Microsoft's SDKs for Python, JavaScript, Go and Java and with
# libraries built on them (ci/suites/clients.sh), and azure-cli's commands for queues and tables.
# They come from package registries into build/suites (a quarter of an hour and 4 GB the first
# time). DIFFERENCES.md lists their failures with reasons.
#
#   ci/suites.sh                            all of them
#   ci/suites.sh adlfs python_queue         some of them: adlfs object_store python python_queue
#                                           python_tables azure_cli azure_cli_tables clients
#                                           javascript go java hadoop backup
#
# Needs: python3, node and npm, go, java 17 and maven, apt; ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

adlfs_version=2026.8.0
object_store_version=0.14
build=$(mkdir -p "${BUILD_DIR:-build}/suites" && cd "${BUILD_DIR:-build}/suites" && pwd)
venv=$build/venv

python_packages() {
    [ ! -e "$venv/installed" ] || return 0
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "adlfs==$adlfs_version" \
        'azure-storage-blob>=12.24,<13' aiohttp pytest pytest-asyncio pytest-mock \
        pytest-timeout pandas dask pyarrow
    touch "$venv/installed"
}

# Its tests start an emulator with Docker: a stand-in replaces Docker, and --host names smalt.
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

# Cargo downloads the source; its tests run in a copy.
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

# python_sdk NAME PACKAGE URL: runs ci/suites/python_NAME_sdk.py with this package.
python_sdk() {
    local name=$1 package=$2 url=$3
    local log=$build/python_$name.log own=$build/venv-$name
    if [ ! -e "$own/installed" ]; then
        python3 -m venv "$own"
        "$own/bin/pip" install --quiet --disable-pip-version-check "$package" aiohttp
        touch "$own/installed"
    fi
    "$own/bin/python" "ci/suites/python_${name}_sdk.py" "$url" "$account" "$key" >"$log" 2>&1 || true
    grep -E '^FAILED' "$log" || true
    report "Python SDK, $name" "$(count passed "$log")" "$(count failed "$log")"
}

suite_python_queue() {
    start_smalt python_queue
    python_sdk queue 'azure-storage-queue>=12.10,<13' "http://$python_queue_queue/$account"
}

suite_python_tables() {
    start_smalt python_tables
    python_sdk tables 'azure-data-tables>=12.5,<13' "http://$python_tables_table/$account"
}

# cli_step NAME PATTERN ARGUMENT...: runs `az storage`; its output must match the pattern, if any.
cli_step() {
    local name=$1 pattern=$2
    shift 2
    if "$cli" storage "$@" --output json >"$work/cli" 2>>"$log" &&
        { [ -z "$pattern" ] || grep -q "$pattern" "$work/cli"; }; then
        passed=$((passed + 1))
    else
        echo "  $name: $(cat "$work/cli")"
        failed=$((failed + 1))
    fi
}

# azure_cli NAME: installs azure-cli, starts a server for it, and sets the suite's variables.
azure_cli() {
    local connection=$1_connection
    cli=$build/venv-cli/bin/az log=$build/azure_$1.log passed=0 failed=0
    once "$build/venv-cli" "$azure_cli_version" azure_cli_program
    start_smalt "$1"
    export AZURE_CONFIG_DIR=$work/az AZURE_CORE_COLLECT_TELEMETRY=no AZURE_CORE_ONLY_SHOW_ERRORS=1
    export AZURE_STORAGE_CONNECTION_STRING=${!connection}
    : >"$log"
}

suite_azure_cli() {
    local message id receipt queue=orders
    local field='import json,sys; print(json.load(sys.stdin)[0][sys.argv[1]])'
    azure_cli cli
    cli_step create '"created": true' queue create -n $queue --metadata team=billing
    cli_step exists '"exists": true' queue exists -n $queue
    cli_step list $queue queue list
    cli_step "metadata show" billing queue metadata show -n $queue
    cli_step put '"id"' message put -q $queue --content hello --time-to-live 3600
    cli_step peek hello message peek -q $queue
    cli_step get hello message get -q $queue --visibility-timeout 60
    message=$(cat "$work/cli")
    id=$(python3 -c "$field" id <<<"$message")
    receipt=$(python3 -c "$field" popReceipt <<<"$message")
    cli_step update popReceipt message update -q $queue --id "$id" --pop-receipt "$receipt" \
        --visibility-timeout 0 --content changed
    cli_step "get again" changed message get -q $queue
    message=$(cat "$work/cli")
    receipt=$(python3 -c "$field" popReceipt <<<"$message")
    cli_step delete '' message delete -q $queue --id "$id" --pop-receipt "$receipt"
    cli_step "policy create" '' queue policy create -q $queue -n reader --permissions r \
        --expiry 2099-01-01T00:00Z
    cli_step "policy show" '2099' queue policy show -q $queue -n reader
    cli_step "generate-sas" 'sig=' queue generate-sas -n $queue --permissions rp \
        --expiry 2099-01-01T00:00Z
    cli_step clear '' message clear -q $queue
    cli_step queue-delete '"deleted": true' queue delete -n $queue --fail-not-exist
    report "azure-cli, queues" "$passed" "$failed"
}

# cli_fails NAME PATTERN ARGUMENT...: runs `az storage`, which must fail with this text.
cli_fails() {
    local name=$1 pattern=$2
    shift 2
    if ! "$cli" storage "$@" >"$work/cli" 2>&1 && grep -q "$pattern" "$work/cli"; then
        passed=$((passed + 1))
    else
        echo "  $name: $(tail -n 3 "$work/cli")"
        failed=$((failed + 1))
    fi
}

suite_azure_cli_tables() {
    local table=orders keys=(PartitionKey=north RowKey=1) signature
    local at=(--table-name $table --partition-key north --row-key 1)
    azure_cli cli_tables
    cli_step create '"created": true' table create -n $table --fail-on-exist
    cli_fails "create again" TableAlreadyExists table create -n $table --fail-on-exist
    cli_step exists '"exists": true' table exists -n $table
    cli_step "exists not" '"exists": false' table exists -n nothing
    cli_step list $table table list
    cli_step insert etag entity insert -t $table \
        -e "${keys[@]}" Name=Ada Age=39 Age@odata.type=Edm.Int32 Big=5000000000 Big@odata.type=Edm.Int64
    cli_fails "insert again" 'entity already exists' entity insert -t $table -e "${keys[@]}"
    cli_step show '"Name": "Ada"' entity show "${at[@]}"
    cli_step "show some" '"Age": 39' entity show "${at[@]}" --select Age
    cli_fails "show nothing" ResourceNotFound entity show -t $table --partition-key a --row-key b
    cli_step merge etag entity merge -t $table -e "${keys[@]}" City=Rome
    cli_step "merged, not replaced" '"Name": "Ada"' entity show "${at[@]}"
    cli_step "insert or merge" etag entity insert -t $table --if-exists merge -e "${keys[@]}" Age=40
    cli_step "insert or replace" etag entity insert -t $table --if-exists replace \
        -e PartitionKey=north RowKey=2 Name=Bob Open=true Open@odata.type=Edm.Boolean
    cli_step query '"Name": "Bob"' entity query -t $table --filter "PartitionKey eq 'north'"
    cli_step "query one" '"RowKey": "2"' entity query -t $table --num-results 1 \
        --filter "Open eq true and (Name ge 'B' or Name eq 'Ada')" --select RowKey
    cli_step "query a page" nextMarker entity query -t $table --num-results 1
    cli_fails "query nonsense" InvalidInput entity query -t $table --filter 'Name is Ada'
    cli_step replace etag entity replace -t $table -e "${keys[@]}" Only=this
    cli_step "replaced, not merged" '"Only": "this"' entity show "${at[@]}"
    cli_fails "merge, another tag" UpdateConditionNotSatisfied entity merge -t $table \
        -e "${keys[@]}" Name=Eve --if-match "W/\"datetime'2020-01-01T00%3A00%3A00.1234567Z'\""
    cli_step "policy create" '' table policy create -t $table -n reader --permissions r \
        --expiry 2099-01-01T00:00Z
    cli_step "policy show" '2099' table policy show -t $table -n reader
    cli_step "policy update" '' table policy update -t $table -n reader --permissions ra
    cli_step "policy list" reader table policy list -t $table
    cli_step "generate-sas" 'sig=' table generate-sas -n $table --permissions r \
        --expiry 2099-01-01T00:00Z
    signature=$(tr -d '"\n' <"$work/cli")
    cli_with_sas "$signature"
    cli_step "policy delete" '' table policy delete -t $table -n reader
    cli_step "services properties" '' cors add --services t --methods GET --origins '*' --max-age 60
    cli_step "cors list" 'AllowedOrigins' cors list --services t
    cli_step "logging" '' logging update --services t --log rw --retention 3
    cli_step "logging show" '"days": 3' logging show --services t
    cli_step delete '' entity delete "${at[@]}"
    cli_fails "deleted" ResourceNotFound entity show "${at[@]}"
    cli_step "delete table" '"deleted": true' table delete -n $table --fail-not-exist
    cli_fails "delete table again" 'does not exist' table delete -n $table --fail-not-exist
    report "azure-cli, tables" "$passed" "$failed"
}

# cli_with_sas SIGNATURE: tests what a signature allows without a key, and what it does not.
cli_with_sas() {
    local AZURE_STORAGE_CONNECTION_STRING=
    local by=(--account-name "$account" --sas-token "$1")
    by+=(--table-endpoint "http://$cli_tables_table/$account" -t "$table")
    cli_step "query by signature" '"RowKey": "2"' entity query "${by[@]}"
    cli_fails "insert by signature" Forbidden entity insert "${by[@]}" \
        -e PartitionKey=north RowKey=9
}

. ci/suites/clients.sh

[ $# -gt 0 ] || set -- adlfs object_store python python_queue python_tables azure_cli \
    azure_cli_tables clients javascript go java hadoop backup
for suite in "$@"; do
    "suite_$suite"
done
[ "$failures" -eq 0 ] || fail "DIFFERENCES.md does not explain all failures; the logs are in $build"
