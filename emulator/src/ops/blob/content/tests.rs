//! Content through a store: shared, counted, found again in every range.

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

/// Bytes that differ from place to place.
fn bytes(from: usize, length: usize) -> Bytes {
    (from..from + length).map(|at| (at % 251) as u8).collect()
}

/// Writes a list of blocks of these lengths; their bytes run on from one to the next.
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
    /// Any range of a list is what the blocks in a row have there.
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
async fn lists_read_back_and_an_empty_one_is_no_content() {
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

/// Beyond what is held, small blocks are looked up when they are sent: the bytes are the same, and
/// a blob that is deleted meanwhile breaks the answer off instead of garbling it.
#[tokio::test]
async fn a_blob_of_many_small_blocks_is_not_held_whole() {
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
async fn one_small_payload_is_at_hand_and_a_large_one_is_streamed() {
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
