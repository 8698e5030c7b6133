//! Tests of snapshots, index tags and broken leases: requests and responses.

use super::service::{Service, blob, cx, refuse, reply};
use crate::ErrorKind;
use crate::port::*;

const URL: &str = "http://127.0.0.1:10000/acct/cont";

fn page(entries: &str) -> String {
    format!("<EnumerationResults><Blobs>{entries}</Blobs><NextMarker /></EnumerationResults>")
}

/// Snapshots precede their blob; a blob with a longer name is a different one.
#[tokio::test]
async fn snapshots_are_the_first_entries_of_a_name() {
    let snapshot = "<Blob><Name>b.txt</Name><Snapshot>2026-11-21T10:00:00.0000000Z</Snapshot>\
        <Properties /></Blob>";
    let plain = "<Blob><Name>b.txt</Name><Properties /></Blob>";
    let longer = snapshot.replace("b.txt", "b.txt2");
    for (entries, expected) in [
        (snapshot, true),
        (plain, false),
        (&longer, false),
        ("", false),
    ] {
        let service = Service::with([reply(200, &[], &page(entries))]);
        let found = service.storage().has_snapshots(&cx(), &blob()).await;
        assert_eq!(found.unwrap(), expected, "{entries}");
        let query = "comp=list&include=snapshots&maxresults=1&prefix=b.txt&restype=container";
        assert_eq!(service.texts(), [format!("GET {URL}?{query}")]);
    }
}

#[tokio::test]
async fn tags_are_read() {
    let tags = "<Tags><TagSet><Tag><Key>project</Key><Value>a b</Value></Tag></TagSet></Tags>";
    let service = Service::with([
        reply(200, &[], tags),
        reply(200, &[], "<Tags><TagSet /></Tags>"),
        refuse(403, "AuthorizationPermissionMismatch"),
    ]);
    let storage = service.storage();
    let read = storage.blob_tags(&cx(), &blob()).await.unwrap();
    assert_eq!(
        read,
        Metadata::from([("project".to_owned(), "a b".to_owned())])
    );
    assert!(storage.blob_tags(&cx(), &blob()).await.unwrap().is_empty());
    let error = storage.blob_tags(&cx(), &blob()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert_eq!(service.texts()[0], format!("GET {URL}/b.txt?comp=tags"));
}

/// Tags and tier of a copy are sent as its own headers.
#[tokio::test]
async fn copy_sends_tags_and_tier() {
    let head = [
        ("ETag", "\"0x4\""),
        ("x-ms-copy-id", "c2"),
        ("x-ms-copy-status", "success"),
    ];
    let service = Service::with([reply(202, &head, "")]);
    let copy = StartCopy {
        source_url: "https://h/c/b".to_owned(),
        source_if_match: None,
        metadata: None,
        conditions: Conditions::default(),
        synchronous: false,
        tags: Some(Metadata::from([("project".to_owned(), "a b".to_owned())])),
        tier: Some("Cool".to_owned()),
    };
    service
        .storage()
        .start_copy(&cx(), &blob(), &copy)
        .await
        .unwrap();
    let text = "PUT {URL}/b.txt\ncontent-length: 0\nx-ms-access-tier: Cool\n\
        x-ms-copy-source: https://h/c/b\nx-ms-tags: project=a%20b";
    assert_eq!(service.texts(), [text.replace("{URL}", URL)]);
}

#[tokio::test]
async fn lease_is_broken_or_absent() {
    let service = Service::with([
        reply(202, &[], ""),
        refuse(409, "LeaseNotPresentWithLeaseOperation"),
        refuse(403, "AuthorizationFailure"),
    ]);
    let storage = service.storage();
    assert!(storage.break_lease(&cx(), &blob()).await.unwrap());
    assert!(!storage.break_lease(&cx(), &blob()).await.unwrap());
    let error = storage.break_lease(&cx(), &blob()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    let text = "PUT {URL}/b.txt?comp=lease\ncontent-length: 0\nx-ms-lease-action: break\n\
        x-ms-lease-break-period: 0";
    assert_eq!(service.texts()[0], text.replace("{URL}", URL));
}
