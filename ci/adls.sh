#!/usr/bin/env bash
# Runs programs that people use with Data Lake Storage against smalt with hierarchical accounts:
# Microsoft's libraries for Python, JavaScript and Go, adlfs, Arrow, Delta Lake, DuckDB, pandas, and
# Hadoop's ABFS. They come from package registries into build/suites.
#
#   ci/adls.sh                  all of them
#   ci/adls.sh python go        some of them: python javascript go hadoop
#
# Needs: python3, node and npm, go, java 17 and maven; ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

build=$(mkdir -p "${BUILD_DIR:-build}/suites" && cd "${BUILD_DIR:-build}/suites" && pwd)
. ci/suites/clients.sh

lake() { start_smalt "$1" --hierarchicalNamespace --dfsPort 0; }

lake_python() {
    once "$build/venv-clients" "$(cat "$rounds/clients.txt")" python_clients
    lake python
    round "Python on a hierarchical account" "$build/venv-clients/bin/python" "$rounds/lake.py" \
        "$python_blob" "$python_queue" "$python_table" "$account" "$key"
}

lake_packages='@azure/storage-blob@12.32.0 @azure/storage-file-datalake@12.29.0'

lake_javascript() {
    # shellcheck disable=SC2086 # one package each
    once "$build/lake-javascript" "$lake_packages" \
        npm install --no-audit --no-fund --loglevel error --prefix . $lake_packages
    cp "$rounds/lake.mjs" "$build/lake-javascript"
    lake javascript
    round "JavaScript on a hierarchical account" node "$build/lake-javascript/lake.mjs" \
        "$javascript_blob" "$account" "$key"
}

go_lake() {
    cp "$rounds/lake.mod" go.mod
    cp "$rounds/lake.go" main.go
    go mod tidy
    go build -o lake .
}

lake_go() {
    once "$build/lake-go" "$(cat "$rounds/lake.mod" "$rounds/lake.go")" go_lake
    lake go
    round "Go on a hierarchical account" "$build/lake-go/lake" "$go_blob" "$account" "$key"
}

lake_hadoop() {
    once "$build/hadoop" "$(cat "$rounds/hadoop.pom.xml" "$rounds/Hadoop.java")" \
        java_program hadoop hadoop.pom.xml Hadoop.java
    lake hadoop
    round "Hadoop on a hierarchical account" java -Dhttp.proxyHost="${hadoop_blob%:*}" \
        -Dhttp.proxyPort="${hadoop_blob##*:}" -Dhttp.nonProxyHosts= \
        -cp "$build/hadoop/classes:$build/hadoop/lib/*" Hadoop "$account" "$key" "$hadoop_blob" hierarchical
}

for suite in ${*:-python javascript go hadoop}; do
    "lake_$suite"
done
exit "$failures"
