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

#[cfg(target_os = "linux")]
mod under_the_shim {
    use std::path::PathBuf;
    use std::process::Command;

    use smalt_harness::crash::images::{Plan, record, scratch, sweep};

    use super::program;

    /// Cargo does not build a library for `LD_PRELOAD` by itself, since nothing links to it.
    fn build_shim() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--offline", "-p", "smalt-shim"]);
        if program().parent().unwrap().ends_with("release") {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success());
    }

    #[test]
    fn every_sync_boundary_is_survived() {
        build_shim();
        let dir = tempfile::tempdir_in(scratch()).unwrap();
        let plan = Plan {
            seed: 1,
            operations: 40,
            by_chance: 1,
            every: 1,
            forgotten: None,
        };
        let recorded = record(program(), dir.path(), &plan).unwrap();
        let all = sweep(&recorded, &PathBuf::from(dir.path()), &plan, &|| ()).unwrap();
        for flaw in all.flaws.iter().take(20) {
            println!("{flaw:?}");
        }
        println!(
            "{} boundaries, {} images, {} recovered",
            all.boundaries, all.images, all.recovered
        );
        assert_eq!(all.flaws.len(), 0);
        assert!(all.boundaries > 40 && all.payloads > 100, "{all:?}");
        // The same with one kind of sync left out: each is missed.
        for forgotten in [
            "db",
            "conf",
            "extents",
            "00000001.seg",
            "sled-1",
            "store",
            "",
        ] {
            let plan = Plan {
                forgotten: Some(forgotten),
                every: 16,
                by_chance: 0,
                ..plan
            };
            let all = sweep(&recorded, dir.path(), &plan, &|| ()).unwrap();
            assert!(!all.flaws.is_empty(), "{forgotten}: {all:?}");
        }
    }
}
