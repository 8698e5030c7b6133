//! Payloads: references, ranges, compaction, orphans, damage.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::fault_disk::Faults;
use super::{
    SEGMENT_BYTES, config, durable, durable_on, get_payload, memory, pattern, put_payload, stage,
};
use crate::store::extents::Extents;
use crate::store::{PayloadId, Store, StoreConfig, StoreError, location, release, retain};

async fn change(store: &Store, id: PayloadId, adds: bool) {
    let job = move |tx: &mut crate::store::Transaction<'_>, _: &_| {
        Ok(if adds {
            retain(tx, id)
        } else {
            release(tx, id)
        }?)
    };
    store.commit(job).await.unwrap();
}

/// Uploads that end during a sync of their segment share the next one.
#[test]
fn uploads_share_a_sync() {
    const BYTES: u64 = 1024 * 1024;
    let disk = Faults::default();
    let (shared, dir) = (Arc::new(disk.clone()), "/extents".into());
    let extents = Extents::open(shared, dir, u64::MAX, true, &BTreeMap::new()).unwrap();
    let end = |_| {
        let mut reservation = extents.reserve(BYTES).unwrap();
        reservation.complete();
        std::thread::spawn(reservation.sync_alone(BYTES).unwrap())
    };
    let before = disk.syncs();
    disk.close_gate("00000001.seg");
    let first = end(0);
    disk.wait_at_gate();
    let others = [1, 2].map(end);
    disk.open_gate();
    for upload in others.into_iter().chain([first]) {
        upload.join().unwrap().unwrap();
    }
    // One for the first, one for its name, and one for the two others.
    assert_eq!(disk.syncs() - before, 3);
}

fn tidy(store: &Store) {
    while store.maintain(3).unwrap().more {}
}

#[tokio::test]
async fn payloads_of_all_sizes_are_read_back_in_ranges() {
    let dir = tempfile::tempdir().unwrap();
    for store in [memory(), durable(dir.path())] {
        for len in [0, 1, 16_384, 16_385, 65_536, 65_537, 300_000, 1_200_000] {
            let bytes = pattern(len as u64, len);
            let id = put_payload(&store, &bytes).await.unwrap();
            let payload = store.read(|view| location(view, id)).unwrap();
            assert_eq!(payload.len(), len as u64);
            assert_eq!(payload.inline().is_some(), len <= 16_384);
            for (from, to) in [
                (0, len),
                (0, len + 9),
                (len / 3, len - len / 4),
                (len, len),
                (65_536, 65_537),
                (len + 1, len + 2),
            ] {
                let reader = store.payload(&payload, from as u64..to as u64);
                let part = reader.read_all().unwrap();
                assert_eq!(part, bytes[from.min(len)..to.min(len)]);
            }
        }
    }
}

#[tokio::test]
async fn writer_enforces_its_announced_length() {
    let store = memory();
    let mut writer = store.stage(20_000).unwrap();
    writer.write(&[1; 19_999]).unwrap();
    assert!(writer.write(&[1; 2]).is_err());
    assert!(writer.finish().await.is_err());
}

/// The properties of a body that hyper needs: exact size, chunks of a frame.
#[tokio::test]
async fn reader_is_a_body_of_known_size() {
    use http_body::Body;
    use http_body_util::BodyExt;
    let store = memory();
    let bytes = pattern(3, 200_000);
    let id = put_payload(&store, &bytes).await.unwrap();
    let payload = store.read(|view| location(view, id)).unwrap();
    let mut body = payload.reader(10..200_000);
    assert_eq!(body.size_hint().exact(), Some(199_990));
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first.len(), 65_536 - 10);
    let rest = body.collect().await.unwrap().to_bytes();
    assert_eq!([first, rest].concat(), bytes[10..]);
}

/// Compaction moves live payloads, keeps their bytes, and does not disturb readers.
#[tokio::test]
async fn compaction_frees_space_and_keeps_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push((n, put_payload(&store, &pattern(n, 30_000)).await.unwrap()));
    }
    let full = store.stats().segment_bytes;
    let (_, freed) = ids[1];
    let payload = store.read(|view| location(view, freed)).unwrap();
    let mut reader = payload.reader(0..30_000);
    for (n, id) in &ids {
        if n % 5 != 0 {
            change(&store, *id, false).await;
        }
    }
    let moved = store.maintain(1).unwrap();
    assert!(moved.more && moved.payloads_moved + moved.segments_removed == 1);
    tidy(&store);
    let segment = dir.path().join("extents/00000001.seg");
    assert!(segment.exists(), "a reader holds it");
    let left = store.stats().segment_bytes;
    assert!(left * 2 < full, "{left} of {full} bytes left");
    let all = [reader.next_chunk().unwrap().unwrap()].concat();
    assert_eq!(all, pattern(1, 30_000));
    drop((reader, payload));
    tidy(&store);
    assert!(!segment.exists());
    assert!(store.stats().segment_bytes <= left);
    for reopened in [false, true] {
        let store = if reopened {
            store.close().unwrap();
            durable(dir.path())
        } else {
            store.clone()
        };
        for (n, id) in ids.iter().filter(|(n, _)| n % 5 == 0) {
            assert_eq!(get_payload(&store, *id).unwrap(), pattern(*n, 30_000));
        }
    }
}

/// Stagings that no commit took are removed, by this process or the next; other bytes are kept.
#[tokio::test]
async fn orphans_are_removed_and_running_stagings_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = durable(dir.path());
    let mut under_way = store.stage(100_000).unwrap();
    under_way.write(&[7; 50_000]).unwrap();
    for _ in 0..5 {
        let mut writer = store.stage(SEGMENT_BYTES).unwrap();
        writer.write(&[1; 70_000]).unwrap();
        drop(writer);
        drop(stage(&store, &[3; 90_000]).await.unwrap());
    }
    assert!(store.stats().segments >= 6);
    tidy(&store);
    assert!(store.stats().segments <= 2);
    under_way.write(&[7; 50_000]).unwrap();
    let staged = under_way.finish().await.unwrap();
    let job =
        move |tx: &mut crate::store::Transaction<'_>, _: &_| Ok(crate::store::adopt(tx, staged)?);
    let id = store.commit(job).await.unwrap();
    tidy(&store);
    assert_eq!(get_payload(&store, id).unwrap(), vec![7; 100_000]);

    let lost = stage(&store, &[3; 200_000]).await.unwrap();
    store.close().unwrap();
    drop(lost);
    let store = durable(dir.path());
    change(&store, id, false).await;
    tidy(&store);
    assert_eq!(store.stats().segments, 0);
}

/// C3: damaged bytes are an error wherever they are, and never other bytes.
#[tokio::test]
async fn damaged_frame_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    let bytes = pattern(9, 150_000);
    let id = put_payload(&store, &bytes).await.unwrap();
    let path = dir.path().join(Path::new("extents/00000001.seg"));
    for (at, frame) in [(0, 0), (65_539, 0), (65_540, 1), (150_011, 2)] {
        disk.damage(&path, at);
        let payload = store.read(|view| location(view, id)).unwrap();
        for (n, range) in [0..65_536, 65_536..131_072, 131_072..150_000]
            .iter()
            .enumerate()
        {
            let part = payload.reader(range.clone()).read_all();
            let whole = &bytes[range.start as usize..range.end as usize];
            match part {
                Ok(part) => assert!(n != frame && part == whole),
                Err(error) => assert!(n == frame && matches!(error, StoreError::Corrupt(_))),
            }
        }
        disk.damage(&path, at);
    }
    assert_eq!(get_payload(&store, id).unwrap(), bytes);
}

/// Damage in a compacted segment affects its own payload only.
#[tokio::test]
async fn compaction_skips_damaged_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    let mut ids = Vec::new();
    for n in 0..9 {
        ids.push(put_payload(&store, &pattern(n, 60_000)).await.unwrap());
    }
    disk.damage(&dir.path().join("extents/00000001.seg"), 100);
    for id in &ids[2..4] {
        change(&store, *id, false).await;
    }
    tidy(&store);
    tidy(&store);
    assert_eq!(store.maintain(1).unwrap().payloads_damaged, 1);
    assert!(matches!(
        get_payload(&store, ids[0]),
        Err(StoreError::Corrupt(_))
    ));
    assert_eq!(get_payload(&store, ids[1]).unwrap(), pattern(1, 60_000));
}

/// With more segments than descriptors, files are closed and reopened.
#[tokio::test]
async fn many_segments_need_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let small = StoreConfig {
        segment_bytes: 20_000,
        ..config(dir.path())
    };
    let store = Store::open_on(small, disk).unwrap();
    let mut ids = Vec::new();
    for n in 0..150 {
        ids.push(put_payload(&store, &pattern(n, 17_000)).await.unwrap());
    }
    assert_eq!(store.stats().segments, 150);
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(get_payload(&store, *id).unwrap(), pattern(n as u64, 17_000));
    }
}
