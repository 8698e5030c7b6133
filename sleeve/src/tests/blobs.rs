//! Tests of every blob and container operation: request and response.

use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_protocol::service::Service as ServiceName;
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::{Sas, SasTarget};
use smalt_protocol::uri::parse_query;

use super::service::{DATE, KEY, Service, blob, cx, date, refuse, reply};
use crate::ErrorKind;
use crate::port::*;

const URL: &str = "http://127.0.0.1:10000/acct/cont";
const HEAD: &[(&str, &str)] = &[
    ("ETag", "\"0x1\""),
    ("Last-Modified", "Sat, 21 Nov 2026 09:00:00 GMT"),
    ("Content-Length", "5"),
    ("Content-Type", "text/plain"),
    ("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="),
    ("x-ms-blob-type", "BlockBlob"),
    ("x-ms-lease-status", "locked"),
    ("x-ms-meta-timetolive", "2026-11-21"),
    ("x-ms-access-tier", "Hot"),
    ("x-ms-tag-count", "2"),
    ("x-ms-copy-id", "c1"),
    ("x-ms-copy-status", "failed"),
    ("x-ms-copy-source", "https://h/c/b?sv=1&sig=secret"),
    ("x-ms-copy-status-description", "404 Gone"),
];

fn properties() -> BlobProperties {
    BlobProperties {
        etag: Tag("\"0x1\"".to_owned()),
        last_modified: Timestamp::parse_rfc1123("Sat, 21 Nov 2026 09:00:00 GMT").unwrap(),
        length: 5,
        content_md5: Some("XUFAKrxLKna5cZ2REBfFkg==".to_owned()),
        content_type: Some("text/plain".to_owned()),
        metadata: Metadata::from([("timetolive".to_owned(), "2026-11-21".to_owned())]),
        lease: LeaseState::Locked,
        kind: BlobKind::Block,
        copy: Some(CopyState {
            id: "c1".to_owned(),
            status: CopyStatus::Failed,
            source: Some("https://h/c/b?sv=1&sig=REDACTED".to_owned()),
            description: Some("404 Gone".to_owned()),
        }),
        access_tier: Some("Hot".to_owned()),
        tag_count: 2,
        tags: None,
    }
}

fn conditions() -> Conditions {
    Conditions {
        if_match: Some(Tag("\"0x1\"".to_owned())),
        if_absent: false,
        lease_id: Some("lease-1".to_owned()),
        if_tags: None,
    }
}

/// A condition on index tags is sent with every conditional write.
#[tokio::test]
async fn conditions_on_index_tags_are_sent() {
    let asked = Conditions {
        if_tags: Some("\"kind\" = 'tmp'".to_owned()),
        ..Conditions::default()
    };
    let service = Service::with([reply(202, &[], "")]);
    let storage = service.storage();
    let (cx, blob) = (cx(), blob());
    let deleted = storage.delete_blob(&cx, &blob, &asked, DeleteSnapshots::Refuse);
    deleted.await.unwrap();
    let seen = service.seen();
    assert_eq!(seen[0].header("x-ms-if-tags"), asked.if_tags.as_deref());
}

#[tokio::test]
async fn get_blob_properties() {
    let service = Service::with([reply(200, HEAD, "")]);
    let found = service
        .storage()
        .blob_properties(&cx(), &blob())
        .await
        .unwrap();
    assert_eq!(found, (properties(), date()));
    assert_eq!(service.texts(), [format!("HEAD {URL}/b.txt")]);
}

#[tokio::test]
async fn get_blob_whole() {
    let mut head = HEAD.to_vec();
    head.extend([
        ("Content-Range", "bytes 0-4/5"),
        ("x-ms-blob-content-md5", "d2hvbGU="),
    ]);
    let service = Service::with([reply(206, &head, "hello")]);
    let got = service
        .storage()
        .get_blob(&cx(), &blob(), 10)
        .await
        .unwrap();
    assert_eq!(got.content, "hello");
    assert_eq!(got.server_time, date());
    let expected = BlobProperties {
        content_md5: Some("d2hvbGU=".to_owned()),
        ..properties()
    };
    assert_eq!(got.properties, expected);
    assert_eq!(
        service.texts(),
        [format!("GET {URL}/b.txt\nrange: bytes=0-10")]
    );
}

/// A range names the version that it is part of, and a shorter answer is an error.
#[tokio::test]
async fn get_blob_range() {
    for (content, accepted) in [("ll", true), ("l", false)] {
        let mut head = HEAD.to_vec();
        head.push(("Content-Range", "bytes 2-3/5"));
        let service = Service::with([reply(206, &head, content)]);
        let version = properties().etag;
        let storage = service.storage();
        let got = storage.get_blob_range(&cx(), &blob(), &version, 2, 2).await;
        assert_eq!(got.is_ok_and(|got| got == "ll"), accepted);
        let range = format!("GET {URL}/b.txt\nif-match: {}\nrange: bytes=2-3", version.0);
        assert_eq!(service.texts(), [range]);
    }
}

/// A blob that is too long is an error, is never truncated, and costs no more than the allowed
/// length.
#[tokio::test]
async fn get_blob_too_long() {
    let mut head = HEAD.to_vec();
    head.extend([("Content-Range", "bytes 0-4/1000000")]);
    let service = Service::with([reply(206, &head, "hello")]);
    let error = service
        .storage()
        .get_blob(&cx(), &blob(), 4)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(
        service.texts(),
        [format!("GET {URL}/b.txt\nrange: bytes=0-4")]
    );
}

/// An empty blob has no valid range.
#[tokio::test]
async fn get_blob_empty() {
    let mut head = HEAD.to_vec();
    head[2] = ("Content-Length", "0");
    let service = Service::with([refuse(416, "InvalidRange"), reply(200, &head, "")]);
    let got = service
        .storage()
        .get_blob(&cx(), &blob(), 10)
        .await
        .unwrap();
    assert_eq!((got.content.len(), got.properties.length), (0, 0));
}

#[tokio::test]
async fn put_blob() {
    let service = Service::with([reply(201, &[("ETag", "\"0x2\"")], "")]);
    let put = PutBlob {
        content_type: Some("text/plain".to_owned()),
        metadata: Metadata::from([("Name".to_owned(), "a b".to_owned())]),
        conditions: conditions(),
    };
    let content = Bytes::from_static(b"hello");
    let written = service
        .storage()
        .put_blob(&cx(), &blob(), content, &put)
        .await
        .unwrap();
    assert_eq!(written.etag, Tag("\"0x2\"".to_owned()));
    assert_eq!(written.server_time, date());
    let expected = "PUT {URL}/b.txt\ncontent-length: 5\ncontent-type: application/octet-stream\n\
        if-match: \"0x1\"\nx-ms-blob-content-type: text/plain\nx-ms-blob-type: BlockBlob\n\
        x-ms-lease-id: lease-1\nx-ms-meta-name: a b\nhello";
    assert_eq!(service.texts(), [expected.replace("{URL}", URL)]);
}

#[tokio::test]
async fn put_blob_only_when_absent() {
    let service = Service::with([refuse(409, "BlobAlreadyExists")]);
    let put = PutBlob {
        conditions: Conditions::absent(),
        ..PutBlob::default()
    };
    let storage = service.storage();
    let error = storage
        .put_blob(&cx(), &blob(), Bytes::new(), &put)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.status),
        (ErrorKind::AlreadyExists, Some(409))
    );
    assert_eq!(error.operation, "Put Blob");
    assert_eq!(error.resource, "acct/cont/b.txt");
    assert_eq!(error.message, "No.");
    let seen = service.seen();
    assert_eq!(seen[0].header("if-none-match"), Some("*"));
    assert_eq!(seen[0].header("if-match"), None);
}

#[tokio::test]
async fn set_blob_metadata() {
    let service = Service::with([reply(200, &[("ETag", "\"0x3\"")], "")]);
    let metadata = Metadata::from([("A".to_owned(), "1".to_owned())]);
    let storage = service.storage();
    let written = storage
        .set_blob_metadata(&cx(), &blob(), &metadata, &conditions())
        .await;
    assert_eq!(written.unwrap().etag, Tag("\"0x3\"".to_owned()));
    let expected = "PUT {URL}/b.txt?comp=metadata\ncontent-length: 0\nif-match: \"0x1\"\n\
        x-ms-lease-id: lease-1\nx-ms-meta-a: 1";
    assert_eq!(service.texts(), [expected.replace("{URL}", URL)]);
}

#[tokio::test]
async fn delete_blob() {
    let service = Service::with([reply(202, &[], ""), reply(202, &[], "")]);
    let storage = service.storage();
    let include = DeleteSnapshots::Include;
    storage
        .delete_blob(&cx(), &blob(), &conditions(), include)
        .await
        .unwrap();
    let refuse = DeleteSnapshots::Refuse;
    storage
        .delete_blob(&cx(), &blob(), &Conditions::default(), refuse)
        .await
        .unwrap();
    let expected = "DELETE {URL}/b.txt\nif-match: \"0x1\"\nx-ms-delete-snapshots: include\n\
        x-ms-lease-id: lease-1";
    let expected = [
        expected.replace("{URL}", URL),
        format!("DELETE {URL}/b.txt"),
    ];
    assert_eq!(service.texts(), expected);
}

#[tokio::test]
async fn copies() {
    let head = |status| {
        let head = [
            ("ETag", "\"0x4\""),
            ("x-ms-copy-id", "c2"),
            ("x-ms-copy-status", status),
        ];
        reply(202, &head, "")
    };
    let service = Service::with([head("pending"), head("success"), reply(204, &[], "")]);
    let storage = service.storage();
    let mut copy = StartCopy {
        source_url: "https://h/c/b?sig=x".to_owned(),
        source_if_match: Some(Tag("\"0x1\"".to_owned())),
        metadata: Some(Metadata::from([("a".to_owned(), "1".to_owned())])),
        conditions: Conditions::absent(),
        synchronous: false,
        tags: None,
        tier: None,
    };
    let started = storage.start_copy(&cx(), &blob(), &copy).await.unwrap();
    let expected = CopyStarted {
        id: "c2".to_owned(),
        status: CopyStatus::Pending,
        etag: Tag("\"0x4\"".to_owned()),
    };
    assert_eq!(started, expected);
    copy.synchronous = true;
    copy.metadata = None;
    let started = storage.start_copy(&cx(), &blob(), &copy).await.unwrap();
    assert_eq!(started.status, CopyStatus::Success);
    storage.abort_copy(&cx(), &blob(), "c2").await.unwrap();
    let asynchronous = "PUT {URL}/b.txt\ncontent-length: 0\nif-none-match: *\n\
        x-ms-copy-source: https://h/c/b?sig=x\nx-ms-meta-a: 1\nx-ms-source-if-match: \"0x1\"";
    let synchronous = "PUT {URL}/b.txt\ncontent-length: 0\nif-none-match: *\n\
        x-ms-copy-source: https://h/c/b?sig=x\nx-ms-requires-sync: true\n\
        x-ms-source-if-match: \"0x1\"";
    let abort = "PUT {URL}/b.txt?comp=copy&copyid=c2\ncontent-length: 0\nx-ms-copy-action: abort";
    let expected = [asynchronous, synchronous, abort].map(|text| text.replace("{URL}", URL));
    assert_eq!(service.texts(), expected);
    assert!(!format!("{copy:?}").contains("sig="));
}

#[tokio::test]
async fn leases() {
    let head = [("x-ms-lease-id", "l1")];
    let service = Service::with([
        reply(201, &head, ""),
        reply(200, &head, ""),
        reply(200, &[], ""),
        refuse(409, "LeaseAlreadyPresent"),
    ]);
    let storage = service.storage();
    let lease = storage
        .acquire_lease(&cx(), &blob(), "l1", 30)
        .await
        .unwrap();
    assert_eq!((lease.id.as_str(), lease.server_time), ("l1", date()));
    assert_eq!(
        storage.renew_lease(&cx(), &blob(), "l1").await.unwrap(),
        lease
    );
    storage.release_lease(&cx(), &blob(), "l1").await.unwrap();
    let taken = storage
        .acquire_lease(&cx(), &blob(), "l1", 60)
        .await
        .unwrap_err();
    assert_eq!(taken.kind, ErrorKind::LeaseTaken);
    let acquire = "PUT {URL}/b.txt?comp=lease\ncontent-length: 0\nx-ms-lease-action: acquire\n\
        x-ms-lease-duration: 30\nx-ms-proposed-lease-id: l1";
    let renew = "PUT {URL}/b.txt?comp=lease\ncontent-length: 0\nx-ms-lease-action: renew\n\
        x-ms-lease-id: l1";
    let release = renew.replace("renew", "release");
    let expected = [acquire, renew, release.as_str()].map(|text| text.replace("{URL}", URL));
    assert_eq!(service.texts()[..3], expected);
    for duration_s in [0, 14, 61, u32::MAX] {
        let error = storage
            .acquire_lease(&cx(), &blob(), "l1", duration_s)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
    assert!(service.seen().is_empty());
}

const PAGE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="http://127.0.0.1:10000/acct/" ContainerName="cont">
<Prefix>a b</Prefix><MaxResults>2</MaxResults><Blobs><Blob><Name>a b/ &amp;x</Name><Properties>
<Creation-Time>Sat, 21 Nov 2026 08:00:00 GMT</Creation-Time>
<Last-Modified>Sat, 21 Nov 2026 09:00:00 GMT</Last-Modified><Etag>0x1</Etag>
<Content-Length>5</Content-Length><Content-Type>text/plain</Content-Type><Content-Encoding />
<Content-MD5>XUFAKrxLKna5cZ2REBfFkg==</Content-MD5><BlobType>BlockBlob</BlobType>
<AccessTier>Hot</AccessTier><TagCount>2</TagCount>
<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState>
<CopyId>c1</CopyId><CopySource>https://h/c/b?sv=1&amp;sig=secret</CopySource>
<CopyStatus>failed</CopyStatus><CopyProgress>0/5</CopyProgress>
<CopyStatusDescription>404 Gone</CopyStatusDescription></Properties>
<Metadata><timetolive>2026-11-21</timetolive></Metadata></Blob>
<Blob><Name Encoded="true">a%20b%EF%BF%BF</Name><Properties>
<Last-Modified>Sat, 21 Nov 2026 09:00:00 GMT</Last-Modified><Etag>"0x2"</Etag>
<Content-Length>0</Content-Length><Content-Type /><Content-MD5 />
<BlobType>AppendBlob</BlobType></Properties><Metadata/></Blob>
</Blobs><NextMarker>m+/2=</NextMarker></EnumerationResults>"#;

/// Names keep spaces, ETags get the quoted form, and the service's time is returned.
#[tokio::test]
async fn list_blobs() {
    let service = Service::with([reply(200, &[], PAGE)]);
    let list = ListBlobs {
        prefix: "a b+".to_owned(),
        marker: Some("m+/1=".to_owned()),
        page_size: 2,
        ..ListBlobs::default()
    };
    let page = service
        .storage()
        .list_blobs(&cx(), "cont", &list)
        .await
        .unwrap();
    assert_eq!(page.server_time, date());
    assert_eq!(page.next_marker.as_deref(), Some("m+/2="));
    assert_eq!(page.blobs.len(), 2);
    assert_eq!(page.blobs[0].name, "a b/ &x");
    assert_eq!(page.blobs[0].properties, properties());
    assert_eq!(page.blobs[1].name, "a b\u{ffff}");
    assert_eq!(page.blobs[1].properties.etag, Tag("\"0x2\"".to_owned()));
    assert_eq!(page.blobs[1].properties.kind, BlobKind::Append);
    assert_eq!(page.blobs[1].properties.copy, None);
    assert_eq!(page.blobs[1].properties.content_md5, None);
    assert_eq!(page.blobs[1].properties.content_type, None);
    let query = "comp=list&include=copy%2Cmetadata&marker=m%2B%2F1%3D&maxresults=2\
        &prefix=a%20b%2B&restype=container";
    assert_eq!(service.texts(), [format!("GET {URL}?{query}")]);
}

/// Index tags are included on request.
#[tokio::test]
async fn list_blobs_with_tags() {
    let tags = "<Tags><TagSet><Tag><Key>k &amp;</Key><Value>v</Value></Tag><Tag><Key>e</Key>\
        <Value /></Tag></TagSet></Tags></Blob><Blob><Name Encoded";
    let page = PAGE.replacen("</Blob>\n<Blob><Name Encoded", tags, 1);
    let service = Service::with([reply(200, &[], &page)]);
    let list = ListBlobs {
        tags: true,
        ..ListBlobs::default()
    };
    let page = service
        .storage()
        .list_blobs(&cx(), "cont", &list)
        .await
        .unwrap();
    let expected = [("e", ""), ("k &", "v")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(
        page.blobs[0].properties.tags,
        Some(Metadata::from(expected))
    );
    assert_eq!(page.blobs[1].properties.tags, None);
    let query = "comp=list&include=copy%2Cmetadata%2Ctags&restype=container";
    assert_eq!(service.texts(), [format!("GET {URL}?{query}")]);
}

#[tokio::test]
async fn list_blobs_to_the_end() {
    let empty = "<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>";
    let service = Service::with([reply(200, &[], empty), reply(200, &[], "<broken")]);
    let storage = service.storage();
    let page = storage
        .list_blobs(&cx(), "cont", &ListBlobs::default())
        .await
        .unwrap();
    assert_eq!((page.blobs.len(), page.next_marker), (0, None));
    let query = "comp=list&include=copy%2Cmetadata&restype=container";
    assert_eq!(service.texts(), [format!("GET {URL}?{query}")]);
    let broken = storage
        .list_blobs(&cx(), "cont", &ListBlobs::default())
        .await
        .unwrap_err();
    assert_eq!(broken.kind, ErrorKind::Refused);
    let large = ListBlobs {
        page_size: 5001,
        ..ListBlobs::default()
    };
    let error = storage.list_blobs(&cx(), "cont", &large).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn create_container() {
    let service = Service::with([reply(201, &[], ""), refuse(409, "ContainerAlreadyExists")]);
    let storage = service.storage();
    assert!(storage.create_container(&cx(), "cont").await.unwrap());
    assert!(!storage.create_container(&cx(), "cont").await.unwrap());
    let request = format!("PUT {URL}?restype=container\ncontent-length: 0");
    assert_eq!(service.texts(), [request.clone(), request]);
}

/// Expiry is decided by the service's clock, so a response without it is rejected.
#[tokio::test]
async fn response_without_date_is_unreadable() {
    let mut answer = reply(200, HEAD, "").unwrap();
    answer.headers_mut().remove("date");
    let mut written = reply(201, &[("ETag", "\"0x2\"")], "").unwrap();
    written
        .headers_mut()
        .insert("date", DATE.replace("GMT", "CET").parse().unwrap());
    let service = Service::with([Ok(answer), Ok(written)]);
    let storage = service.storage();
    let error = storage.blob_properties(&cx(), &blob()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    let put = PutBlob::default();
    let error = storage
        .put_blob(&cx(), &blob(), Bytes::new(), &put)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::OutcomeUnknown);
}

#[tokio::test]
async fn urls() {
    let storage = Service::with([]).storage();
    assert_eq!(storage.account(), "acct");
    assert_eq!(storage.blob_url(&blob()), format!("{URL}/b.txt"));
    let url = storage
        .readable_url(&blob(), Duration::from_secs(3600))
        .unwrap();
    let (plain, sas) = url.split_once('?').unwrap();
    assert_eq!(plain, format!("{URL}/b.txt"));
    let fields = "sv=2021-12-02&sr=b&sp=r&se=2026-11-21T11%3A00%3A00Z&sig=";
    assert!(sas.starts_with(fields), "{sas}");
    let read = Sas::parse(&parse_query(sas).unwrap()).unwrap().unwrap();
    let target = SasTarget {
        service: ServiceName::Blob,
        account: "acct",
        name: "cont",
        blob: Some("b.txt"),
        snapshot: "",
    };
    read.verify(&target, AccountKey::parse(KEY).unwrap().as_bytes())
        .unwrap();
    let dots = BlobId::new("cont", "..");
    let error = storage
        .readable_url(&dots, Duration::from_secs(1))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}
