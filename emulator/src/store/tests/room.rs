//! A full disk and a missing directory: reads continue, no write is acknowledged and then lost, and
//! writes resume when there is room.

use std::io::ErrorKind;
use std::sync::Arc;

use smalt_protocol::{ErrorCode, StorageError};

use super::fault_disk::{Call, Faults};
use super::{
    SEGMENT_BYTES, clock, config, durable, durable_on, get, get_payload, pattern, put, put_payload,
};
use crate::disk::{Disk, SystemDisk};
use crate::store::{Purpose, Store, StoreConfig, Transaction, Trouble, release};

const MIB: u64 = 1024 * 1024;
/// Size of a file system with a reserve of 2 MiB, where a further 1 MiB is kept free.
const SMALL: u64 = 20 * MIB;

fn refused<T: std::fmt::Debug>(outcome: Result<T, StorageError>, why: &str) {
    let error = outcome.unwrap_err();
    assert_eq!((error.status(), error.code()), (503, ErrorCode::ServerBusy));
    assert!(error.message().contains(why), "{}", error.message());
    // Repeated requests to a full store must not fill the log as well.
    assert_eq!(error.cause(), None);
}

async fn delete(store: &Store, key: &'static [u8]) -> Result<(), StorageError> {
    let job = move |tx: &mut Transaction<'_>, _: &_| {
        tx.delete(key.to_vec());
        Ok(())
    };
    store.commit_for(Purpose::Frees, job).await
}

/// Writes are refused while the engine still has room, deletes continue even when another program
/// takes the last byte, and writes resume as soon as there is room.
#[tokio::test]
async fn full_disk_refuses_writes_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    disk.show_room(10 * MIB, SMALL);
    let store = durable_on(dir.path(), &disk);
    let payload = put_payload(&store, &pattern(1, 200_000)).await.unwrap();
    for key in [&b"\x20a"[..], b"\x20b", b"\x20c"] {
        put(&store, key, b"old").await.unwrap();
    }
    assert_eq!(store.troubles(), []);
    assert_eq!(disk.files("reserve").len(), 1);

    for (available, deleted) in [(700 * 1024, &b"\x20a"[..]), (0, b"\x20b")] {
        disk.show_room(available, SMALL);
        refused(put(&store, b"\x20new", b"value").await, "the disk is full");
        refused(
            put_payload(&store, &pattern(2, 200_000)).await,
            "the disk is full",
        );
        delete(&store, deleted).await.unwrap();
        assert_eq!(get(&store, deleted), None);
        assert_eq!(get(&store, b"\x20c"), Some(b"old".to_vec()));
        assert_eq!(get_payload(&store, payload).unwrap(), pattern(1, 200_000));
        assert!(matches!(&store.troubles()[..], [Trouble::DiskFull(_)]));
    }
    // The second delete used up the reserve; without it deletes are refused as well.
    assert_eq!(disk.files("reserve").len(), 0);
    disk.show_room(0, SMALL);
    refused(delete(&store, b"\x20c").await, "the disk is full");
    assert_eq!(store.failure(), None);

    disk.show_room(10 * MIB, SMALL);
    put(&store, b"\x20new", b"value").await.unwrap();
    assert_eq!(store.troubles(), []);
    assert_eq!(disk.files("reserve").len(), 1);
    store.close().unwrap();
    assert_eq!(disk.files("reserve").len(), 0);
    let store = durable_on(dir.path(), &disk);
    assert_eq!(get(&store, b"\x20new"), Some(b"value".to_vec()));
    assert_eq!(get(&store, b"\x20b"), None);
}

/// What the engine has taken needs no more room: a disk with room for some writes takes them for
/// ever.
#[tokio::test]
async fn drained_writes_need_no_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    disk.show_room(5 * MIB, SMALL);
    for n in 0..400 {
        put(&store, &[0x20, n as u8 % 7], &pattern(n, 16_000))
            .await
            .unwrap();
    }
}

/// The mode `fast` checks the disk from time to time, and at once when asked.
#[tokio::test]
async fn full_disk_is_noticed_in_fast_mode() {
    for asks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faults::default());
        disk.show_room(10 * MIB, SMALL);
        let config = StoreConfig {
            segment_bytes: SEGMENT_BYTES,
            ..StoreConfig::fast(dir.path(), clock())
        };
        let store = Store::open_on(config, Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
        disk.show_room(0, SMALL);
        if asks {
            assert!(matches!(&store.troubles()[..], [Trouble::DiskFull(_)]));
        }
        let mut written = 0;
        while put(&store, b"\x20key", &[7; 4_000]).await.is_ok() {
            written += 1;
        }
        assert!(written < 20 && asks == (written == 0), "{written}");
        delete(&store, b"\x20key").await.unwrap();
        disk.show_room(10 * MIB, SMALL);
        put(&store, b"\x20key", b"value").await.unwrap();
    }
}

/// An upload is checked by its length, together with running uploads, so that none fails in the
/// middle because of another.
#[tokio::test]
async fn upload_that_does_not_fit_is_refused_before_its_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    disk.show_room(8 * MIB, SMALL);
    let store = durable_on(dir.path(), &disk);
    disk.show_room(8 * MIB, SMALL);
    assert!(store.stage(8 * MIB).is_err());
    let first = store.stage(5 * MIB).unwrap();
    assert!(store.stage(5 * MIB).is_err());
    drop(first);
    drop(store.stage(5 * MIB).unwrap());
    put(&store, b"\x20key", b"small").await.unwrap();
}

/// Missing room in any call for a payload fails that upload only, whether the disk is full or a
/// quota is used up.
#[tokio::test]
async fn missing_room_for_a_payload_does_not_stop_other_writes() {
    for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faults::default());
        let store = durable_on(dir.path(), &disk);
        disk.fail_as(kind);
        let kept = put_payload(&store, &pattern(1, 40_000)).await.unwrap();
        disk.fail_calls(Some((Call::Write, ".seg")));
        refused(
            put_payload(&store, &pattern(2, 40_000)).await,
            "the disk is full",
        );
        disk.fail_calls(Some((Call::Open, "00000002.seg")));
        refused(
            put_payload(&store, &pattern(2, 250_000)).await,
            "the disk is full",
        );
        disk.fail_calls(None);
        // A small payload is synced by its commit, a large one by its upload.
        for (len, segment) in [(40_000, "00000001.seg"), (1_500_000, "00000002.seg")] {
            disk.fail_syncs_of(Some(segment));
            refused(
                put_payload(&store, &pattern(3, len)).await,
                "the disk is full",
            );
            disk.fail_syncs_of(None);
            put(&store, b"\x20key", b"value").await.unwrap();
        }
        let later = put_payload(&store, &pattern(4, 40_000)).await.unwrap();
        assert_eq!(store.failure(), None);
        store.close().unwrap();
        let store = durable_on(dir.path(), &disk);
        assert_eq!(get_payload(&store, kept).unwrap(), pattern(1, 40_000));
        assert_eq!(get_payload(&store, later).unwrap(), pattern(4, 40_000));
    }
}

/// After another disk failure the state on disk is unknown, and the store refuses writes.
#[tokio::test]
async fn failing_disk_stops_all_writes() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    disk.fail_syncs_of(Some("00000001.seg"));
    let first = put_payload(&store, &pattern(1, 100_000)).await.unwrap_err();
    assert_eq!(first.status(), 500);
    disk.fail_syncs_of(None);
    refused(put(&store, b"\x20key", b"value").await, "opened again");
    assert!(matches!(&store.troubles()[..], [Trouble::WritesStopped(_)]));
}

/// A segment that is mostly garbage is compacted on a full disk, too.
#[tokio::test]
async fn full_disk_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    disk.show_room(10 * MIB, SMALL);
    let store = durable_on(dir.path(), &disk);
    let mut all = Vec::new();
    for n in 0..6 {
        all.push(put_payload(&store, &pattern(n, 60_000)).await.unwrap());
    }
    disk.show_room(700 * 1024, SMALL);
    for id in all.drain(1..4) {
        let job = move |tx: &mut Transaction<'_>, _: &_| Ok(release(tx, id)?);
        store.commit_for(Purpose::Frees, job).await.unwrap();
    }
    let report = store.maintain(100).unwrap();
    assert_eq!((report.payloads_moved, report.segments_removed), (1, 1));
    assert_eq!(get_payload(&store, all[0]).unwrap(), pattern(0, 60_000));
}

/// The directory was removed, moved or replaced: syncs still succeed, so the path is checked before
/// any write is acknowledged.
#[tokio::test]
async fn no_write_is_acknowledged_after_the_directory_is_gone() {
    for how in ["removed", "moved", "replaced", "engine removed"] {
        let above = tempfile::tempdir().unwrap();
        let (dir, aside) = (above.path().join("data"), above.path().join("aside"));
        let store = durable(&dir);
        put(&store, b"\x20key", b"old").await.unwrap();
        match how {
            "removed" => SystemDisk.remove_dir(&dir).unwrap(),
            "engine removed" => SystemDisk.remove_dir(&dir.join("sled-1")).unwrap(),
            _ => SystemDisk.rename(&dir, &aside).unwrap(),
        }
        if how == "replaced" {
            drop(durable(&dir));
        }
        refused(
            put(&store, b"\x20key", b"new").await,
            "the data directory is gone",
        );
        refused(put(&store, b"\x20key", b"newer").await, "opened again");
        assert_eq!(get(&store, b"\x20key"), Some(b"old".to_vec()), "{how}");
        assert!(
            matches!(&store.troubles()[..], [Trouble::DirectoryGone(_)]),
            "{how}"
        );
        store.close().unwrap_err();
        if how == "replaced" {
            // Closing this store does not affect the other one.
            assert_eq!(get(&durable(&dir), b"\x20key"), None);
        }
    }
}

/// Checks without a write notice it as well, and no payload is staged into a missing segment.
#[tokio::test]
async fn missing_directory_is_noticed_without_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    SystemDisk.remove_dir(&dir.path().join("sled-1")).unwrap();
    assert!(matches!(&store.troubles()[..], [Trouble::DirectoryGone(_)]));
    assert!(store.maintain(1).is_err());

    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(config(dir.path())).unwrap();
    put_payload(&store, &pattern(1, 100_000)).await.unwrap();
    SystemDisk.remove_dir(&dir.path().join("extents")).unwrap();
    put_payload(&store, &pattern(2, 100_000)).await.unwrap_err();
    put(&store, b"\x20key", b"value").await.unwrap_err();
}
