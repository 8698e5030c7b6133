//! Damaged stores: no response is ever wrong, `smalt check` finds the damage, and `smalt salvage`
//! saves the readable data.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "damage/salvage.rs"]
mod salvage;
#[path = "damage/world.rs"]
mod world;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use smalt::disk::{Disk, SystemDisk};
use smalt::store::OpenError;

use self::world::{files, filled, open, read, report, write};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// An intact store has no findings, and the check does not change it.
#[tokio::test]
async fn intact_store_has_no_findings_and_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let before = files(dir.path());
    let report = report(dir.path()).unwrap();
    assert!(report.whole && report.notes.is_empty(), "{report}");
    assert!(
        report.records > 30 && report.payloads >= 12 && report.bytes > 300_000,
        "{report}"
    );
    assert!(files(dir.path()) == before);
}

/// Refuses to check a store that a server has open, and a directory without a store.
#[tokio::test]
async fn check_explains_why_it_cannot_run() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = report(dir.path()).unwrap_err().to_string();
    assert!(nothing.contains("there is no store"), "{nothing}");
    let emulator = open(dir.path()).unwrap();
    let busy = report(dir.path()).unwrap_err();
    assert!(matches!(busy, OpenError::Locked { .. }), "{busy}");
    emulator.close().unwrap();
    assert!(report(dir.path()).unwrap().whole);
}

/// Each file that can be lost is reported by name.
#[tokio::test]
async fn missing_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let whole = files(dir.path());
    for (lost, named) in [
        ("format", "`format` is missing"),
        ("sled-1/db", "`sled-1/db` is missing"),
        ("extents/00000001.seg", "segment 1 is missing"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut files = whole.clone();
        files.remove(&PathBuf::from(lost)).unwrap();
        write(dir.path(), &files);
        let found = report(dir.path()).unwrap();
        assert!(
            !found.whole && found.to_string().contains(named),
            "{lost}: {found}"
        );
    }
}

/// A kind of damage to a file.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Flip(u8),
    Zero,
    Cut,
}

/// Writes the store with damage at a place. Returns whether anything changed.
fn strike(dir: &std::path::Path, whole: &Files, (file, place): (usize, f64), blow: Blow) -> bool {
    let mut files = whole.clone();
    let Some((_, bytes)) = files.iter_mut().nth(file) else {
        return false;
    };
    let before = bytes.clone();
    // Only non-zero bytes are damaged.
    let told: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let at = match told.len() {
        0 => return false,
        len => told[((len as f64 * place) as usize).min(len - 1)],
    };
    match blow {
        Blow::Flip(bit) => bytes[at] ^= 1 << bit,
        Blow::Zero => bytes[at..]
            .iter_mut()
            .take(4_096)
            .for_each(|byte| *byte = 0),
        Blow::Cut => bytes.truncate(at),
    }
    let changed = *bytes != before;
    write(dir, &files);
    changed
}

fn blows() -> impl Strategy<Value = Blow> {
    prop_oneof![
        6 => (0..8_u8).prop_map(Blow::Flip),
        1 => Just(Blow::Zero),
        1 => Just(Blow::Cut),
    ]
}

/// After damage to any file, the store is refused with its damage named, or it returns its data, or
/// 500 for data that it cannot read. `smalt check` finds the damage that the responses show.
#[test]
fn damaged_byte_never_returns_wrong_bytes() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (whole, good) = runtime.block_on(async {
        filled(dir.path()).await;
        let emulator = open(dir.path()).unwrap();
        let good = read(&emulator).await;
        emulator.close().unwrap();
        (files(dir.path()), good)
    });
    assert!(
        good.values()
            .all(|(status, body)| *status == 200 && body.is_some())
    );
    let config = Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    };
    let places = (0..whole.len(), 0.0..1.0_f64);
    let (refused, failed) = (Cell::new(0), Cell::new(0));
    let outcome = TestRunner::new(config).run(&(places, blows()), |(place, blow)| {
        let dir = tempfile::tempdir().unwrap();
        if !strike(dir.path(), &whole, place, blow) {
            return Ok(());
        }
        let found = report(dir.path()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let emulator = match open(dir.path()) {
            Ok(emulator) => emulator,
            Err(error) => {
                let is_told = matches!(error, OpenError::Damaged { .. } | OpenError::Newer { .. });
                prop_assert!(is_told, "{error}");
                prop_assert!(!found.whole, "{error}: {found}");
                refused.set(refused.get() + 1);
                return Ok(());
            }
        };
        let answers = runtime.block_on(read(&emulator));
        let mut differs = false;
        for (path, (status, body)) in &answers {
            let is_same = (*status, body) == (good[path].0, &good[path].1);
            let is_error = *status == 500 || (*status == 200 && body.is_none());
            prop_assert!(is_same || is_error, "{path}: {status}");
            differs |= !is_same;
        }
        failed.set(failed.get() + usize::from(differs));
        prop_assert!(!differs || !found.whole, "{found}");
        Ok(())
    });
    outcome.unwrap();
    let seen = (refused.get(), failed.get());
    assert!(seen.0 > 3 && seen.1 > 3, "{seen:?} were refused and failed");
}

/// A newer release's store is reported as newer, not as damaged.
#[tokio::test]
async fn newer_store_is_reported_as_newer() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let format = dir.path().join("format");
    SystemDisk.remove(&format).unwrap();
    let newer = b"smalt store\nformat 3\nengine other\n";
    let file = SystemDisk.open(&format, true).unwrap();
    file.write_at(newer, 0).unwrap();
    let found = report(dir.path()).unwrap().to_string();
    assert!(found.contains("this release reads up to 2"), "{found}");
}
