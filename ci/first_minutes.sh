#!/usr/bin/env bash
# Runs the blocks of docs/first-minutes.md that are marked as run, unchanged and in order, and compares
# their output with the page. Other blocks of YAML and JSON must parse.
#
#   ci/first_minutes.sh                  everything
#   ci/first_minutes.sh rclone Spark     the first section, and those with one of these words in the title
#
# The page uses the usual ports, so it runs in its own network namespace if possible (unshare).
# Needs: what ci/suites.sh needs, 1 GB more for Spark and azcopy; ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

build=$(mkdir -p "${BUILD_DIR:-build}/suites" && cd "${BUILD_DIR:-build}/suites" && pwd)
. ci/suites/clients.sh

spark_version=4.2.1
hadoop_of_spark=3.5.0

# Also downloads the packages of `spark-submit` while there is a network. It uses another home, so that
# it reads no file from the caller's Maven repository.
export SPARK_SUBMIT_OPTS=-Duser.home=$build/spark
spark_program() {
    python3 -m venv .
    bin/pip install --quiet --disable-pip-version-check "pyspark==$spark_version"
    echo 'print("ready")' >ready.py
    PATH=$PWD/bin:$PATH bin/spark-submit --packages "org.apache.hadoop:hadoop-azure:$hadoop_of_spark" ready.py
}

if [ "${1:-}" != --here ]; then
    once "$build/venv-clients" "$(cat "$rounds/clients.txt")" python_clients
    once "$build/venv-cli" "$azure_cli_version" azure_cli_program
    once "$build/debian" "rclone restic" debian_programs
    once "$build/azcopy" "$azcopy_version" azcopy_program
    once "$build/spark" "$spark_version" spark_program
    if unshare --map-root-user --net true 2>/dev/null; then
        exec unshare --map-root-user --net bash ci/first_minutes.sh --here "$@"
    fi
else
    shift
    ip link set lo up
fi

export PATH=$build/venv-cli/bin:$build/debian/usr/bin:$build/azcopy:$build/spark/bin:$PATH
export PATH=$build/venv-clients/bin:$PATH
SPARK_HOME=$(echo "$build"/spark/lib/python3*/site-packages/pyspark)
export SPARK_HOME PYSPARK_PYTHON=$build/spark/bin/python
export AZURE_CONFIG_DIR=$work/az AZURE_CORE_COLLECT_TELEMETRY=no AZURE_CORE_ONLY_SHOW_ERRORS=1
export AZCOPY_LOG_LOCATION=$work/azcopy AZCOPY_JOB_PLAN_LOCATION=$work/azcopy
export RCLONE_CONFIG=$work/rclone.conf RESTIC_CACHE_DIR=$work/restic
azcopy() { LD_LIBRARY_PATH=$azcopy_libraries command azcopy --skip-version-check "$@"; }
export -f azcopy
export azcopy_libraries

"$bin/smalt" --inMemoryPersistence >"$work/smalt.log" 2>&1 &
started+=("$!")
await "$work/smalt.log" DefaultEndpointsProtocol= "$!"
mkdir "$work/page"
"$build/venv-clients/bin/python" ci/suites/first_minutes.py docs/first-minutes.md "$work/page" "$@"
