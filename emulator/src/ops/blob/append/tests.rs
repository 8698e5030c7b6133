//! Tests positions by table, and the largest append blob, which is built without sending each
//! block.

use super::super::testing::{call, run, store};
use super::create::CreateAppendBlob;
use super::*;
use crate::operation::Write;
use crate::records::{BlobContent, Record};
use crate::store::Store;

#[test]
fn positions_are_checked_against_length() {
    let (position, size) = (
        ErrorCode::AppendPositionConditionNotMet,
        ErrorCode::MaxBlobSizeConditionNotMet,
    );
    for (at, most, added, expected) in [
        (None, None, 5, None),
        (Some(10), None, 5, None),
        (Some(9), None, 5, Some(position)),
        (Some(11), Some(1), 5, Some(position)),
        (None, Some(15), 5, None),
        (None, Some(14), 5, Some(size)),
        (None, Some(9), 0, Some(size)),
        (None, Some(u64::MAX), u64::MAX, None),
    ] {
        let judged = Position { at, most }.check(10, added);
        let code = judged.err().map(|error| error.code());
        assert_eq!(code, expected, "{at:?} {most:?} {added}");
    }
}

#[test]
fn positions_must_be_numbers() {
    for text in ["-1", "x", "1.5", "18446744073709551616"] {
        for name in [
            "x-ms-blob-condition-appendpos",
            "x-ms-blob-condition-maxsize",
        ] {
            let refused = Position::of(&call(&[], &[(name, text)])).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidHeaderValue, "{text}");
        }
    }
    let none = Position::of(&call(&[], &[("x-ms-blob-condition-maxsize", "")]));
    assert_eq!(none.unwrap(), Position::default());
}

/// Creates the blob with `count` blocks of one byte each.
async fn with_blocks(store: &Store, count: usize) {
    let create = CreateAppendBlob::parse(&call(&[], &[])).unwrap();
    run(store, create).await.unwrap();
    let name = BlobName::of(&call(&[], &[])).unwrap();
    let filled = store.commit(move |tx, stamp| {
        let Found {
            container,
            mut blob,
        } = name.find(tx, stamp.now)?;
        let blocks: Vec<_> = (0..count)
            .map(|_| CommittedBlock {
                id: Vec::new(),
                length: 1,
                payload: None,
            })
            .collect();
        blob.content = content::blocks::write(tx, stamp.tick.ticks(), &blocks)?;
        blob.length = count as u64;
        blob.save(tx, name.key(container.generation))?;
        Ok(())
    });
    filled.await.unwrap();
}

#[tokio::test]
async fn blob_accepts_at_most_fifty_thousand_blocks() {
    let store = store().await;
    with_blocks(&store, BLOCKS_COMMITTED_MAX - 1).await;
    let append = || {
        let append = Append::of(&call(&[], &[])).unwrap();
        store.commit(move |tx, stamp| {
            let found = append.check(tx, stamp, 1)?;
            let hashes = Hashes {
                md5: None,
                crc64: [0; 8],
                by_md5: false,
            };
            append.apply(found, Staged::inline("x".into())?, hashes, tx, stamp)
        })
    };
    let last = append().await.unwrap();
    assert_eq!(last.offset, 49_999);
    let count = last.blob.content.blocks();
    assert_eq!(count as usize, BLOCKS_COMMITTED_MAX);
    assert!(matches!(last.blob.content, BlobContent::Blocks { .. }));
    let refused = append().await.err().unwrap();
    assert_eq!(refused.code(), ErrorCode::BlockCountExceedsLimit);
}
