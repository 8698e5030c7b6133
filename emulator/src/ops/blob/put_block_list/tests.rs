//! Tests the largest lists, which are built without sending each block.

use smalt_protocol::limits::BLOCKS_COMMITTED_MAX;
use smalt_protocol::xml::BlockSource;

use super::super::testing::{call, run, store};
use super::*;
use crate::ops::lookup::BlobName;
use crate::records::{BlockRecord, Record, UncommittedRecord};
use crate::store::{self, PayloadId, Staged, Store};

const TEXT: &str = "12345678";

fn id(at: usize) -> Vec<u8> {
    format!("{at:064}").into_bytes()
}

/// Stores `blocks` uncommitted blocks with ids of the maximum length.
async fn keep(store: &Store, blocks: usize) {
    let name = BlobName::of(&call(&[], &[])).unwrap();
    let kept = store.commit(move |tx, stamp| {
        let generation = name.container.find(tx, stamp.now)?.generation;
        for at in 0..blocks {
            let payload = store::adopt(tx, Staged::inline(TEXT.into())?)?;
            let block = BlockRecord {
                length: TEXT.len() as u64,
                payload: Some(payload),
            };
            block.save(tx, keys::block(generation, &name.blob, &id(at)))?;
        }
        let record = UncommittedRecord {
            encryption: None,
            created: stamp.now,
            touched: stamp.now,
            blocks: u32::try_from(blocks).unwrap(),
            id_length: 64,
        };
        record.save(tx, keys::uncommitted(generation, &name.blob))?;
        Ok(())
    });
    kept.await.unwrap();
}

async fn commit(store: &Store, entries: Vec<Entry>) -> BlobRecord {
    let mut operation = PutBlockList::parse(&call(&[], &[])).unwrap();
    operation.entries = entries;
    run(store, operation).await.unwrap().blob
}

fn payloads(store: &Store) -> usize {
    let is_there = |number: &u64| {
        let id = PayloadId(*number);
        store.read(|view| store::location(view, id)).is_ok()
    };
    (1..=BLOCKS_COMMITTED_MAX as u64).filter(is_there).count()
}

#[tokio::test]
async fn fifty_thousand_blocks_commit_at_once_without_loss() {
    let store = store().await;
    keep(&store, BLOCKS_COMMITTED_MAX).await;
    let all = |source| {
        let entries = (0..BLOCKS_COMMITTED_MAX).map(|at| (source, id(at)));
        entries.collect::<Vec<_>>()
    };
    let blob = commit(&store, all(BlockSource::Uncommitted)).await;
    assert_eq!(blob.length, 8 * BLOCKS_COMMITTED_MAX as u64);
    // The same blocks again: the new list takes over the references of the old one.
    let again = commit(&store, all(BlockSource::Latest)).await;
    assert_eq!(again.length, blob.length);
    assert_eq!(payloads(&store), BLOCKS_COMMITTED_MAX);
    // Half of the blocks: the others are freed.
    let mut half = all(BlockSource::Committed);
    half.truncate(BLOCKS_COMMITTED_MAX / 2);
    commit(&store, half).await;
    assert_eq!(payloads(&store), BLOCKS_COMMITTED_MAX / 2);
    commit(&store, Vec::new()).await;
    assert_eq!(payloads(&store), 0);
}

/// A list that a snapshot shares keeps its references.
#[tokio::test]
async fn shared_list_keeps_its_blocks() {
    let store = store().await;
    keep(&store, 3).await;
    let list = |ids: &[usize]| {
        ids.iter()
            .map(|at| (BlockSource::Latest, id(*at)))
            .collect()
    };
    commit(&store, list(&[0, 1, 2])).await;
    let snapshot = super::super::snapshot::SnapshotBlob::parse(&call(&[], &[])).unwrap();
    run(&store, snapshot).await.unwrap();
    commit(&store, list(&[2, 2])).await;
    commit(&store, list(&[2])).await;
    assert_eq!(payloads(&store), 3);
    commit(&store, Vec::new()).await;
    assert_eq!(payloads(&store), 3);
}

#[tokio::test]
async fn blocks_not_in_the_list_are_freed() {
    let store = store().await;
    keep(&store, 10).await;
    let twice = vec![
        (BlockSource::Latest, id(3)),
        (BlockSource::Latest, id(3)),
        (BlockSource::Latest, id(4)),
    ];
    commit(&store, twice).await;
    assert_eq!(payloads(&store), 2);
    commit(&store, vec![(BlockSource::Committed, id(3))]).await;
    assert_eq!(payloads(&store), 1);
    commit(&store, Vec::new()).await;
    assert_eq!(payloads(&store), 0);
}
