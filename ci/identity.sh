#!/usr/bin/env bash
# Signs in to smalt with Microsoft's azure-identity for Python and JavaScript, unpatched:
# applications, workloads and managed identities, with roles, over HTTPS.
#
# Needs: python3, node and npm; ci/build.sh (or SMALT_BIN_DIR).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/service.sh
need smalt

build=$(mkdir -p "${BUILD_DIR:-build}/suites" && cd "${BUILD_DIR:-build}/suites" && pwd)
. ci/suites/clients.sh

identity_packages() {
    python3 -m venv .
    bin/pip install --quiet --disable-pip-version-check -r "$rounds/identity.txt"
}

once "$build/venv-identity" "$(cat "$rounds/identity.txt")" identity_packages
start_smalt identity --devCert "$work/cert" --oauth verified
round "azure-identity" "$build/venv-identity/bin/python" "$rounds/identity.py" "$identity_blob" \
    "$identity_queue" "$identity_table" "$identity_control" "$account" "$work/cert/ca.pem"
once "$build/javascript" "$javascript_packages" javascript_clients
cp "$rounds"/{identity,rounds}.mjs "$build/javascript"
round "azure-identity for JavaScript" env NODE_EXTRA_CA_CERTS="$work/cert/ca.pem" \
    node "$build/javascript/identity.mjs" "$identity_blob" "$identity_control" "$account"
exit "$failures"
