//! Tests of the operation context (request ids, muting) and of conditions, which are never empty.

use super::service::{Service, blob, cx, reply};
use crate::port::*;
use crate::{ErrorKind, PortError};

async fn sent_id(cx: CallContext) -> Result<Option<String>, PortError> {
    let service = Service::with([reply(201, &[], "")]);
    service.storage().create_queue(&cx, "jobs").await?;
    let seen = service.seen();
    Ok(seen[0].header("x-ms-client-request-id").map(str::to_owned))
}

/// G7, G9: the caller's id is sent unchanged, with muting inside it; without an id, none is sent.
#[tokio::test]
async fn request_ids() {
    assert_eq!(sent_id(cx()).await.unwrap(), None);
    let context = CallContext {
        client_request_id: r#"{"worker":"w1","page":3}"#.to_owned(),
        muted: false,
    };
    let plain = sent_id(context.clone()).await.unwrap().unwrap();
    assert_eq!(plain, context.client_request_id);
    let context = CallContext {
        muted: true,
        ..context
    };
    let muted = sent_id(context).await.unwrap().unwrap();
    assert!(CallContext::safe(&muted).muted);
}

/// DG6: more than 1 KiB is rejected before anything is sent.
#[tokio::test]
async fn long_request_ids_are_rejected() {
    let context = CallContext {
        client_request_id: "x".repeat(1025),
        muted: false,
    };
    assert_eq!(sent_id(context).await.unwrap_err().kind, ErrorKind::Invalid);
}

/// Listings pass several layers of the SDK, and the context reaches the request.
#[tokio::test]
async fn request_ids_reach_listings() {
    let service = Service::with([reply(
        200,
        &[],
        "<EnumerationResults><Blobs/></EnumerationResults>",
    )]);
    let context = CallContext {
        client_request_id: "list-1".to_owned(),
        muted: false,
    };
    let storage = service.storage();
    storage
        .list_blobs(&context, "cont", &ListBlobs::default())
        .await
        .unwrap();
    assert_eq!(
        service.seen()[0].header("x-ms-client-request-id"),
        Some("list-1")
    );
}

/// G13: an empty ETag is not sent as a condition.
#[tokio::test]
async fn empty_tags_are_never_sent() {
    for tag in ["", " "] {
        let service = Service::with([reply(202, &[], "")]);
        let conditions = Conditions::matching(&Tag(tag.to_owned()));
        let storage = service.storage();
        let kept = DeleteSnapshots::Refuse;
        storage
            .delete_blob(&cx(), &blob(), &conditions, kept)
            .await
            .unwrap();
        assert_eq!(service.seen()[0].header("if-match"), None);
    }
}
