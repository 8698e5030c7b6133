//! Tests of List Blobs: recorded shapes and their order of elements.

use super::*;
use crate::xml::write::tests::body_of;

const LEASE: BlobLease<'_> = BlobLease {
    status: Some("unlocked"),
    state: Some("available"),
    duration: None,
};
const CONTENT: BlobContent<'_> = BlobContent {
    content_type: "application/octet-stream",
    encoding: "",
    language: "",
    crc64: Some(""),
    md5: "yaNM/IXZgmmMasifdgcavQ==",
    cache_control: "",
    disposition: Some(""),
};

fn time() -> Option<Timestamp> {
    Timestamp::parse_rfc1123("Thu, 09 May 2019 00:57:59 GMT")
}

fn blob() -> BlobEntry<'static> {
    BlobEntry {
        name: "blob1",
        creation_time: time(),
        last_modified: time(),
        etag: ETag::parse("0x8D7597ABD270F43"),
        content_length: 1024,
        content: Some(CONTENT),
        blob_type: "BlockBlob",
        access_tier: Some("Hot"),
        access_tier_inferred: true,
        lease: LEASE,
        server_encrypted: Some(true),
        ..BlobEntry::default()
    }
}

/// Returns the listed entry, between `<Blobs>` and `</Blobs>`.
fn entry(blob: &BlobEntry<'_>) -> String {
    let mut list = ListBlobsDocument::new(&ListHead::default());
    list.push_blob(blob);
    let text = body_of(list.finish(""));
    let (_, rest) = text.split_once("<Blobs>").unwrap();
    rest.split_once("</Blobs>").unwrap().0.to_owned()
}

/// Returns the names of the elements in order, with `Properties` flattened.
fn names(text: &str) -> String {
    let opened = text.split('<').skip(1).filter(|tag| !tag.starts_with('/'));
    let names = opened.map(|tag| tag.split(['>', ' ']).next().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_block_blob_renders_as_recorded() {
    let head = "<Creation-Time>Thu, 09 May 2019 00:57:59 GMT</Creation-Time>\
                <Last-Modified>Thu, 09 May 2019 00:57:59 GMT</Last-Modified>\
                <Etag>0x8D7597ABD270F43</Etag><Content-Length>1024</Content-Length>\
                <Content-Type>application/octet-stream</Content-Type><Content-Encoding />\
                <Content-Language /><Content-CRC64 /><Content-MD5>yaNM/IXZgmmMasifdgcavQ==\
                </Content-MD5><Cache-Control /><Content-Disposition />";
    assert_eq!(
        entry(&BlobEntry {
            has_replication_metadata: true,
            ..blob()
        }),
        format!(
            "<Blob><Name>blob1</Name><Properties>{head}<BlobType>BlockBlob</BlobType>\
             <AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>\
             <LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>\
             <ServerEncrypted>true</ServerEncrypted></Properties><OrMetadata /></Blob>"
        )
    );
}

#[test]
fn all_elements_are_in_the_recorded_order() {
    let metadata = Metadata::from_headers([("x-ms-meta-k", "v")]).unwrap();
    let tags = [("tag1".to_owned(), "val1".to_owned())];
    let full = BlobEntry {
        snapshot: Some("2022-11-10T23:16:17.7109016Z"),
        version_id: Some("2022-11-10T23:16:17.7109017Z"),
        is_current_version: true,
        is_deleted: true,
        has_versions_only: true,
        rights: Some(BlobRights {
            owner: "o",
            group: "g",
            permissions: "rwxr-x---",
            acl: "user::rwx,group::r-x,other::---",
        }),
        resource_type: Some("file"),
        last_access_time: time(),
        sequence_number: Some(7),
        archive_status: Some("rehydrate-pending-to-hot"),
        rehydrate_priority: Some("Standard"),
        access_tier_change_time: time(),
        lease: BlobLease {
            duration: Some("infinite"),
            ..LEASE
        },
        copy: Some(BlobCopy {
            completion_time: time(),
            status_description: Some("x"),
            incremental_snapshot: Some("s"),
            ..BlobCopy::default()
        }),
        key_sha256: Some("k"),
        encryption_scope: Some("e"),
        tag_count: Some(1),
        is_sealed: true,
        deletion: time().map(|time| (time, 6)),
        immutability_policy: time().map(|time| (time, "unlocked")),
        legal_hold: Some(true),
        metadata: Some(&metadata),
        tags: Some(&tags),
        has_replication_metadata: true,
        ..blob()
    };
    assert_eq!(
        names(&entry(&full)),
        "Blob Name Snapshot VersionId IsCurrentVersion HasVersionsOnly Deleted Properties \
         Creation-Time Last-Modified Etag Owner Group Permissions Acl ResourceType Content-Length \
         Content-Type Content-Encoding Content-Language Content-CRC64 Content-MD5 Cache-Control \
         Content-Disposition LastAccessTime x-ms-blob-sequence-number BlobType AccessTier \
         AccessTierInferred ArchiveStatus RehydratePriority AccessTierChangeTime LeaseStatus \
         LeaseState LeaseDuration CopyId CopySource CopyStatus CopyStatusDescription \
         CopyProgress CopyCompletionTime IncrementalCopy CopyDestinationSnapshot ServerEncrypted \
         CustomerProvidedKeySha256 EncryptionScope TagCount Sealed DeletedTime \
         RemainingRetentionDays ImmutabilityPolicyUntilDate ImmutabilityPolicyMode LegalHold \
         Metadata k Tags TagSet Tag Key Value OrMetadata"
    );
}

#[test]
fn uncommitted_and_deleted_blobs_have_fewer_elements() {
    let uncommitted = BlobEntry {
        name: "u",
        blob_type: "BlockBlob",
        access_tier: Some("Hot"),
        access_tier_inferred: true,
        lease: LEASE,
        server_encrypted: Some(false),
        tag_count: Some(0),
        ..BlobEntry::default()
    };
    assert_eq!(
        names(&entry(&uncommitted)),
        "Blob Name Properties Content-Length BlobType AccessTier AccessTierInferred LeaseStatus \
         LeaseState ServerEncrypted TagCount"
    );
    let deleted = BlobLease {
        status: Some(""),
        state: None,
        duration: None,
    };
    let deleted = entry(&BlobEntry {
        is_deleted: true,
        lease: deleted,
        ..blob()
    });
    assert!(deleted.contains("<Deleted>true</Deleted><Properties>"));
    assert!(deleted.contains("<LeaseStatus /><ServerEncrypted>"));
}

#[test]
fn blobs_and_prefixes_are_interleaved() {
    let head = ListHead {
        service_endpoint: "https://a/",
        container_name: Some("c"),
        prefix: Some(""),
        marker: Some("m"),
        max_results: Some(2),
        delimiter: Some("/"),
        has_addresses: false,
    };
    let mut list = ListBlobsDocument::new(&head);
    list.push_prefix("a/");
    list.push_blob(&BlobEntry {
        name: "b",
        blob_type: "BlockBlob",
        ..BlobEntry::default()
    });
    list.push_prefix("c\u{ffff}/");
    assert_eq!(
        body_of(list.finish("2!4!bmV4dA--")),
        "<EnumerationResults ServiceEndpoint=\"https://a/\" ContainerName=\"c\"><Prefix />\
         <Marker>m</Marker><MaxResults>2</MaxResults><Delimiter>/</Delimiter><Blobs><BlobPrefix>\
         <Name>a/</Name></BlobPrefix><Blob><Name>b</Name><Properties>\
         <Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>\
         <BlobPrefix><Name Encoded=\"true\">c%EF%BF%BF%2F</Name></BlobPrefix></Blobs>\
         <NextMarker>2!4!bmV4dA--</NextMarker></EnumerationResults>"
    );
}

#[test]
fn the_older_form_has_addresses() {
    let head = ListHead {
        service_endpoint: "https://a/",
        container_name: Some("c"),
        has_addresses: true,
        ..ListHead::default()
    };
    let mut list = ListBlobsDocument::new(&head);
    list.push_blob(&BlobEntry {
        name: "d/b c",
        snapshot: Some("2011-03-09T01:42:34.9360000Z"),
        ..blob()
    });
    let body = body_of(list.finish(""));
    assert!(body.starts_with("<EnumerationResults ContainerName=\"https://a/c\"><Blobs>"));
    let url =
        "<Url>https://a/c/d/b%20c?snapshot=2011-03-09T01%3A42%3A34.9360000Z</Url><Properties>";
    assert!(body.contains(url), "{body}");
}
