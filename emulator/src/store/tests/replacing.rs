//! Replacing the state: by a snapshot, by a build, and with a crash in between.

use std::sync::Arc;

use super::fault_disk::Faults;
use super::{clock, config, dump, durable, get, get_payload, memory, pattern, put, put_payload};
use crate::disk::Disk;
use crate::store::{SnapshotError, Store, StoreError, release};

const LARGE: usize = 100_000;

/// Returns all records except those about places, which change with the payloads.
fn said(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = dump(store);
    all.retain(|(key, _)| !(0x01..=0x04).contains(&key[0]));
    all
}

async fn save_and_go_back(store: &Store) {
    put(store, b"\x10a", b"before").await.unwrap();
    let id = put_payload(store, &pattern(1, LARGE)).await.unwrap();
    let before = said(store);
    store.snapshots().save("before", "about it").unwrap();

    put(store, b"\x10a", b"after").await.unwrap();
    put(store, b"\x10b", b"new").await.unwrap();
    store
        .commit(move |tx, _| Ok(release(tx, id)?))
        .await
        .unwrap();
    while store.maintain(10).unwrap().more {}
    assert!(get_payload(store, id).is_err());

    assert_eq!(store.snapshots().load("before").unwrap(), "about it");
    assert_eq!(said(store), before);
    assert_eq!(get_payload(store, id).unwrap(), pattern(1, LARGE));
    // The next payload does not use a place that the snapshot needs.
    let next = put_payload(store, &pattern(2, LARGE)).await.unwrap();
    store.snapshots().load("before").unwrap();
    assert!(get_payload(store, next).is_err());
    assert_eq!(get_payload(store, id).unwrap(), pattern(1, LARGE));
}

#[tokio::test]
async fn snapshot_in_memory_restores_the_state() {
    save_and_go_back(&memory()).await;
}

#[tokio::test]
async fn snapshot_on_disk_restores_the_state_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    save_and_go_back(&store).await;
    let before = said(&store);
    put(&store, b"\x10a", b"after").await.unwrap();
    store.close().unwrap();
    drop(store);
    let store = durable(dir.path());
    assert_eq!(get(&store, b"\x10a").unwrap(), b"after");
    let listed = store.snapshots().list();
    assert_eq!((listed.len(), listed[0].name.as_str()), (1, "before"));
    store.snapshots().load("before").unwrap();
    assert_eq!(said(&store), before);
    store.snapshots().delete("before").unwrap();
    assert!(matches!(
        store.snapshots().load("before"),
        Err(SnapshotError::NotFound(_))
    ));
}

/// Payloads that only a snapshot needs stay on disk until it is deleted.
#[tokio::test]
async fn payloads_of_a_deleted_snapshot_are_freed() {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    let id = put_payload(&store, &pattern(1, LARGE)).await.unwrap();
    store.snapshots().save("s", "").unwrap();
    store
        .commit(move |tx, _| Ok(release(tx, id)?))
        .await
        .unwrap();
    while store.maintain(10).unwrap().more {}
    assert!(store.stats().segment_bytes >= LARGE as u64);
    store.snapshots().delete("s").unwrap();
    while store.maintain(10).unwrap().more {}
    assert_eq!(store.stats().segment_bytes, 0);
}

#[tokio::test]
async fn snapshot_names_are_valid_file_names_everywhere() {
    let store = memory();
    for bad in ["", "A", "a/b", "../a", ".a", "a b", "ä", &"a".repeat(65)] {
        let saved = store.snapshots().save(bad, "");
        assert!(matches!(saved, Err(SnapshotError::Name(_))), "{bad}");
    }
    for good in ["a", "0", "before-test_1.2", &"a".repeat(64)] {
        store.snapshots().save(good, "").unwrap();
    }
}

/// Any byte of an image may flip: the current state is unchanged, and the error names the damage.
#[tokio::test]
async fn damaged_snapshot_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = super::durable_on(dir.path(), &disk);
    put(&store, b"\x10a", b"before").await.unwrap();
    store.snapshots().save("s", "about").unwrap();
    put(&store, b"\x10a", b"after").await.unwrap();
    let (path, len) = disk.files(".snap").pop().unwrap();
    for at in 0..len {
        disk.damage(&path, at);
        match store.snapshots().load("s") {
            // The head is only read when the store is opened or the snapshot is saved.
            Ok(_) => assert!(at < 64, "byte {at} of {len} is not looked at"),
            Err(SnapshotError::Store(StoreError::Corrupt(_))) => {
                assert_eq!(get(&store, b"\x10a").unwrap(), b"after");
            }
            Err(error) => panic!("{error}"),
        }
        disk.damage(&path, at);
        put(&store, b"\x10a", b"after").await.unwrap();
    }
    disk.damage(&path, 3);
    store.close().unwrap();
    drop(store);
    let store = super::durable_on(dir.path(), &disk);
    assert!(store.snapshots().list()[0].about.is_err());
    assert!(store.snapshots().load("s").is_err());
    store.snapshots().save("s", "again").unwrap();
    store.snapshots().load("s").unwrap();
}

#[tokio::test]
async fn fork_and_original_are_independent() {
    let dir = tempfile::tempdir().unwrap();
    for original in [memory(), durable(dir.path())] {
        put(&original, b"\x10a", b"both").await.unwrap();
        let id = put_payload(&original, &pattern(1, LARGE)).await.unwrap();
        let fork = original.fork(clock()).unwrap();
        put(&fork, b"\x10a", b"fork").await.unwrap();
        let new = put_payload(&fork, &pattern(2, LARGE)).await.unwrap();
        put(&original, b"\x10b", b"original").await.unwrap();
        original
            .commit(move |tx, _| Ok(release(tx, id)?))
            .await
            .unwrap();
        while original.maintain(10).unwrap().more {}
        assert_eq!(get(&original, b"\x10a").unwrap(), b"both");
        assert_eq!(get(&fork, b"\x10a").unwrap(), b"fork");
        assert_eq!(get(&fork, b"\x10b"), None);
        assert_eq!(get_payload(&fork, id).unwrap(), pattern(1, LARGE));
        assert_eq!(get_payload(&fork, new).unwrap(), pattern(2, LARGE));
    }
}

#[tokio::test]
async fn failed_build_leaves_the_state_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    for store in [memory(), durable(dir.path())] {
        put(&store, b"\x10a", b"before").await.unwrap();
        let before = dump(&store);
        let failed: Result<(), StoreError> = store.replace(|successor| {
            successor
                .record(b"\x10b", vec![1; 5_000_000].into())
                .unwrap_err();
            successor.record(b"\x10b", b"half"[..].into())?;
            Err(StoreError::Io("no more".to_owned()))
        });
        assert!(failed.is_err());
        assert_eq!(dump(&store), before);
        put(&store, b"\x10a", b"goes on").await.unwrap();
    }
}

/// The machine crashes at any sync of a build: the old or the new state is found.
#[tokio::test]
async fn crash_during_a_replacement_leaves_the_old_or_the_new_state() {
    let (mut old, mut new) = (0, 0);
    for dies_at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faults::default());
        let store = super::durable_on(dir.path(), &disk);
        put(&store, b"\x10a", b"old").await.unwrap();
        let id = put_payload(&store, &pattern(1, LARGE)).await.unwrap();
        let image = store.image().unwrap();
        disk.die_at_sync(disk.syncs() + dies_at);
        let replaced: Result<(), StoreError> = store.replace(|successor| {
            let mut writer = successor.stage(LARGE as u64)?;
            writer.write(&pattern(2, LARGE))?;
            let staged = writer.end()?;
            successor.take(&image)?;
            successor.transact(|tx| {
                crate::store::adopt(tx, staged)?;
                tx.put(b"\x10a".to_vec(), b"new".to_vec());
                Ok(())
            })
        });
        let survived = !disk.is_dead();
        drop((image, store));
        let after = Arc::new(disk.after_crash(|| dies_at % 2 == 0));
        let store = Store::open_on(config(dir.path()), Arc::clone(&after) as Arc<dyn Disk>);
        let store = store.unwrap();
        match get(&store, b"\x10a").as_deref() {
            Some(b"old") if replaced.is_err() => old += 1,
            Some(b"new") => {
                let next = crate::store::PayloadId(id.0 + 1);
                assert_eq!(get_payload(&store, next).unwrap(), pattern(2, LARGE));
                new += 1;
            }
            other => panic!("{other:?} after {replaced:?}"),
        }
        assert_eq!(get_payload(&store, id).unwrap(), pattern(1, LARGE));
        if survived {
            break;
        }
    }
    assert!(old > 1 && new > 0, "{old} old, {new} new");
}
