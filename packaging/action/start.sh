#!/usr/bin/env bash
# The step of action.yml: installs smalt, starts it, waits until it serves, and sets the outputs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

own=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml")
export SMALT_VERSION=${SMALT_VERSION:-$own}
folder=$RUNNER_TEMP/smalt
log=$folder/log
sh "$here/../install.sh" "$folder/bin"
echo "$folder/bin" >>"$GITHUB_PATH"

# The process outlives this step and ends with the job.
# shellcheck disable=SC2086 # one flag per word
nohup "$folder/bin/smalt" ${SMALT_FLAGS:-} >"$log" 2>&1 </dev/null &
pid=$!
for _ in $(seq 1 300); do
    connection=$(sed -n 's|^ *\(DefaultEndpointsProtocol=\)|\1|p' "$log")
    if [ -n "$connection" ]; then
        echo "AZURE_STORAGE_CONNECTION_STRING=$connection" >>"$GITHUB_ENV"
        printf '%s\n' "connection-string=$connection" "log=$log" "pid=$pid" >>"$GITHUB_OUTPUT"
        exit 0
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
done
echo "smalt did not start with: ${SMALT_FLAGS:-no flags}" >&2
cat "$log" >&2
exit 1
