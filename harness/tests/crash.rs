//! The crash tests of `cargo test`: kills, and every sync boundary of a workload. docs/crash.md
//! describes the longer runs.

use std::path::{Path, PathBuf};

use smalt_harness::crash::files;
use smalt_harness::crash::fixture::dump;
use smalt_harness::crash::images::scratch;
use smalt_harness::crash::kill::{End, Stage};
use smalt_harness::crash::kills::kills;
use smalt_harness::crash::mode::Mode;

/// Returns the program whose hidden command is the child.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_harness"))
}

/// A kill does not lose the page cache, so a file system in memory serves as well as a disk, and
/// the mode `fast` loses as little as the mode `durable`.
fn kills_lose_nothing(mode: Mode) {
    let dir = tempfile::tempdir_in(scratch()).unwrap();
    let all = kills(mode, program(), &dir.path().join("kills"), 1, 50, &|| ()).unwrap();
    assert_eq!(all.flaws, []);
    // The kills hit a store that was working.
    assert!(all.acknowledged > 1_000 && all.in_flight > 50, "{all:?}");
    assert!(all.payloads > 500 && all.messages > 500, "{all:?}");
    assert!(all.entities > 500, "{all:?}");
}

#[test]
fn fifty_kills_lose_nothing() {
    kills_lose_nothing(Mode::Durable);
}

#[test]
fn fifty_kills_in_the_mode_fast_lose_nothing() {
    kills_lose_nothing(Mode::Fast);
}

/// Whoever examines the store after a kill makes the containers that the child did not get to, in
/// the namespace that the next child expects.
#[test]
fn a_kill_before_the_first_operation_leaves_work_for_the_next_child() {
    let dir = tempfile::tempdir_in(scratch()).unwrap();
    let dir = dir.path().to_owned();
    let mut stage = Stage::new(Mode::Durable, program(), &dir, 1, 2);
    let early = stage.next_child().unwrap();
    let death = stage.die(&early, &[], End::KilledAfter(0)).unwrap();
    assert_eq!(death.flaws, []);
    let mut next = stage.next_child().unwrap();
    next.operations = Some(100);
    let death = stage.die(&next, &[], End::OfItself).unwrap();
    assert_eq!(death.flaws, []);
    assert!(death.told.acknowledged > 150, "{:?}", death.told);
}

/// Returns the stores written by every release, and the expected content of each.
fn stores() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/stores");
    let stores = files::dirs_in(&root).unwrap();
    assert!(!stores.is_empty());
    stores
}

/// Returns every file with its bytes.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for dir in files::dirs_in(dir).unwrap() {
        all.extend(contents(&dir));
    }
    for file in files::files_in(dir).unwrap() {
        let bytes = files::read(&file).unwrap();
        all.push((file, bytes));
    }
    all
}

#[tokio::test]
async fn stores_of_every_release_are_read() {
    for store in stores() {
        let expected = files::read(&store.with_extension("txt")).unwrap();
        let expected = String::from_utf8(expected).unwrap();
        assert!(expected.lines().count() > 100);
        assert_eq!(dump(&store).await.unwrap(), expected, "{}", store.display());
    }
}

/// A store in a newer format, which only a newer release can read, is rejected and not changed.
#[tokio::test]
async fn a_store_of_a_newer_release_is_left_as_it_is() {
    let store = stores().pop().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("store");
    files::copy_dir(&store, &copy).unwrap();
    let format = String::from_utf8(files::read(&copy.join("format")).unwrap()).unwrap();
    let newer = format.replace("format 2\n", "format 3\n");
    assert_ne!(newer, format);
    files::write(&copy.join("format"), newer.as_bytes()).unwrap();
    let before = contents(&copy);
    let opened = smalt::Emulator::builder().durable(&copy).open();
    let text = opened.unwrap_err().to_string();
    assert!(
        text.contains("has format 3, this release reads up to 2"),
        "{text}"
    );
    assert_eq!(contents(&copy), before);
}

#[cfg(target_os = "linux")]
mod under_the_shim {
    use std::path::PathBuf;
    use std::process::Command;

    use smalt_harness::crash::errors::errors;
    use smalt_harness::crash::images::{Plan, record, scratch, sweep};

    use super::program;

    /// Builds the `LD_PRELOAD` library, which cargo does not build by itself, since nothing links
    /// to it.
    fn build_shim() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--offline", "-p", "smalt-shim"]);
        if program().parent().unwrap().ends_with("release") {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success());
    }

    /// Every kind of failing call, each at several calls.
    #[test]
    fn failing_calls_are_answered_and_nothing_is_lost() {
        build_shim();
        let dir = tempfile::tempdir_in(scratch()).unwrap();
        let all = errors(program(), &dir.path().join("errors"), 1, &|| ()).unwrap();
        for errors in &all {
            assert_eq!(errors.flaws, [], "{}", errors.case);
            assert!(errors.acknowledged > 0, "{errors:?}");
        }
        // Only a failure within the microseconds of a batch may make reads fail too, which is rare.
        let cut_off: u64 = all.iter().map(|errors| errors.cut_off).sum();
        let read_only: u64 = all.iter().map(|errors| errors.read_only).sum();
        assert!(cut_off * 5 < read_only, "{cut_off} of {read_only} cut off");
        // Lost writes must fail operations; short writes must not.
        for (call, is_refused) in [("enospc", true), ("sync of *: eio", true), ("short", false)] {
            for errors in all.iter().filter(|errors| errors.case.contains(call)) {
                assert_eq!(errors.refused > 0, is_refused, "{errors:?}");
            }
        }
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
        // The same with one kind of sync omitted: each omission is detected.
        for forgotten in [
            "log.0",
            "log.1",
            "db",
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
