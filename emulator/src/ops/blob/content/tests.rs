//! Tests content in a store: sharing, reference counts, and every range.

mod page_bytes;

use bytes::Bytes;
use http_body_util::BodyExt;
use proptest::prelude::*;
use smalt_protocol::{StorageError, Timestamp};

use super::*;
use crate::clock::Clock;
use crate::records::CommittedBlock;
use crate::reply::Content;
use crate::store::{PayloadId, Staged, Store, StoreConfig};

fn store() -> Store {
    Store::open(StoreConfig::memory(Clock::manual(Timestamp::from_unix_s(
        1,
    ))))
    .unwrap()
}

async fn commit<T: Send + 'static>(
    store: &Store,
    job: impl FnOnce(&mut Transaction<'_>) -> StoreResult<T> + Send + 'static,
) -> T {
    let done = store.commit(move |tx, _| job(tx).map_err(StorageError::from));
    done.await.unwrap()
}

/// Returns bytes that depend on their position.
fn bytes(from: usize, length: usize) -> Bytes {
    (from..from + length).map(|at| (at % 251) as u8).collect()
}

/// Writes a list of blocks of these lengths; their bytes continue from one to the next.
async fn list(store: &Store, lengths: Vec<usize>) -> (BlobContent, Vec<PayloadId>) {
    commit(store, move |tx| {
        let (mut blocks, mut payloads, mut start) = (Vec::new(), Vec::new(), 0);
        for length in lengths {
            let staged = Staged::inline(bytes(start, length))?;
            let payload = (length > 0).then(|| store::adopt(tx, staged)).transpose()?;
            start += length;
            payloads.extend(payload);
            blocks.push(CommittedBlock {
                id: vec![1; 64],
                length: length as u64,
                payload,
            });
        }
        Ok((blocks::write(tx, 7, &blocks)?, payloads))
    })
    .await
}

async fn received(content: Content) -> Bytes {
    match content {
        Content::Bytes(bytes) => bytes,
        Content::Payload(reader) => reader.read_all().unwrap(),
        Content::Stream { body, length } => {
            let bytes = body.collect().await.unwrap().to_bytes();
            assert_eq!(bytes.len() as u64, length);
            bytes
        }
        other => panic!("{other:?}"),
    }
}

fn find(store: &Store, content: BlobContent, range: Range<u64>) -> Located {
    store.read(|view| locate(view, content, range)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Compares any range of a list with the concatenated blocks.
    #[test]
    fn a_range_of_blocks_is_a_range_of_their_bytes(
        lengths in prop::collection::vec(0_usize..40, 1..300),
        at in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = store();
            let total: usize = lengths.iter().sum();
            let (content, _) = list(&store, lengths).await;
            let (a, b) = (at.index(total + 1), to.index(total + 1));
            let (from, to) = (a.min(b), a.max(b));
            let located = find(&store, content, from as u64..to as u64);
            prop_assert_eq!(located.read_all(&store).unwrap(), bytes(from, to - from));
            let content = located.into_content(&store);
            prop_assert_eq!(received(content).await, bytes(from, to - from));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn the_last_holder_frees_every_block() {
    let store = store();
    let (content, payloads) = list(&store, vec![10; 200]).await;
    commit(&store, move |tx| {
        retain(tx, content)?;
        retain(tx, content)?;
        release(tx, content)?;
        release(tx, content)
    })
    .await;
    let is_there = |id| store.read(|view| store::location(view, id).is_ok());
    assert!(payloads.iter().copied().all(is_there));
    commit(&store, move |tx| release(tx, content)).await;
    assert!(!payloads.iter().copied().any(is_there));
    assert!(store.read(|view| blocks::read(view, content)).is_err());
}

#[tokio::test]
async fn lists_round_trip_and_an_empty_list_has_no_content() {
    let store = store();
    let lengths = vec![3, 0, 5];
    let (content, _) = list(&store, lengths.clone()).await;
    let read = store.read(|view| blocks::read(view, content)).unwrap();
    let found: Vec<usize> = read.iter().map(|block| block.length as usize).collect();
    assert_eq!(found, lengths);
    assert_eq!(list(&store, Vec::new()).await.0, BlobContent::Empty);
    let none = find(&store, BlobContent::Empty, 0..0).into_content(&store);
    assert!(received(none).await.is_empty());
}

/// Small blocks beyond the limit are looked up when they are sent: the bytes are the same, and a
/// blob that is deleted meanwhile breaks the response off instead of garbling it.
#[tokio::test]
async fn blob_of_many_small_blocks_is_not_buffered_whole() {
    const BLOCK: usize = 16 * 1024;
    const COUNT: usize = 300;
    let store = store();
    let (content, _) = list(&store, vec![BLOCK; COUNT]).await;
    let whole = 0..(BLOCK * COUNT) as u64;
    let (sent, cut) = (
        find(&store, content, whole.clone()).into_content(&store),
        find(&store, content, whole).into_content(&store),
    );
    assert_eq!(received(sent).await, bytes(0, BLOCK * COUNT));
    commit(&store, move |tx| release(tx, content)).await;
    let Content::Stream { body, .. } = cut else {
        panic!("many blocks are streamed")
    };
    assert!(body.collect().await.is_err());
}

#[tokio::test]
async fn small_payload_is_in_memory_and_large_one_is_streamed() {
    let store = store();
    let small = commit(&store, |tx| {
        store::adopt(tx, Staged::inline(bytes(0, 100))?)
    })
    .await;
    let content = BlobContent::Payload(small);
    let part = find(&store, content, 10..20).into_content(&store);
    assert!(matches!(&part, Content::Bytes(_)));
    assert_eq!(received(part).await, bytes(10, 10));
    let mut writer = store.stage(200_000).unwrap();
    writer.write(&bytes(0, 200_000)).unwrap();
    let staged = writer.finish().await.unwrap();
    let large = commit(&store, |tx| store::adopt(tx, staged)).await;
    let part = find(&store, BlobContent::Payload(large), 65_000..131_100).into_content(&store);
    assert!(matches!(&part, Content::Payload(_)));
    assert_eq!(received(part).await, bytes(65_000, 66_100));
}

/// A step on one of several blobs that began as one.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Appends bytes to this blob.
    Append(usize, usize),
    /// Makes this blob a copy of that one.
    Copy(usize, usize),
    /// Empties this blob.
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_usize, 1..90_usize).prop_map(|(blob, blocks)| Step::Append(blob, blocks)),
        2 => (0..3_usize, 0..3_usize).prop_map(|(to, from)| Step::Copy(to, from)),
        1 => (0..3_usize).prop_map(Step::Drop),
    ]
}

/// A blob as stored, and its expected bytes.
#[derive(Clone)]
struct Kept {
    content: BlobContent,
    bytes: Vec<u8>,
}

async fn take(store: &Store, blobs: &mut [Kept], step: Step, next: &mut u8) {
    match step {
        Step::Append(blob, blocks) => {
            for _ in 0..blocks {
                *next = next.wrapping_add(1);
                let (content, byte) = (blobs[blob].content, *next);
                let length = blobs[blob].bytes.len() as u64;
                let done = store.commit(move |tx, stamp| {
                    let payload = store::adopt(tx, Staged::inline(Bytes::from(vec![byte]))?)?;
                    let block = CommittedBlock {
                        id: Vec::new(),
                        length: 1,
                        payload: Some(payload),
                    };
                    Ok(append(tx, content, length, block, stamp.tick.ticks())?)
                });
                blobs[blob].content = done.await.unwrap();
                blobs[blob].bytes.push(byte);
            }
        }
        Step::Copy(to, from) => {
            let (old, new) = (blobs[to].content, blobs[from].content);
            commit(store, move |tx| {
                retain(tx, new)?;
                release(tx, old)
            })
            .await;
            blobs[to] = blobs[from].clone();
        }
        Step::Drop(blob) => {
            let old = blobs[blob].content;
            commit(store, move |tx| release(tx, old)).await;
            blobs[blob] = Kept {
                content: BlobContent::Empty,
                bytes: Vec::new(),
            };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Blobs that share a list and keep growing never see each other's blocks, and when all are
    /// gone so is every payload.
    #[test]
    fn blobs_that_share_a_list_grow_independently(steps in prop::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = store();
            let empty = Kept { content: BlobContent::Empty, bytes: Vec::new() };
            let mut blobs = vec![empty; 3];
            let mut next = 0;
            for step in steps {
                take(&store, &mut blobs, step, &mut next).await;
                for blob in &blobs {
                    let length = blob.bytes.len();
                    prop_assert_eq!(blob.content.blocks() as usize, length);
                    let found = find(&store, blob.content, 0..length as u64);
                    let found = found.read_all(&store).unwrap();
                    prop_assert_eq!(found.as_ref(), blob.bytes.as_slice());
                    let listed = store.read(|view| blocks::read(view, blob.content)).unwrap();
                    prop_assert_eq!(listed.len(), length);
                }
            }
            for blob in 0..3 {
                take(&store, &mut blobs, Step::Drop(blob), &mut next).await;
            }
            let payload = |id: u64| store.read(|view| store::location(view, PayloadId(id)));
            prop_assert!((1..4_000).all(|id| payload(id).is_err()));
            Ok(())
        })?;
    }
}
