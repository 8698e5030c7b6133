//! Tests of sleeves: what their operations send, and which ETag.

use std::time::Duration;

use bytes::Bytes;

use super::service::{Service, blob, cut, refuse, reply};
use crate::port::*;
use crate::{Accounts, BlobSleeve, ContainerSleeve, CopyFrom, ErrorKind, StorageContext};

const LAST_MODIFIED: (&str, &str) = ("Last-Modified", "Sat, 21 Nov 2026 09:00:00 GMT");

fn tagged(status: u16, etag: &str) -> std::io::Result<http::Response<Bytes>> {
    reply(status, &[("ETag", etag)], "")
}

fn head(etag: &str) -> std::io::Result<http::Response<Bytes>> {
    let head = [
        ("ETag", etag),
        LAST_MODIFIED,
        ("Content-Length", "5"),
        ("x-ms-blob-type", "BlockBlob"),
    ];
    reply(200, &head, "")
}

fn context() -> StorageContext {
    CallContext::safe(r#"{"job":7}"#).into()
}

async fn on_blob<T>(service: &Service, work: impl AsyncFnOnce(BlobSleeve<'_>) -> T) -> T {
    let accounts: Accounts = [service.storage()].into_iter().collect();
    accounts
        .serve(async |all| work(all.blob("acct", &blob(), &context()).unwrap()).await)
        .await
}

async fn on_container<T>(service: &Service, work: impl AsyncFnOnce(ContainerSleeve<'_>) -> T) -> T {
    let accounts: Accounts = [service.storage()].into_iter().collect();
    accounts
        .serve(async |all| work(all.container("acct", "cont", &context()).unwrap()).await)
        .await
}

/// G11, G13, G14, DG1, DG2: the walk-through of the source document. The first request sends no
/// ETag, the tracked delete sends that of the response before it, and after the delete there is
/// none.
#[tokio::test]
async fn etags_follow_the_responses() {
    let service = Service::with([head("\"1\""), reply(202, &[], ""), head("\"2\"")]);
    on_blob(&service, async |sleeve| {
        assert!(!sleeve.context().is_tracking(), "line A");
        assert_eq!(sleeve.context().etag(), None, "line A makes no request");
        let (_, sleeve) = sleeve.properties().await.unwrap();
        assert_eq!(sleeve.context().etag(), Some(&Tag("\"1\"".to_owned())));
        let kept = DeleteSnapshots::Refuse;
        let sleeve = sleeve.tracking(true).delete(kept).await.unwrap();
        assert_eq!(sleeve.context().etag(), None, "a delete returns no ETag");
        let (_, sleeve) = sleeve.tracking(false).properties().await.unwrap();
        assert_eq!(sleeve.context().etag(), Some(&Tag("\"2\"".to_owned())));
        assert_eq!(sleeve.context().call(), context().call(), "the id stays");
    })
    .await;
    let seen = service.seen();
    let sent: Vec<_> = seen.iter().map(|it| it.header("if-match")).collect();
    assert_eq!(sent, [None, Some("\"1\""), None]);
    for request in &seen {
        assert_eq!(
            request.header("x-ms-client-request-id"),
            Some("{\"job\":7}")
        );
    }
}

/// G1, G13: every operation of a blob, tracked: reads and writes send the ETag before, and the
/// context has the one after. A tracked Set Blob Tier is refused, because the service compares no
/// ETag there.
#[tokio::test]
async fn tracked_operations_of_a_blob() {
    let body = [
        ("ETag", "\"2\""),
        LAST_MODIFIED,
        ("Content-Range", "bytes 0-4/5"),
        ("Content-Length", "5"),
        ("x-ms-blob-type", "BlockBlob"),
    ];
    let script = [
        tagged(201, "\"1\""),
        reply(206, &body, "hello"),
        tagged(200, "\"3\""),
        tagged(200, "\"4\""),
        head("\"5\""),
        reply(200, &[], ""),
    ];
    let service = Service::with(script);
    on_blob(&service, async |sleeve| {
        let put = PutBlob::default();
        let sleeve = sleeve
            .create(Bytes::from_static(b"hello"), &put)
            .await
            .unwrap();
        let (read, sleeve) = sleeve.tracking(true).read(5).await.unwrap();
        assert_eq!(read.content, "hello");
        let metadata = Metadata::from([("a".to_owned(), "b".to_owned())]);
        let sleeve = sleeve.set_metadata(&metadata).await.unwrap();
        let headers = BlobHeaders {
            content_type: Some("video/mp4".to_owned()),
            content_md5: Some("XUFAKrxLKna5cZ2REBfFkg==".to_owned()),
            ..BlobHeaders::default()
        };
        let sleeve = sleeve.set_headers(&headers).await.unwrap();
        let (_, sleeve) = sleeve.properties().await.unwrap();
        let refused = sleeve.set_tier("Cool").await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid);
        let sleeve = sleeve.tracking(false).set_tier("Cool").await.unwrap();
        assert_eq!(sleeve.context().etag(), Some(&Tag("\"5\"".to_owned())));
    })
    .await;
    let url = "http://127.0.0.1:10000/acct/cont/b.txt";
    let expected = [
        format!(
            "PUT {url}\ncontent-length: 5\ncontent-type: application/octet-stream\n\
             x-ms-blob-type: BlockBlob\nhello"
        ),
        format!("GET {url}\nif-match: \"1\"\nrange: bytes=0-5"),
        format!("PUT {url}?comp=metadata\ncontent-length: 0\nif-match: \"2\"\nx-ms-meta-a: b"),
        format!(
            "PUT {url}?comp=properties\ncontent-length: 0\nif-match: \"3\"\n\
             x-ms-blob-content-md5: XUFAKrxLKna5cZ2REBfFkg==\nx-ms-blob-content-type: video/mp4"
        ),
        format!("HEAD {url}\nif-match: \"4\""),
        format!("PUT {url}?comp=tier\ncontent-length: 0\nx-ms-access-tier: Cool"),
    ];
    assert_eq!(service.texts(), expected);
}

/// G1, G2: every operation of a container. Its public access changes without its stored policies.
#[tokio::test]
async fn operations_of_a_container() {
    let policies = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier>\
        <Id>p1</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>\
        </SignedIdentifiers>";
    let script = [
        tagged(201, "\"1\""),
        reply(409, &[("x-ms-error-code", "ContainerAlreadyExists")], ""),
        reply(
            200,
            &[
                ("ETag", "\"2\""),
                ("x-ms-blob-public-access", "blob"),
                ("x-ms-meta-a", "b"),
            ],
            "",
        ),
        reply(200, &[("Content-Type", "application/xml")], policies),
        tagged(200, "\"3\""),
        reply(202, &[], ""),
    ];
    let service = Service::with(script);
    on_container(&service, async |sleeve| {
        let (created, sleeve) = sleeve.create(PublicAccess::Private).await.unwrap();
        let (again, sleeve) = sleeve.create(PublicAccess::Blob).await.unwrap();
        assert_eq!((created, again), (true, false));
        let (properties, sleeve) = sleeve.properties().await.unwrap();
        let expected = ContainerProperties {
            etag: Tag("\"2\"".to_owned()),
            access: PublicAccess::Blob,
            metadata: Metadata::from([("a".to_owned(), "b".to_owned())]),
        };
        assert_eq!(properties, expected);
        let refused = sleeve.tracking(true).delete().await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid);
        let sleeve = sleeve.set_access(PublicAccess::Container).await.unwrap();
        assert_eq!(sleeve.context().etag(), Some(&Tag("\"3\"".to_owned())));
        let sleeve = sleeve.delete().await.unwrap();
        assert_eq!(sleeve.context().etag(), None);
    })
    .await;
    let texts = service.texts();
    let url = "http://127.0.0.1:10000/acct/cont?";
    assert_eq!(
        texts[0],
        format!("PUT {url}restype=container\ncontent-length: 0")
    );
    let blob = "content-length: 0\nx-ms-blob-public-access: blob";
    assert_eq!(texts[1], format!("PUT {url}restype=container\n{blob}"));
    assert_eq!(texts[2], format!("GET {url}restype=container"));
    assert_eq!(texts[3], format!("GET {url}comp=acl&restype=container"));
    let access = "x-ms-blob-public-access: container";
    assert!(
        texts[4].contains(access) && texts[4].contains("<Id>p1</Id>"),
        "{}",
        texts[4]
    );
    assert_eq!(texts[5], format!("DELETE {url}restype=container"));
}

/// G1, DS3: a copy is awaited, and a source that tracks its ETag is copied only as that version.
#[tokio::test(start_paused = true)]
async fn copies_are_awaited() {
    let copied = |status: &str| {
        let head = [
            ("ETag", "\"3\""),
            LAST_MODIFIED,
            ("Content-Length", "5"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-copy-id", "c1"),
            ("x-ms-copy-status", status),
        ];
        reply(200, &head, "")
    };
    let started = [
        ("ETag", "\"2\""),
        ("x-ms-copy-id", "c1"),
        ("x-ms-copy-status", "pending"),
    ];
    let script = [
        head("\"1\""),
        reply(202, &started, ""),
        copied("pending"),
        copied("success"),
    ];
    let service = Service::with(script);
    on_blob(&service, async |target| {
        let (_, source) = target.clone().properties().await.unwrap();
        let (properties, target) = target
            .copy_from(&source.tracking(true), &CopyFrom::default())
            .await
            .unwrap();
        assert_eq!(properties.copy.unwrap().status, CopyStatus::Success);
        assert_eq!(target.context().etag(), Some(&Tag("\"3\"".to_owned())));
    })
    .await;
    let copy = &service.seen()[1];
    assert_eq!(copy.header("x-ms-source-if-match"), Some("\"1\""));
    assert_eq!(copy.header("if-match"), None);
    let source = copy.header("x-ms-copy-source").unwrap();
    assert!(source.contains("sp=r&"), "{source}");
}

/// G11, DG3: a changed resource starts the sequence again from its first step, at most five times,
/// with jittered delays; other errors do not.
#[tokio::test(start_paused = true)]
async fn sequences_start_again_within_bounds() {
    let changed = || refuse(412, "ConditionNotMet");
    let delete = async |service: &Service| {
        on_blob(service, async |sleeve| {
            let stale = sleeve.tracking(true);
            stale
                .from_start(async |sleeve| {
                    let (_, sleeve) = sleeve.properties().await?;
                    sleeve.tracking(true).delete(DeleteSnapshots::Refuse).await
                })
                .await
                .map(drop)
        })
        .await
    };
    let service = Service::with([head("\"1\""), changed(), head("\"2\""), reply(202, &[], "")]);
    delete(&service).await.unwrap();
    let seen = service.seen();
    let sent: Vec<_> = seen.iter().map(|it| it.header("if-match")).collect();
    assert_eq!(sent, [None, Some("\"1\""), None, Some("\"2\"")]);

    let rounds = (0..6).flat_map(|_| [head("\"1\""), changed()]);
    let service = Service::with(rounds);
    let error = delete(&service).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ConditionNotMet);
    let waits = service.waits();
    assert_eq!(waits.len(), 9, "five rounds of two requests");
    assert!(waits.iter().any(|wait| *wait > Duration::ZERO));

    let service = Service::with([head("\"1\""), refuse(404, "BlobNotFound")]);
    assert_eq!(
        delete(&service).await.unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(service.seen().len(), 2);
}

/// DG3: a write that may have been executed does not start again by itself.
#[tokio::test(start_paused = true)]
async fn unknown_outcomes_do_not_start_again() {
    let service = Service::with([head("\"1\""), cut(), refuse(412, "ConditionNotMet")]);
    let error = on_blob(&service, async |sleeve| {
        sleeve
            .from_start(async |sleeve| {
                let (_, sleeve) = sleeve.properties().await?;
                sleeve.tracking(true).set_metadata(&Metadata::new()).await
            })
            .await
            .unwrap_err()
    });
    assert_eq!(error.await.kind, ErrorKind::OutcomeUnknown);
    assert_eq!(service.seen().len(), 3);
}

/// G14: the account signs for encoders: a blob or a container, with the permissions asked for.
#[tokio::test]
async fn signed_urls_for_encoders() {
    let service = Service::with([]);
    let url = on_blob(&service, async |sleeve| {
        sleeve
            .signed_url("rw", Duration::from_secs(60))
            .await
            .unwrap()
    });
    let url = url.await;
    assert!(
        url.starts_with("http://127.0.0.1:10000/acct/cont/b.txt?sv="),
        "{url}"
    );
    assert!(url.contains("sr=b&sp=rw&"), "{url}");
    let url = on_container(&service, async |sleeve| {
        sleeve
            .signed_url("rcl", Duration::from_secs(60))
            .await
            .unwrap()
    });
    let url = url.await;
    assert!(
        url.starts_with("http://127.0.0.1:10000/acct/cont?sv="),
        "{url}"
    );
    assert!(url.contains("sr=c&sp=rcl&"), "{url}");
    assert!(service.seen().is_empty());
}
