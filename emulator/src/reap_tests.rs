//! Reaping removes all garbage and expired records, in bounded steps, and nothing else.

use std::time::Duration;

use smalt_protocol::ETag;
use smalt_protocol::limits::PAGE_BYTES;
use smalt_protocol::time::DAY_S;

use super::*;
use crate::clock::Clock;
use crate::records::{BlobKind, CommittedBlock};
use crate::store::{PayloadId, Staged, StoreConfig, adopt, location};

const GARBAGE: Generation = 7;
const LIVE: Generation = 8;

fn open() -> (Store, Clock) {
    let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
    let store = Store::open(StoreConfig::memory(clock.clone())).unwrap();
    (store, clock)
}

async fn payload(store: &Store) -> PayloadId {
    let mut writer = store.stage(4).unwrap();
    writer.write(b"four").unwrap();
    let staged = writer.finish().await.unwrap();
    store.commit_blocking(move |tx| adopt(tx, staged)).unwrap()
}

fn blob(content: BlobContent) -> BlobRecord {
    BlobRecord {
        content,
        ..BlobRecord::decode(&minimal()).unwrap()
    }
}

/// Encodes a record as an early release did, without the fields that were added later.
fn minimal() -> Bytes {
    #[derive(serde::Serialize)]
    struct Minimal {
        kind: BlobKind,
        created: Timestamp,
        etag: ETag,
        last_modified: Timestamp,
        length: u64,
        content: BlobContent,
    }
    let now = Timestamp::from_unix_s(1_700_000_000);
    let record = Minimal {
        kind: BlobKind::Block,
        created: now,
        etag: ETag::from_tick(now),
        last_modified: now,
        length: 4,
        content: BlobContent::Empty,
    };
    rmp_serde::to_vec_named(&record).unwrap().into()
}

fn is_there(store: &Store, key: &[u8]) -> bool {
    store.read(|view| view.get(key)).unwrap().is_some()
}

fn has_bytes(store: &Store, payload: PayloadId) -> bool {
    store.read(|view| location(view, payload)).is_ok()
}

fn left(store: &Store, generation: Generation) -> usize {
    let all = |prefix: Vec<u8>| {
        store
            .read(|view| entries(view, &prefix, &keys::after(prefix.clone()), usize::MAX))
            .unwrap()
            .len()
    };
    keys::contents(generation).into_iter().map(all).sum()
}

/// Puts `count` blobs with one payload each, and one blob whose block list a live blob shares.
async fn fill(store: &Store, count: usize) -> (Vec<PayloadId>, PayloadId) {
    let mut own = Vec::new();
    for number in 0..count {
        let id = payload(store).await;
        own.push(id);
        let key = keys::blob(GARBAGE, &format!("b{number:04}"));
        let job = move |tx: &mut Transaction<'_>| blob(BlobContent::Payload(id)).save(tx, key);
        store.commit_blocking(job).unwrap();
    }
    let shared = payload(store).await;
    store
        .commit_blocking(move |tx| {
            let block = CommittedBlock {
                id: b"1".to_vec(),
                length: 4,
                payload: Some(shared),
            };
            let list = content::blocks::write(tx, 99, &[block])?;
            content::retain(tx, list)?;
            blob(list).save(tx, keys::blob(GARBAGE, "shared"))?;
            blob(list).save(tx, keys::blob(LIVE, "shared"))
        })
        .unwrap();
    (own, shared)
}

fn mark(store: &Store, garbage: Option<GarbageRecord>) {
    let job = move |tx: &mut Transaction<'_>| match garbage {
        Some(record) => record.save(tx, keys::garbage(GARBAGE)),
        None => {
            tx.put(keys::garbage(GARBAGE), Vec::new());
            Ok(())
        }
    };
    store.commit_blocking(job).unwrap();
}

#[tokio::test]
async fn garbage_is_removed_in_bounded_steps_and_shared_data_stays() {
    let (store, _) = open();
    let reaper = Reaper::default();
    let (own, shared) = fill(&store, 600).await;
    assert_eq!(reaper.run(&store, 100).unwrap(), Reaped::default());
    mark(&store, Some(GarbageRecord::default()));
    let first = reaper.run(&store, 300).unwrap();
    assert_eq!((first.records, first.more), (300, true));
    assert_eq!(left(&store, GARBAGE), 301);
    let rest = reaper.run(&store, 10_000).unwrap();
    // Includes one record for the marker.
    assert_eq!((rest.records, rest.more), (302, false));
    assert_eq!(left(&store, GARBAGE), 0);
    assert!(!is_there(&store, &keys::garbage(GARBAGE)));
    assert!(own.iter().all(|id| !has_bytes(&store, *id)));
    assert!(has_bytes(&store, shared) && is_there(&store, &keys::blob(LIVE, "shared")));
    assert_eq!(reaper.run(&store, 10).unwrap(), Reaped::default());
}

#[tokio::test]
async fn messages_of_a_cleared_queue_release_their_payloads() {
    let (store, clock) = open();
    let id = payload(&store).await;
    let now = clock.now();
    store
        .commit_blocking(move |tx| {
            let message = MessageRecord {
                inserted: now,
                expires: now,
                visible: now,
                sequence: 1,
                place: 1,
                receipt: 1,
                dequeue_count: 0,
                text: MessageText::Payload(id, 4),
            };
            message.save(tx, keys::message(GARBAGE, &[1; 16]))?;
            tx.put(keys::visible(GARBAGE, now, 1), Vec::new());
            tx.put(keys::expiry(GARBAGE, now, 1), Vec::new());
            tx.put(keys::message_count(GARBAGE), Vec::new());
            Ok(())
        })
        .unwrap();
    mark(&store, None);
    assert_eq!(Reaper::default().run(&store, 100).unwrap().records, 5);
    assert!(!has_bytes(&store, id));
}

#[tokio::test]
async fn deleted_name_stays_taken_until_its_time() {
    let (store, clock) = open();
    let reaper = Reaper::default();
    let name = keys::container("a", "c");
    let tombstone = Tombstone {
        generation: GARBAGE,
        deleted_at: Some(clock.now()),
    };
    let key = name.clone();
    store
        .commit_blocking(move |tx| tombstone.save(tx, key))
        .unwrap();
    mark(
        &store,
        Some(GarbageRecord {
            tombstone: Some(name.clone()),
            free_at: clock.now().plus_s(30),
        }),
    );
    assert_eq!(reaper.run(&store, 100).unwrap().records, 0);
    assert!(is_there(&store, &name));
    clock.advance(Duration::from_secs(30));
    assert_eq!(reaper.run(&store, 100).unwrap().records, 1);
    assert!(!is_there(&store, &name) && !is_there(&store, &keys::garbage(GARBAGE)));
}

#[tokio::test]
async fn name_that_was_taken_again_is_not_removed() {
    let (store, clock) = open();
    let name = keys::container("a", "c");
    let again = Tombstone {
        generation: LIVE,
        deleted_at: None,
    };
    let key = name.clone();
    store
        .commit_blocking(move |tx| again.save(tx, key))
        .unwrap();
    mark(
        &store,
        Some(GarbageRecord {
            tombstone: Some(name.clone()),
            free_at: clock.now(),
        }),
    );
    assert_eq!(Reaper::default().run(&store, 100).unwrap().records, 1);
    assert!(is_there(&store, &name));
}

#[tokio::test]
async fn uncommitted_blocks_are_removed_a_week_after_the_last_one() {
    let (store, clock) = open();
    let reaper = Reaper::default();
    let payload = payload(&store).await;
    let now = clock.now();
    for (name, touched) in [("old", now), ("young", now.plus_s(1))] {
        store
            .commit_blocking(move |tx| {
                for number in 0..10_u8 {
                    let block = BlockRecord {
                        length: 4,
                        payload: (name == "old" && number == 9).then_some(payload),
                    };
                    block.save(tx, keys::block(LIVE, name, &[number]))?;
                }
                let record = UncommittedRecord {
                    encryption: None,
                    created: now,
                    touched,
                    blocks: 10,
                    id_length: 1,
                };
                record.save(tx, keys::uncommitted(LIVE, name))
            })
            .unwrap();
    }
    clock.advance(Duration::from_secs(7 * DAY_S - 1));
    assert_eq!(reaper.run(&store, 100).unwrap().records, 0);
    clock.advance(Duration::from_secs(1));
    let first = reaper.run(&store, 4).unwrap();
    assert_eq!((first.records, first.more), (4, true));
    let key = keys::uncommitted(LIVE, "old");
    let record = store
        .read(|view| UncommittedRecord::load(view, &key))
        .unwrap();
    assert_eq!(record.map(|record| record.blocks), Some(6));
    assert_eq!(reaper.run(&store, 100).unwrap().records, 7);
    assert!(!is_there(&store, &key) && !has_bytes(&store, payload));
    assert!(is_there(&store, &keys::uncommitted(LIVE, "young")));
    assert_eq!(left(&store, LIVE), 11);
}

/// Puts a blob of `pages` pages that are not adjacent.
fn scatter(store: &Store, key: Vec<u8>, pages: u64) {
    let mut content = BlobContent::Empty;
    for page in 0..pages {
        let start = page * 2 * PAGE_BYTES;
        let write = move |tx: &mut Transaction<'_>| {
            let staged = Staged::inline(vec![1; PAGE_BYTES as usize].into())?;
            let payload = adopt(tx, staged)?;
            pages::write(tx, content, start..start + PAGE_BYTES, payload)
        };
        content = store.commit_blocking(write).unwrap();
    }
    let write = move |tx: &mut Transaction<'_>| blob(content).save(tx, key);
    store.commit_blocking(write).unwrap();
}

#[tokio::test]
async fn pages_of_a_deleted_container_are_removed_in_bounded_steps() {
    let (store, _) = open();
    scatter(
        &store,
        keys::blob(GARBAGE, "a"),
        pages::AT_ONCE as u64 + 600,
    );
    mark(&store, None);
    let reaper = Reaper::default();
    let most = 500;
    let mut runs = 0;
    while reaper.run(&store, most).unwrap().more {
        runs += 1;
    }
    assert!(runs > 0);
    assert_eq!(left(&store, GARBAGE), 0);
    assert!(store.read(pages::first_left).unwrap().is_none());
    let nodes = keys::page_node(0)[..1].to_vec();
    let nodes = store.read(|view| entries(view, &nodes, &keys::after(nodes.clone()), 1));
    assert!(nodes.unwrap().is_empty());
}
