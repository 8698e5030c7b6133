#!/usr/bin/env bash
# Tests the helpers for other languages: runs their own tests, and the code of
# docs/testing-in-other-languages.md, with the packages as users install them.
#
#   ci/testkit.sh              all of them
#   ci/testkit.sh python go    some of: python node go java
#
# Needs: ci/build.sh, the package registries; go, and java with maven.
# shellcheck disable=SC2154 # what the facts and service.sh set
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt
eval "$(python3 packaging/facts.py)"

root=$PWD
page=$root/docs/testing-in-other-languages.md
build=$(mkdir -p "${BUILD_DIR:-build}/testkit" && cd "${BUILD_DIR:-build}/testkit" && pwd)
bin=$(cd "$bin" && pwd)

# code NAME: prints the block of the page that is marked `<!-- run: NAME -->`.
code() {
    awk -v mark="<!-- run: $1 -->" '
        $0 == mark { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' "$page"
}

test_python() {
    local venv=$build/venv tests=$work/python
    if [ ! -e "$venv/installed" ]; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check 'hatchling>=1.27,<2' 'mypy>=1.18,<2' \
            'pytest>=8,<10' 'pytest-xdist>=3,<4' 'azure-storage-blob>=12.24,<13' 'azure-storage-queue>=12.12,<13'
        touch "$venv/installed"
    fi
    (cd packaging/pypi && "$venv/bin/hatchling" build --target wheel --directory "$work/wheel" >/dev/null)
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --force-reinstall "$work"/wheel/*.whl
    mkdir -p "$tests"
    cp packaging/pypi/tests/*.py "$tests"
    code python >"$tests/test_page.py"
    (cd "$tests" && "$venv/bin/python" -m pytest -q -n 2 -p no:cacheprovider)
    "$venv/bin/mypy" --strict --no-error-summary --cache-dir "$work/mypy" packaging/pypi/smalt
}

test_node() {
    local tests=$build/node
    mkdir -p "$tests"
    if [ ! -e "$tests/installed" ]; then
        echo '{"private": true, "type": "module"}' >"$tests/package.json"
        npm install --silent --prefix "$tests" --before "$npm_before" '@azure/storage-blob@12' vitest@3
        touch "$tests/installed"
    fi
    python3 packaging/npm.py
    npm install --silent --no-save --prefix "$tests" "$out"/npm/*.tgz
    cp packaging/npm/tests/*.mjs "$tests"
    code vitest >"$tests/page.test.js"
    (cd "$tests" && node --test node.test.mjs && npx vitest run --reporter=dot page.test.js)
}

test_go() {
    if ! command -v go >/dev/null; then
        echo "go: NOT RUN, go is not installed"
        return
    fi
    local tests=$build/go
    mkdir -p "$tests"
    code go >"$tests/smalt_test.go"
    (
        cd "$tests"
        [ -e go.mod ] || go mod init smalt >/dev/null 2>&1
        go mod tidy >/dev/null 2>&1
        PATH=$bin:$PATH go test -count=1 ./...
    )
}

test_java() {
    if ! command -v mvn >/dev/null; then
        echo "java: NOT RUN, maven is not installed"
        return
    fi
    local tests=$build/java
    mkdir -p "$tests/src/test/java"
    code java >"$tests/src/test/java/SmaltTest.java"
    cat >"$tests/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>smalt</groupId>
  <artifactId>testkit</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>com.azure</groupId>
      <artifactId>azure-storage-blob</artifactId>
      <version>12.32.0</version>
    </dependency>
    <dependency>
      <groupId>org.junit.jupiter</groupId>
      <artifactId>junit-jupiter</artifactId>
      <version>5.11.4</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId>
        <version>3.5.2</version>
      </plugin>
    </plugins>
  </build>
</project>
XML
    (cd "$tests" && PATH=$bin:$PATH mvn --batch-mode --quiet test)
    echo "java: $(sed -n 's/.*<testsuite [^>]*tests="\([0-9]*\)".*/\1/p' "$tests"/target/surefire-reports/*.xml) passed"
}

for kind in ${*:-python node go java}; do
    "test_$kind"
done
