#!/usr/bin/env bash
# Runs programs that people use with Data Lake Storage against smalt with hierarchical accounts:
# Microsoft's libraries for Python, JavaScript, Go and Java, azcopy, adlfs, Arrow, Delta Lake, DuckDB,
# pandas, and Hadoop's ABFS. They come from package registries into build/suites.
#
#   ci/adls.sh                  all of them
#   ci/adls.sh python go        some of them: python javascript go java azcopy hadoop contract
#
# Needs: python3, node and npm, go, java 17 and maven, apt; ci/build.sh (or SMALT_BIN_DIR).
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
    cp "$rounds"/{lake,rounds}.mjs "$build/lake-javascript"
    lake javascript
    round "JavaScript on a hierarchical account" node "$build/lake-javascript/lake.mjs" \
        "$javascript_blob" "$account" "$key"
}

lake_go() {
    go_program lake
    lake go
    round "Go on a hierarchical account" "$build/go-lake/lake" "$go_blob" "$account" "$key"
}

lake_java() {
    java_program lake-java lake.pom.xml Lake
    lake java
    round "Java on a hierarchical account" \
        java -cp "$build/lake-java/classes:$build/lake-java/lib/*" Lake "$java_connection"
}

lake_azcopy() {
    once "$build/azcopy" "$azcopy_version" azcopy_program
    lake azcopy
    round "azcopy on a hierarchical account" env PATH="$build/azcopy:$PATH" \
        LD_LIBRARY_PATH="$azcopy_libraries" python3 "$rounds/azcopy.py" \
        "http://$azcopy_blob" "$account" "$key" "$work/files"
}

lake_hadoop() {
    java_program hadoop hadoop.pom.xml Hadoop
    lake hadoop
    round "Hadoop on a hierarchical account" java -Dhttp.proxyHost="${hadoop_blob%:*}" \
        -Dhttp.proxyPort="${hadoop_blob##*:}" -Dhttp.nonProxyHosts= \
        -cp "$build/hadoop/classes:$build/hadoop/lib/*" Hadoop "$account" "$key" "$hadoop_blob" hierarchical
}

contract_packages() {
    cp "$rounds/contract.pom.xml" pom.xml
    mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
}

# contract_settings CLASSPATH_DIRECTORY: writes the file that the tests read the account from.
contract_settings() {
    local host=$account.dfs.core.windows.net name
    {
        echo '<configuration>'
        for name in "fs.azure.account.key.$host=$key" "fs.azure.abfs.account.name=$host" \
            "fs.azure.account.key.$account.blob.core.windows.net=$key" \
            "fs.contract.test.fs.abfs=abfs://contract@$host" \
            "fs.contract.test.fs.abfss=abfss://contract@$host" \
            fs.azure.always.use.https=false fs.azure.test.namespace.enabled=true \
            fs.azure.account.auth.type=SharedKey; do
            echo "<property><name>${name%%=*}</name><value>${name#*=}</value></property>"
        done
        echo '</configuration>'
    } >"$1/azure-auth-keys.xml"
}

# contract_tests NAME CLASSES EXPECTED...: runs classes of Hadoop's tests of ABFS, with production's
# host names, in a directory that they may remove.
contract_tests() {
    local name=$1 classes=$2 log="$build/$1.log" run failed
    shift 2
    mkdir -p "$work/data"
    # shellcheck disable=SC2086 # one class each
    java --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.lang.reflect=ALL-UNNAMED \
        -Dtest.build.data="$work/data" -Dhadoop.tmp.dir="$work/data" -Dhttp.nonProxyHosts= \
        -Dhttp.proxyHost="${contract_blob%:*}" -Dhttp.proxyPort="${contract_blob##*:}" \
        -cp "$work/contract:$build/contract/lib/*" org.junit.runner.JUnitCore \
        $(printf "org.apache.hadoop.fs.azurebfs.%s " $classes) >"$log" 2>&1 || true
    grep -E '^[0-9]+\) ' "$log" || true
    run=$(sed -n 's/^OK (\([0-9]*\) tests*).*/\1/p; s/^Tests run: \([0-9]*\),.*/\1/p' "$log")
    failed=$(sed -n 's/^Tests run: .*Failures: \([0-9]*\).*/\1/p' "$log")
    report "$name" "$((${run:-0} - ${failed:-0}))" "${failed:-0}" "$@"
}

# Hadoop's contract tests of file systems, and the tests of ABFS that work with a key.
lake_contract() {
    once "$build/contract" "$(cat "$rounds/contract.pom.xml")" contract_packages
    mkdir -p "$work/contract"
    contract_settings "$work/contract"
    lake contract
    local contracts files
    contracts=$(printf 'contract.ITestAbfsFileSystemContract%s ' Append Create Delete GetFileStatus \
        Mkdir Open Rename Seek RootDirectory Concat Etag SetTimes)
    contracts+="contract.ITestAbfsContractUnbuffer contract.ITestAbfsContractBulkDelete"
    contract_tests "Hadoop's contract tests of ABFS" "$contracts"
    files=$(printf 'ITestAzureBlobFileSystem%s ' Rename RenameUnicode Delete ListStatus Append Create \
        FileStatus MkDir Lease Attributes Flush InitAndCreate Copy CheckAccess Permission RandomRead \
        MainOperation)
    files+="contract.ITestAzureBlobFileSystemBasics ITestAzureBlobFilesystemAcl"
    files+=" ITestAbfsListStatusRemoteIterator ITestFileSystemProperties"
    # DIFFERENCES.md says why.
    contract_tests "Hadoop's tests of ABFS" "$files" \
        testGetClientTransactionIdAfterRename testGetClientTransactionIdAfterCreate \
        testClientTransactionIdAfterTwoCreateCalls testCreateAppendBlobOverDfsEndpointAppendOverBlob \
        testCreateOverDfsAppendOverBlob testMultipleAppendsQualifyForSwitch testGetSetXAttrOnRoot
}

for suite in ${*:-python javascript go java azcopy hadoop contract}; do
    "lake_$suite"
done
exit "$failures"
