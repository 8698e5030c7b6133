//! The commit log: what a reopened store finds in it, whole, cut off or damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use smalt_protocol::StorageError;

use super::fault_disk::{Call, Faults};
use super::{SEGMENT_BYTES, dump, durable, durable_on, get, luck, pattern, put, stage};
use crate::disk::{Disk, SystemDisk, copy_dir, read_small};
use crate::store::log::{FILES, Found, Log};
use crate::store::view::Writes;
use crate::store::{Mode, OpenError, Store, StoreConfig, StoreError, Transaction};

const DIR: &str = "/log";
const LOG_BYTES: u64 = 64 * 1024;

fn open(disk: &Faults) -> (Log, Found) {
    let found = Found::read(disk, Path::new(DIR)).unwrap();
    (
        Log::open(disk, Path::new(DIR), LOG_BYTES, &found).unwrap(),
        found,
    )
}

/// Returns the writes of the nth record: keys of its own, and one that every record has.
fn writes(n: u8, bytes: usize) -> Writes {
    let value = |seed| Some(Bytes::from(pattern(seed, bytes)));
    [
        (vec![0x20], value(u64::from(n))),
        (vec![0x21, n], value(1)),
        (vec![0x22, n], None),
    ]
    .into()
}

/// Writes records as a committer does, until the disk dies. Returns the number of durable ones.
fn filled(disk: &Faults, sizes: &[usize], synced: bool, dies_at: Option<u64>) -> usize {
    let log = Log::create(disk, Path::new(DIR), LOG_BYTES).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
    if let Some(later) = dies_at {
        disk.die_at_sync(disk.syncs() + 1 + later);
    }
    let mut turns = 0;
    let mut durable = 0;
    let mut write = |n: usize| {
        let next = writes(n as u8, sizes[n]);
        if log.is_full(&next) {
            if turns > 0 {
                log.recycle()?;
            }
            turns += 1;
            log.turn();
        }
        log.record(&next)?;
        if synced {
            log.sync()?;
            durable = n + 1;
        }
        Ok::<_, StoreError>(())
    };
    let written = (0..sizes.len()).try_for_each(&mut write);
    assert!(written.is_ok() || disk.is_dead(), "{written:?}");
    for (path, bytes) in disk.files("") {
        assert!(bytes as u64 <= LOG_BYTES, "{bytes} in {path:?}");
    }
    durable
}

/// Returns the number of the first record after those that were found. None is missing in between.
fn end_of(found: &Writes, sizes: &[usize]) -> usize {
    let there: Vec<_> = found
        .keys()
        .filter(|key| key[0] == 0x21)
        .map(|key| key[1])
        .collect();
    let Some((first, last)) = there.first().zip(there.last()) else {
        assert!(found.is_empty());
        return 0;
    };
    assert_eq!(there, (*first..=*last).collect::<Vec<_>>());
    for n in there.iter().copied() {
        let written = writes(n, sizes[usize::from(n)]);
        let key = [0x21 + u8::from(n != *last), n];
        assert_eq!(found.get(&key[..]), written.get(&key[..]));
    }
    let written = writes(*last, sizes[usize::from(*last)]);
    assert_eq!(found[&vec![0x20]], written[&vec![0x20]]);
    usize::from(*last) + 1
}

proptest! {
    /// A loss of power keeps every synced record, and unsynced ones whole or not at all; so does
    /// another one while the log begins again.
    #[test]
    fn synced_records_survive_a_loss_of_power(
        sizes in proptest::collection::vec(0_usize..15_000, 1..30),
        synced: bool,
        dies_at in proptest::option::of(0_u64..40),
        dies_again_at in 0_u64..4,
        seed in 1_u64..,
    ) {
        let disk = Faults::default();
        let durable = filled(&disk, &sizes, synced, dies_at);
        let disk = disk.after_crash(luck(seed));
        let (log, found) = open(&disk);
        prop_assert_eq!(&found.damage, &Vec::<String>::new());
        let end = end_of(&found.writes, &sizes);
        prop_assert!(end >= durable, "{} of {}", end, durable);
        disk.die_at_sync(disk.syncs() + 1 + dies_again_at);
        let restarted = log.restart(&found);
        prop_assert_eq!(restarted.is_ok(), dies_again_at > 1 + u64::from(found.is_cut));
        let disk = disk.after_crash(luck(!seed));
        let (_, again) = open(&disk);
        prop_assert_eq!(&again.damage, &Vec::<String>::new());
        let again_end = end_of(&again.writes, &sizes);
        prop_assert!(again_end == end || again_end == 0);
        prop_assert!(restarted.is_err() || !again.is_used);
    }

    /// A damaged page is found, unless it belongs to the last record, which is then missing, or to
    /// none.
    #[test]
    fn damaged_page_is_found_or_belongs_to_the_last_record(
        sizes in proptest::collection::vec(0_usize..9_000, 2..20),
        place: prop::sample::Index,
    ) {
        let disk = Faults::default();
        filled(&disk, &sizes, true, None);
        let files = disk.files("");
        let total: usize = files.iter().map(|(_, len)| len).sum();
        let mut at = place.index(total);
        let (path, _) = files.iter().find(|(_, len)| match at.checked_sub(*len) {
            Some(left) => { at = left; false }
            None => true,
        }).unwrap();
        disk.damage(path, at);
        let (_, found) = open(&disk);
        prop_assert!(
            !found.damage.is_empty() || end_of(&found.writes, &sizes) + 1 >= sizes.len()
        );
    }
}

async fn add(store: Store) -> Result<u8, StorageError> {
    let job = |tx: &mut Transaction<'_>, _: &_| {
        let next = crate::store::View::get(tx, b"\x20n")?.map_or(0, |value| value[0]) + 1;
        tx.put(b"\x20n".to_vec(), vec![next]);
        Ok(next)
    };
    store.commit(job).await
}

/// While one group is synced, the next one runs on its writes, which readers do not see.
#[tokio::test]
async fn next_group_runs_while_the_last_one_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    disk.close_gate("log.0");
    let first = tokio::spawn(add(store.clone()));
    tokio::task::yield_now().await;
    disk.wait_at_gate();
    let (ran, has_run) = std::sync::mpsc::channel();
    let job = move |tx: &mut Transaction<'_>, _: &_| {
        ran.send(crate::store::View::get(tx, b"\x20n")?).unwrap();
        Ok(())
    };
    let waiting = store.clone();
    let second = tokio::spawn(async move { waiting.commit(job).await });
    tokio::task::yield_now().await;
    let seen = has_run.recv_timeout(std::time::Duration::from_secs(10));
    assert_eq!(seen.unwrap().as_deref(), Some(&[1][..]));
    assert_eq!(get(&store, b"\x20n"), None);
    assert!(!first.is_finished() && !second.is_finished());
    disk.open_gate();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    second.await.unwrap().unwrap();
    assert_eq!(get(&store, b"\x20n"), Some(vec![1]));
}

/// A group that ran on top of one which is then refused is refused as well, and never seen.
#[tokio::test(flavor = "multi_thread")]
async fn group_on_top_of_a_refused_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    disk.close_gate("00000001.seg");
    let staged = stage(&store, &pattern(1, 20_000)).await.unwrap();
    let big = store.clone();
    let first = tokio::spawn(async move {
        let job = move |tx: &mut Transaction<'_>, _: &_| {
            crate::store::adopt(tx, staged)?;
            tx.put(b"\x20big".to_vec(), vec![0; 10_000]);
            Ok(())
        };
        big.commit(job).await
    });
    disk.wait_at_gate();
    let (ran, has_run) = std::sync::mpsc::channel();
    let job = move |tx: &mut Transaction<'_>, _: &_| {
        tx.put(b"\x20n".to_vec(), vec![1]);
        ran.send(()).unwrap();
        Ok(())
    };
    let waiting = store.clone();
    let second = tokio::spawn(async move { waiting.commit(job).await });
    has_run
        .recv_timeout(std::time::Duration::from_secs(10))
        .unwrap();
    // Enough for the record of the second group, too little for that of the first one.
    disk.limit_room(Some(5_000));
    disk.open_gate();
    assert_eq!(first.await.unwrap().unwrap_err().status(), 503);
    assert_eq!(second.await.unwrap().unwrap_err().status(), 503);
    disk.limit_room(None);
    assert_eq!(get(&store, b"\x20big"), None);
    assert_eq!(get(&store, b"\x20n"), None);
    assert_eq!(add(store.clone()).await.unwrap(), 1);
}

/// A record without room is refused with everything that ran on top of it, and writes resume.
#[tokio::test]
async fn record_without_room_is_refused_and_never_seen() {
    for mode in [Mode::Durable, Mode::Fast] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faults::default());
        let config = StoreConfig {
            mode,
            ..super::config(dir.path())
        };
        let store = Store::open_on(config, Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
        disk.limit_room(Some(100));
        for _ in 0..3 {
            let refused = add(store.clone()).await.unwrap_err();
            assert_eq!(refused.status(), 503);
        }
        assert_eq!(get(&store, b"\x20n"), None);
        disk.limit_room(None);
        assert_eq!(add(store.clone()).await.unwrap(), 1);
        assert_eq!(store.failure(), None);
        let fails = Some((Call::Write, "log.0"));
        disk.fail_calls(fails);
        assert_eq!(add(store.clone()).await.unwrap_err().status(), 500);
        assert_eq!(get(&store, b"\x20n"), Some(vec![1]));
    }
}

/// The engine takes the writes of full files in the background; a copy of the files at any moment
/// has all of them.
#[tokio::test]
async fn killed_store_has_every_write_at_every_moment() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let store = durable(&at);
    for round in 0..12_u8 {
        for n in 0..20_u8 {
            put(
                &store,
                &[0x20, n % 7],
                &pattern(u64::from(round * n), 3_000),
            )
            .await
            .unwrap();
        }
        let copy = dir.path().join(format!("copy-{round}"));
        copy_dir(&SystemDisk, &at, &copy, &|_| false).unwrap();
        assert_eq!(dump(&durable(&copy)), dump(&store), "{round}");
    }
    assert!(store.stats().engine_bytes >= SEGMENT_BYTES);
    let all = dump(&store);
    store.close().unwrap();
    assert_eq!(dump(&durable(&at)), all);
}

/// A lost file or a damaged record is refused, and the files stay as they are.
#[tokio::test]
async fn store_with_a_damaged_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let store = durable(&at);
    for n in 0..10 {
        put(&store, &[0x20, n], &pattern(u64::from(n), 3_000))
            .await
            .unwrap();
    }
    let copy = |name: &str| {
        let copy = dir.path().join(name);
        copy_dir(&SystemDisk, &at, &copy, &|_| false).unwrap();
        copy
    };
    let lost = copy("lost");
    SystemDisk
        .remove(&lost.join("sled-1").join(FILES[1]))
        .unwrap();
    let torn = copy("torn");
    let log = torn.join("sled-1").join(FILES[0]);
    SystemDisk
        .open(&log, false)
        .unwrap()
        .write_at(b"torn", 4 * 4096 + 40)
        .unwrap();
    for (dir, cause) in [(lost, "log.1 is missing"), (torn, "record 3 is damaged")] {
        let before = log_of(&dir);
        let refused = Store::open(super::config(&dir)).err().unwrap();
        assert!(matches!(&refused, OpenError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains(cause), "{refused}");
        assert_eq!(log_of(&dir), before);
    }
    assert!(matches!(store.close(), Ok(()) | Err(StoreError::Closed)));
}

fn log_of(dir: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let files = FILES.iter().map(|name| dir.join("sled-1").join(name));
    files
        .map(|path| (path.clone(), read_small(&SystemDisk, &path).unwrap()))
        .collect()
}
