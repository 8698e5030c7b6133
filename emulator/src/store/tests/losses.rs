//! One or two parts of a closed store are lost: an opened store returns no wrong data, and none of
//! the remaining data is garbage-collected.

use std::path::{Path, PathBuf};

use super::{config, dump, durable, get_payload, pattern, put, put_payload};
use crate::disk::{Disk, SystemDisk, copy_dir, read_small};
use crate::store::{OpenError, PayloadId, Store, StoreError};

/// All payloads have this length, so that a later one would fit in the place of an earlier one.
const PAYLOAD_BYTES: usize = 60_000;
const PAYLOADS: u64 = 14;

/// The parts of a store that can be lost, and how.
const LOSSES: [&str; 10] = [
    "format",
    "engine",
    "db",
    "most of db",
    "conf",
    "extents",
    "first segment",
    "last segment",
    "half of the last segment",
    "lock",
];

struct Whole {
    dir: tempfile::TempDir,
    records: Vec<(Vec<u8>, Vec<u8>)>,
    payloads: Vec<PayloadId>,
}

async fn whole() -> Whole {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    let mut payloads = Vec::new();
    for n in 0..PAYLOADS {
        payloads.push(
            put_payload(&store, &pattern(n, PAYLOAD_BYTES))
                .await
                .unwrap(),
        );
        let record = pattern(n, 3_000);
        put(&store, &[0x20, n as u8], &record).await.unwrap();
    }
    store.close().unwrap();
    let store = durable(dir.path());
    let records = dump(&store);
    store.close().unwrap();
    Whole {
        dir,
        records,
        payloads,
    }
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = SystemDisk
        .list(&dir.join("extents"))
        .unwrap()
        .into_iter()
        .map(|entry| dir.join("extents").join(entry.name))
        .collect();
    found.sort();
    found
}

fn cut(path: &Path, to_part: usize) {
    if let Some(bytes) = read_small(&SystemDisk, path).unwrap() {
        SystemDisk.remove(path).unwrap();
        let file = SystemDisk.open(path, true).unwrap();
        file.write_at(&bytes[..bytes.len() / to_part], 0).unwrap();
    }
}

/// Removes a file; it may be lost already together with another part.
fn remove(path: &Path) {
    match SystemDisk.remove(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        removed => removed.unwrap(),
    }
}

fn lose(dir: &Path, what: &str) {
    let (first, last) = (segments(dir).into_iter().next(), segments(dir).pop());
    match what {
        "engine" => SystemDisk.remove_dir(&dir.join("sled-1")).unwrap(),
        "extents" => SystemDisk.remove_dir(&dir.join("extents")).unwrap(),
        "most of db" => cut(&dir.join("sled-1/db"), 8),
        "half of the last segment" => last.iter().for_each(|path| cut(path, 2)),
        "first segment" => first.iter().for_each(|path| remove(path)),
        "last segment" => last.iter().for_each(|path| remove(path)),
        "db" | "conf" => remove(&dir.join("sled-1").join(what)),
        file => remove(&dir.join(file)),
    }
}

/// Returns the number of lost payloads. All others must have the bytes that were written.
fn lost(store: &Store, whole: &Whole) -> usize {
    let mut lost = 0;
    for (n, id) in (0..).zip(&whole.payloads) {
        match get_payload(store, *id) {
            Ok(bytes) => assert!(bytes == pattern(n, PAYLOAD_BYTES), "payload {n} is another"),
            Err(StoreError::Corrupt(_) | StoreError::Io(_)) => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    lost
}

async fn look(whole: &Whole, what: &[&str]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    copy_dir(&SystemDisk, whole.dir.path(), dir.path(), &|_| false).unwrap();
    what.iter().for_each(|what| lose(dir.path(), what));
    let before = segments(dir.path());
    let store = match Store::open(config(dir.path())) {
        Ok(store) => store,
        Err(error) => {
            let OpenError::Damaged { cause, .. } = &error else {
                panic!("{what:?}: {error}");
            };
            assert!(
                !what.contains(&"format") || cause.contains("`format`"),
                "{cause}"
            );
            assert!(error.to_string().contains("smalt salvage"), "{error}");
            assert_eq!(segments(dir.path()), before, "{what:?}");
            return false;
        }
    };
    assert!(dump(&store) == whole.records, "{what:?}: records differ");
    let gone = lost(&store, whole);
    // New payloads are never read in place of lost ones, and nothing is garbage-collected.
    for n in 0..PAYLOADS {
        put_payload(&store, &pattern(100 + n, PAYLOAD_BYTES))
            .await
            .unwrap();
    }
    assert_eq!(store.unexplained().is_some(), gone > 0, "{what:?}");
    store.maintain(100).unwrap();
    let after = segments(dir.path());
    assert!(before.iter().all(|path| after.contains(path)), "{what:?}");
    assert_eq!(lost(&store, whole), gone, "{what:?}");
    true
}

/// Every loss alone and every pair of losses: the store is refused, or serves the remaining data.
#[tokio::test]
async fn store_with_missing_parts_is_never_empty_and_never_wrong() {
    let whole = whole().await;
    assert!(segments(whole.dir.path()).len() > 2);
    let mut opened = Vec::new();
    for (n, first) in LOSSES.iter().enumerate() {
        for second in &LOSSES[n..] {
            if look(&whole, &[first, second]).await {
                opened.push((*first, *second));
            }
        }
    }
    let refused = ["format", "engine", "db", "most of db"];
    let is_refused = |(a, b): &(&str, &str)| refused.contains(a) || refused.contains(b);
    assert!(!opened.iter().any(is_refused), "{opened:?}");
    assert_eq!(opened.len(), 6 * 7 / 2, "{opened:?}");
}
