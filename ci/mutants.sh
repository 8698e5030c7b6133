#!/usr/bin/env bash
# Tests mutants of the pure rules in a fraction of a second each: copies the rules into a small crate with
# thin stand-ins for their surroundings, and builds many mutants at once. docs/mutants.md has the
# figures and the known survivors.
#
#   ci/mutants.sh emulator                         emulator/src/rules
#   ci/mutants.sh workers                          listener/src/rules; the sweeper's decide, plan and ttl
#   ci/mutants.sh emulator rules/lease rules/tags  only these modules
#   ci/mutants.sh operations                       checks and applies in emulator/src/ops: the whole
#                                                  workspace, all mutants in one build
#   ci/mutants.sh operations blob/page             only those of this folder
#   ci/mutants.sh auth, ci/mutants.sh store        every function of emulator/src/auth, or of its store
#   ci/mutants.sh store maintain extents           only those of these files and folders
#   MUTANTS_DIR=DIR                                keep the crate and its build there
#
# Tests of operations or of a whole worker may still catch what this reports as missed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
part=$1
shift
crate=${MUTANTS_DIR:-$(mktemp -d)}/$part

case $part in
operations) folder=ops functions="(^|::)(check|apply)" ;;
auth | store) folder=$part functions=. ;;
*) folder= ;;
esac
if [ -n "$folder" ]; then
    mkdir -p "$crate"
    git ls-files -z | xargs -0 cp --parents -t "$crate"
    # Without the configuration, whose files come in addition to these.
    files=(--no-config -e '**/kernels.rs' -e '**/kernels/**')
    for place in "${@:-*}"; do
        files+=(-f "emulator/src/$folder/$place.rs" -f "emulator/src/$folder/$place/**/*.rs")
    done
    exec python3 ci/mutants_switched.py "$crate" "$functions" "${files[@]}"
fi

rm -rf "${crate:?}"/{src,sleeve}
mkdir -p "$crate/src"
cp Cargo.lock "$crate/"

cat >"$crate/Cargo.toml" <<TOML
[workspace]
[package]
name = "mutants"
version = "0.0.0"
edition = "2024"
[dependencies]
smalt-protocol = { path = "$root/protocol" }
base64 = "0.22"
bytes = "1"
http = "1"
rmp-serde = "1"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
sha2 = "0.11"
thiserror = "2"
uuid = { version = "1.23", features = ["serde"] }
[dev-dependencies]
proptest = "1"
[profile.dev]
debug = 0
[profile.dev.package."*"]
opt-level = 1
TOML

# lib MODULE...: the crate's root.
lib() {
    echo '#![allow(dead_code, unused)]'
    printf 'pub mod %s;\n' "$@"
}

# item FILE START: a function or type of a source, from the line that starts so.
item() { sed -n "/^$2/,/^}/p" "$1"; }

emulator() {
    local from=emulator/src
    mkdir -p "$crate/src/ops/blob"
    cp -r $from/{rules,rules.rs,records,records.rs,keys,keys.rs} "$crate/src/"
    # Unmutated code needs no tests, some of which would need a whole store.
    sed -i '/^#\[cfg(test)\]/,$d' "$crate"/src/{keys,records}.rs "$crate"/src/records/*.rs
    lib faults keys ops records rules store >"$crate/src/lib.rs"
    echo 'pub mod blob;' >"$crate/src/ops.rs"
    echo 'pub mod copied;' >"$crate/src/ops/blob.rs"
    {
        echo 'use crate::records::{CopyRecord, CopyStatus}; use smalt_protocol::Timestamp;'
        item $from/ops/blob/copied.rs 'pub fn finished'
    } >"$crate/src/ops/blob/copied.rs"
    {
        echo '#[derive(Clone, Debug, Default, PartialEq, Eq)]'
        item $from/faults.rs 'pub struct Hold' | grep -v serde
    } >"$crate/src/faults.rs"
    mkdir -p "$crate/src/store"
    cp $from/store/{error,view}.rs "$crate/src/store/"
    cat >"$crate/src/store.rs" <<'RUST'
mod error;
mod extents {
    use std::sync::Arc;
    pub struct Segment;
    impl Segment {
        pub fn number(&self) -> u64 { 0 }
    }
    pub struct Reservation(Arc<Segment>);
    impl Reservation {
        pub fn segment(&self) -> &Arc<Segment> { &self.0 }
    }
}
mod view;
pub use error::*;
pub use view::*;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct PayloadId(pub u64);
RUST
    mapfile -t modules < <(sed -n 's|^pub mod \(.*\);|rules/\1|p' $from/rules.rs)
}

workers() {
    cp -r listener/src/rules "$crate/src/"
    cp sweeper/src/{decide,decide_tests,plan,plan_tests,ttl,span,glob,destination,outcome}.rs "$crate/src/"
    lib decide destination glob handler outcome plan rules span ttl >"$crate/src/lib.rs"
    {
        echo 'use std::time::Duration;'
        echo '#[derive(Clone, Debug, PartialEq, Eq)]'
        item listener/src/handler/mod.rs 'pub enum Verdict'
        item listener/src/handler/mod.rs 'impl Verdict'
    } >"$crate/src/handler.rs"
    mkdir -p "$crate/sleeve/src"
    cp -r sleeve/src/{port,port.rs,error.rs,redact.rs} "$crate/sleeve/src/"
    lib port error redact >"$crate/sleeve/src/lib.rs"
    sed -e '/^\[workspace\]/d' -e 's/^name = .*/name = "smalt-sleeve"/' \
        -e 's/^bytes = .*/&\nasync-trait = "0.1"/' -e '/^\[dev-dep/,$d' "$crate/Cargo.toml" \
        >"$crate/sleeve/Cargo.toml"
    sed -i 's|^base64 = .*|&\nsmalt-sleeve = { path = "sleeve" }|' "$crate/Cargo.toml"
    mapfile -t modules < <(sed -n 's|^pub mod \(.*\);|rules/\1|p' listener/src/rules/mod.rs)
    modules+=(decide plan ttl)
}

"$part"
# A copy is at another place than its original.
find "$crate/src" -name '*.rs' -exec sed -i 's/pub(super)/pub(crate)/' {} +
# Or only these, such as `rules/lease`.
[ $# -eq 0 ] || modules=("$@")
CARGO_TERM_COLOR=never python3 ci/mutants.py "$crate" "${modules[@]}"
