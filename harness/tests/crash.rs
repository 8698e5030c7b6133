//! The crash tests of `cargo test`: kills, and every sync boundary of a workload. docs/crash.md
//! says what the longer runs are.

use std::path::Path;

use smalt_harness::crash::kills::kills;

/// The program whose hidden command is the child.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_harness"))
}

#[test]
fn fifty_kills_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let all = kills(program(), &dir.path().join("kills"), 1, 50, &|| ()).unwrap();
    assert_eq!(all.flaws, []);
    // It was work that was killed.
    assert!(all.acknowledged > 1_000 && all.in_flight > 50, "{all:?}");
    assert!(all.payloads > 500 && all.messages > 500, "{all:?}");
}
