//! The mode `fast`: a kill loses nothing that is in the files, and a loss of power only what was
//! not synced. A copy of the files at any moment is what a kill leaves.

use std::path::Path;
use std::sync::Arc;

use smalt_protocol::Timestamp;

use super::fault_disk::Faults;
use super::{SEGMENT_BYTES, clock, dump, get, get_payload, luck, pattern, put, put_payload};
use crate::disk::{Disk, SystemDisk, files_below};
use crate::store::{PayloadId, Stamp, Store, StoreConfig, Transaction, release};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        segment_bytes: SEGMENT_BYTES,
        ..StoreConfig::fast(dir, clock())
    }
}

fn fast(dir: &Path) -> Store {
    Store::open(config(dir)).unwrap()
}

/// Opens a copy of an open store, as after a kill.
fn killed(from: &Path, to: &Path) -> Store {
    for file in files_below(from).unwrap() {
        let target = to.join(&file);
        SystemDisk.create_dir(target.parent().unwrap()).unwrap();
        SystemDisk.copy(&from.join(&file), &target).unwrap();
    }
    fast(to)
}

async fn tick(store: &Store) -> Timestamp {
    let job = |tx: &mut Transaction<'_>, stamp: &Stamp| {
        tx.put(b"\x20stamped".to_vec(), "");
        Ok(stamp.tick)
    };
    store.commit(job).await.unwrap()
}

fn fast_on(dir: &Path, disk: &Arc<Faults>) -> Store {
    Store::open_on(config(dir), Arc::clone(disk) as Arc<dyn Disk>).unwrap()
}

/// Opens the store again after a loss of power; `choose` keeps what was not synced.
fn power_lost(
    store: Store,
    (dir, disk): (&Path, &Arc<Faults>),
    choose: impl FnMut() -> bool,
) -> (Store, Arc<Faults>) {
    let image = Arc::new(disk.after_crash(choose));
    disk.die_at_sync(0);
    assert!(store.close().is_err());
    drop(store);
    (fast_on(dir, &image), image)
}

/// Compacts a segment: one of its payloads is moved, the other one was released.
async fn compacted(open: impl Fn() -> Store) -> (Store, [PayloadId; 2]) {
    let store = open();
    let stays = put_payload(&store, &pattern(1, 100_000)).await.unwrap();
    let goes = put_payload(&store, &pattern(2, 150_000)).await.unwrap();
    // Later payloads go to another segment; the state so far is durable.
    put_payload(&store, &pattern(3, 200_000)).await.unwrap();
    store.close().unwrap();
    drop(store);
    let store = open();
    let job = move |tx: &mut Transaction<'_>, _: &Stamp| Ok(release(tx, goes)?);
    store.commit(job).await.unwrap();
    let report = store.maintain(100).unwrap();
    assert_eq!((report.payloads_moved, report.segments_removed), (1, 1));
    (store, [stays, goes])
}

/// Whether or not the deletion was lost, every recorded payload is readable.
fn check(store: &Store, [stays, goes]: [PayloadId; 2]) {
    assert_eq!(get_payload(store, stays).unwrap(), pattern(1, 100_000));
    match get_payload(store, goes) {
        Ok(found) => assert_eq!(found, pattern(2, 150_000)),
        Err(error) => assert!(error.to_string().contains("payload"), "{error}"),
    }
}

/// A segment is deleted when the state without it is durable, not when that is published.
#[tokio::test]
async fn payloads_of_a_compacted_segment_are_readable() {
    let (at, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, payloads) = compacted(|| fast(at.path())).await;
    check(&killed(at.path(), to.path()), payloads);
    check(&store, payloads);
    for seed in 0..16 {
        let (dir, disk) = (tempfile::tempdir().unwrap(), Arc::new(Faults::default()));
        let (store, payloads) = compacted(|| fast_on(dir.path(), &disk)).await;
        check(
            &power_lost(store, (dir.path(), &disk), luck(seed)).0,
            payloads,
        );
    }
}

/// Ticks of lost commits are not used again, even with a clock that stands still or was set back:
/// they name ETags and snapshots.
#[tokio::test]
async fn lost_ticks_are_not_reused() {
    let (dir, mut disk) = (tempfile::tempdir().unwrap(), Arc::new(Faults::default()));
    let mut store = fast_on(dir.path(), &disk);
    let (mut last, mut opened) = (tick(&store).await, store.opened_after());
    for _ in 1..4 {
        for _ in 0..20 {
            let next = tick(&store).await;
            assert!(next > last);
            last = next;
        }
        (store, disk) = power_lost(store, (dir.path(), &disk), || false);
        // Ids come from the tick of the opening, so every opening has another.
        assert!(store.opened_after() > opened && store.opened_after() >= last);
        opened = store.opened_after();
        let next = tick(&store).await;
        assert!(next > last, "{next:?} after {last:?}");
        last = next;
    }
    assert_eq!(dump(&store).len(), 3);
}

/// A kill right after an answer takes nothing, and nothing later has to write it.
#[tokio::test]
async fn kill_loses_no_commit() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let store = fast(&at);
    for n in 0..100_u8 {
        put(&store, &[0x20, n], &[n]).await.unwrap();
    }
    let after = killed(&at, &dir.path().join("killed"));
    assert!((0..100).all(|n| get(&after, &[0x20, n]).as_deref() == Some(&[n][..])));
}
