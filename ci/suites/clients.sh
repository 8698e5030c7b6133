# Rounds of other people's programs and libraries, for ci/suites.sh, ci/adls.sh, ci/identity.sh and
# ci/first_minutes.sh: sourced, not run. Each installs its packages into build/suites once, in pinned versions, starts
# its own server, and reports.
# shellcheck shell=bash disable=SC2154 # build, account, key and work are the sourcing script's

rounds=$PWD/ci/suites

failures=0

# report NAME PASSED FAILED EXPECTED...: fails for failures that DIFFERENCES.md does not explain.
report() {
    local name=$1 passed=$2 failed=$3
    shift 3
    echo "$name: $passed passed, $failed failed, $# of them expected"
    if [ "$passed" -eq 0 ] || [ "$failed" -gt $# ]; then
        failures=$((failures + 1))
    fi
}

# count WORD LOG: the number before the word in the last line that has it.
count() {
    sed -n "s/.*[^0-9]\([0-9][0-9]*\) $1.*/\1/p; s/^\([0-9][0-9]*\) $1.*/\1/p" "$2" | tail -n 1 |
        grep . || echo 0
}

# round NAME COMMAND...: runs a program that prints `FAILED ...` and `N passed, N failed`.
round() {
    local name=$1 log=$build/$1.log
    shift
    "$@" >"$log" 2>&1 || true
    grep -E '^FAILED' "$log" || true
    report "$name" "$(count passed "$log")" "$(count failed "$log")"
}

# once DIRECTORY MARK COMMAND...: runs a command in a directory, and again only when the mark's text,
# which names versions, changes.
once() {
    local directory=$1 mark=$2
    shift 2
    mkdir -p "$directory"
    if [ "$(cat "$directory/installed" 2>/dev/null)" != "$mark" ]; then
        (cd "$directory" && "$@")
        echo "$mark" >"$directory/installed"
    fi
}

azure_cli_version=2.91.0

azure_cli_program() {
    python3 -m venv .
    bin/pip install --quiet --disable-pip-version-check "azure-cli==$azure_cli_version"
}

python_clients() {
    python3 -m venv .
    bin/pip install --quiet --disable-pip-version-check -r "$rounds/clients.txt"
}

# Delta Lake, Polars, obstore, OpenDAL, Arrow, DuckDB, pandas, kombu, Celery, django-storages,
# MLflow, the checkpoints of Event Hubs, cloudpathlib.
suite_clients() {
    once "$build/venv-clients" "$(cat "$rounds/clients.txt")" python_clients
    start_smalt clients
    round "Python clients" "$build/venv-clients/bin/python" "$rounds/clients.py" \
        "$clients_blob" "$clients_queue" "$clients_table" "$account" "$key"
}

javascript_packages='@azure/data-tables@13.3.2 @azure/identity@4.13.1 @azure/storage-blob@12.32.0
    @azure/storage-queue@12.30.0 unstorage@1.17.6'

# The program is where node finds its packages.
javascript_clients() {
    # shellcheck disable=SC2086 # one package each
    npm install --no-audit --no-fund --loglevel error --prefix . $javascript_packages
}

suite_javascript() {
    once "$build/javascript" "$javascript_packages" javascript_clients
    cp "$rounds"/{clients,rounds}.mjs "$build/javascript"
    start_smalt javascript
    round "JavaScript SDKs" node "$build/javascript/clients.mjs" "$javascript_connection"
}

# go_program NAME: builds NAME.go with rounds.go in $build/go-NAME, as NAME.
go_program() {
    once "$build/go-$1" "$(cat "$rounds/$1.mod" "$rounds/$1.go" "$rounds/rounds.go")" go_build "$1"
}

go_build() {
    cp "$rounds/$1.mod" go.mod
    cp "$rounds/$1.go" main.go
    cp "$rounds/rounds.go" .
    go mod tidy
    go build -o "$1" .
}

suite_go() {
    go_program clients
    start_smalt go
    round "Go SDKs" "$build/go-clients/clients" "$go_connection"
}

# java_program DIRECTORY POM CLASS: builds CLASS.java with Rounds.java in $build/DIRECTORY.
java_program() {
    once "$build/$1" "$(cat "$rounds"/{"$2",Rounds.java,"$3.java"})" java_build "$2" "$3"
}

java_build() {
    mvn --quiet --batch-mode --file "$rounds/$1" dependency:copy-dependencies \
        -DoutputDirectory="$PWD/lib"
    javac -d classes -cp 'lib/*' "$rounds"/{Rounds,"$2"}.java
}

suite_java() {
    java_program java clients.pom.xml Clients
    start_smalt java
    round "Java SDKs" java -cp "$build/java/classes:$build/java/lib/*" Clients "$java_connection"
}

suite_hadoop() {
    java_program hadoop hadoop.pom.xml Hadoop
    start_smalt hadoop
    round "Hadoop" java -Dhttp.proxyHost="${hadoop_blob%:*}" -Dhttp.proxyPort="${hadoop_blob##*:}" \
        -Dhttp.nonProxyHosts= -cp "$build/hadoop/classes:$build/hadoop/lib/*" \
        Hadoop "$account" "$key" "$hadoop_blob"
}

azcopy_version=10.32.2
azcopy_libraries=$build/azcopy/usr/lib/x86_64-linux-gnu:$build/azcopy/lib/x86_64-linux-gnu

azcopy_program() {
    npm install --no-audit --no-fund --loglevel error --prefix . \
        "@azure-tools/azcopy-linux@$azcopy_version"
    ln -sf node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64 azcopy
    chmod +x azcopy
    # It links to the library of a desktop's keyring.
    apt-get download libsecret-1-0 libglib2.0-0 libgcrypt20 libgpg-error0 libpcre2-8-0 libffi8
    local package
    for package in ./*.deb; do
        dpkg-deb --extract "$package" .
    done
}

debian_programs() {
    apt-get download rclone restic
    local package
    for package in ./*.deb; do
        dpkg-deb --extract "$package" .
    done
}

# rclone, and restic whose repository rclone keeps in a container.
suite_backup() {
    once "$build/debian" "rclone restic" debian_programs
    start_smalt backup
    round "rclone and restic" env PATH="$build/debian/usr/bin:$PATH" \
        python3 "$rounds/backup.py" "http://$backup_blob" "$account" "$key" "$work/backup"
}
