//! Tests with copies that a rule of the control endpoint holds pending.

use smalt_protocol::Metadata;

use super::super::guard;
use super::super::pending;
use super::super::replace::{NewBlob, replace};
use super::super::testing::{call, run, store};
use super::*;
use crate::records::{
    Access, BlobContent, BlobKind, BlobRecord, ContentHeaders, CopyRecord, PendingCopy,
};
use crate::store::{self, Staged, Store};

const ID: &str = "4ffa938b-b8bc-4c1a-89f5-3fa04737bcbc";
const OTHER_ID: &str = "4ffa938b-b8bc-4c1a-89f5-3fa04737bcbd";

/// Writes a blob that a pending copy has begun to fill.
async fn begin(store: &Store) -> BlobRecord {
    let name = BlobName::of(&call(&[], &[])).unwrap();
    let begun = store.commit(move |tx, stamp| {
        let place = name.find_place(tx, stamp.now)?;
        let staged = Staged::inline("all of it".into())?;
        let new = NewBlob {
            encryption: None,
            sequence_number: 0,
            marks: Default::default(),
            kind: BlobKind::Block,
            length: 0,
            content: BlobContent::Empty,
            headers: ContentHeaders::default(),
            metadata: Metadata::default(),
            tags: Vec::new(),
            access: Access::default(),
            copy: Some(CopyRecord {
                id: ID.to_owned(),
                source: "http://elsewhere/c/b".to_owned(),
                status: CopyStatus::Pending,
                progress: (4, 8),
                completed: None,
                description: None,
                pending: Some(PendingCopy {
                    began: stamp.now,
                    ends: stamp.now.plus_s(10),
                    failure: None,
                    content: BlobContent::Payload(store::adopt(tx, staged)?),
                    content_md5: None,
                    thaws: false,
                }),
            }),
        };
        replace(tx, &name, &place, new, stamp)
    });
    begun.await.unwrap()
}

fn abort(id: &str) -> AbortCopy {
    let headers = [("x-ms-copy-action", "abort")];
    AbortCopy::parse(&call(&[("copyid", id)], &headers)).unwrap()
}

fn found(store: &Store) -> BlobRecord {
    let name = BlobName::of(&call(&[], &[])).unwrap();
    let now = store.now();
    store.read(|view| name.find(view, now)).unwrap().blob
}

#[tokio::test]
async fn a_pending_copy_is_aborted_by_its_id() {
    let store = store().await;
    let begun = begin(&store).await;
    let refused = guard::check_changeable(&begun).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::PendingCopyOperation);
    let wrong = run(&store, abort(OTHER_ID)).await.unwrap_err();
    assert_eq!(
        (wrong.status(), wrong.code()),
        (409, ErrorCode::CopyIdMismatch)
    );

    run(&store, abort(ID)).await.unwrap();
    let left = found(&store);
    assert_eq!((left.length, left.content), (0, BlobContent::Empty));
    assert_ne!(left.etag, begun.etag);
    let copy = left.copy.clone().unwrap();
    assert_eq!((copy.status, copy.pending), (CopyStatus::Aborted, None));
    assert!(copy.completed.is_some());
    assert_eq!(guard::check_changeable(&left), Ok(()));
    let [_, BlobContent::Payload(payload)] = pending::held(&begun) else {
        panic!("no payload");
    };
    assert!(store.read(|view| store::location(view, payload)).is_err());
    let again = run(&store, abort(ID)).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::NoPendingCopyOperation);
}

#[tokio::test]
async fn pending_copy_rejects_other_writes() {
    let store = store().await;
    begin(&store).await;
    let list = super::super::put_block_list::PutBlockList::parse(&call(&[], &[])).unwrap();
    let snapshot = super::super::snapshot::SnapshotBlob::parse(&call(&[], &[])).unwrap();
    let list = run(&store, list).await.map(drop).unwrap_err();
    let snapshot = run(&store, snapshot).await.map(drop).unwrap_err();
    for error in [list, snapshot] {
        assert_eq!(error.code(), ErrorCode::PendingCopyOperation);
    }
}
