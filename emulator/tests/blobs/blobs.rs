//! Block blobs as a client sees them: put, get, describe, change, delete.

use bytes::Bytes;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::ServiceSas;
use smalt_protocol::{ApiVersion, Service};

use crate::support::{Answer, Client};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const MD5_HELLO: &str = "XUFAKrxLKna5cZ2REBfFkg==";

async fn with_container() -> Client {
    let client = Client::new();
    let created = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(created.status, 201);
    client
}

async fn put(client: &Client, body: impl Into<Bytes>) -> Answer {
    let answer = client.send("PUT", "/box/b", &[BLOCK], body).await;
    assert_eq!(answer.status, 201);
    answer
}

#[tokio::test]
async fn what_is_put_is_got() {
    let client = with_container().await;
    let headers = [
        BLOCK,
        ("content-type", "text/plain"),
        ("x-ms-blob-content-disposition", "inline"),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tags", "a=1&b=2"),
        ("content-md5", MD5_HELLO),
    ];
    let put = client.send("PUT", "/box/d/b%20c", &headers, "hello").await;
    assert_eq!(put.status, 201);
    assert_eq!(put.header("content-md5"), MD5_HELLO);
    assert_eq!(put.header("x-ms-request-server-encrypted"), "true");
    assert!(put.has("x-ms-content-crc64"));
    for method in ["GET", "HEAD"] {
        let got = client.send(method, "/box/d/b%20c", &[], "").await;
        assert_eq!(got.status, 200);
        for (name, value) in [
            ("content-length", "5"),
            ("content-type", "text/plain"),
            ("content-disposition", "inline"),
            ("content-md5", MD5_HELLO),
            ("x-ms-meta-team", "billing"),
            ("x-ms-tag-count", "2"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-lease-state", "available"),
            ("x-ms-lease-status", "unlocked"),
            ("x-ms-server-encrypted", "true"),
            ("accept-ranges", "bytes"),
            ("etag", put.header("etag")),
            ("last-modified", put.header("last-modified")),
        ] {
            assert_eq!(got.header(name), value, "{method} {name}");
        }
        assert_eq!(got.has("x-ms-access-tier"), method == "HEAD");
        assert_eq!(got.body, if method == "GET" { "hello" } else { "" });
    }
}

/// Beyond 16 KiB a body lives in an extent; beyond 64 KiB in several frames of it.
#[tokio::test]
async fn large_bodies_come_back_whole_and_in_ranges() {
    let client = with_container().await;
    let body: Bytes = (0..1_000_000_u32).map(|at| (at % 253) as u8).collect();
    put(&client, body.clone()).await;
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body, body);
    for (range, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=65530-65600", 65_530..65_601),
        ("bytes=999990-", 999_990..1_000_000),
        ("bytes=500000-2000000", 500_000..1_000_000),
    ] {
        let got = client
            .send("GET", "/box/b", &[("x-ms-range", range)], "")
            .await;
        assert_eq!(got.status, 206);
        let shown = format!("bytes {}-{}/1000000", expected.start, expected.end - 1);
        assert_eq!(got.header("content-range"), shown);
        assert_eq!(got.body, body.slice(expected), "{range}");
        assert!(got.has("x-ms-blob-content-md5") && !got.has("content-md5"));
    }
}

#[tokio::test]
async fn ranges_have_hashes_and_limits() {
    let client = with_container().await;
    put(&client, "say hello").await;
    let range = ("range", "bytes=4-8");
    let md5 = ("x-ms-range-get-content-md5", "true");
    let crc64 = ("x-ms-range-get-content-crc64", "true");
    let got = client.send("GET", "/box/b", &[range, md5], "").await;
    assert_eq!((got.status, got.header("content-md5")), (206, MD5_HELLO));
    let got = client.send("GET", "/box/b", &[range, crc64], "").await;
    let whole = put(&client, "hello").await;
    assert_eq!(
        got.header("x-ms-content-crc64"),
        whole.header("x-ms-content-crc64")
    );
    for (headers, expected) in [
        (
            &[range, md5, crc64][..],
            (400, "BothCrc64AndMd5RangeHeaderPresent"),
        ),
        (&[md5], (400, "InvalidHeaderValue")),
        (&[("range", "bytes=5-")], (416, "InvalidRange")),
        (&[("range", "bytes=abc")], (200, "")),
    ] {
        let got = client.send("GET", "/box/b", headers, "").await;
        assert_eq!(got.outcome(), expected, "{headers:?}");
    }
    let beyond = client
        .send("GET", "/box/b", &[("range", "bytes=5-")], "")
        .await;
    assert_eq!(beyond.header("content-range"), "bytes */5");
}

#[tokio::test]
async fn a_put_that_is_not_right_leaves_nothing() {
    let client = with_container().await;
    let wrong = "AAAAAAAAAAAAAAAAAAAAAA==";
    for (headers, expected) in [
        (&[][..], (400, "MissingRequiredHeader")),
        (
            &[("x-ms-blob-type", "FancyBlob")],
            (400, "InvalidHeaderValue"),
        ),
        (&[BLOCK, ("content-md5", wrong)], (400, "Md5Mismatch")),
        (
            &[BLOCK, ("x-ms-blob-content-md5", wrong)],
            (400, "Md5Mismatch"),
        ),
        (&[BLOCK, ("content-md5", "AAAA")], (400, "InvalidMd5")),
        (
            &[BLOCK, ("x-ms-content-crc64", "AAAAAAAAAAA=")],
            (400, "Crc64Mismatch"),
        ),
        (
            &[BLOCK, ("x-ms-access-tier", "P10")],
            (400, "InvalidHeaderValue"),
        ),
        (&[BLOCK, ("x-ms-tags", "a*=1")], (400, "InvalidTag")),
        (&[BLOCK, ("x-ms-meta-a-b", "1")], (400, "InvalidMetadata")),
        (&[BLOCK, ("if-match", "*")], (412, "ConditionNotMet")),
        (
            &[BLOCK, ("x-ms-lease-id", "ca761232ed4211cebacd00aa0057b223")],
            (412, "LeaseNotPresentWithBlobOperation"),
        ),
    ] {
        let answer = client.send("PUT", "/box/b", headers, "hello").await;
        assert_eq!(answer.outcome(), expected, "{headers:?}");
    }
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.outcome(), (404, "BlobNotFound"));
    let elsewhere = client.send("PUT", "/none/b", &[BLOCK], "hello").await;
    assert_eq!(elsewhere.outcome(), (404, "ContainerNotFound"));
}

#[tokio::test]
async fn an_overwrite_replaces_all_but_the_creation_time() {
    let client = with_container().await;
    let meta = [BLOCK, ("x-ms-meta-a", "1"), ("x-ms-tags", "t=1")];
    let first = client.send("PUT", "/box/b", &meta, "hello").await;
    client.advance_s(60);
    let created = client.send("HEAD", "/box/b", &[], "").await;
    let second = put(&client, "hello, world").await;
    assert_ne!(first.header("etag"), second.header("etag"));
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(head.header("content-length"), "12");
    assert_eq!(
        head.header("x-ms-creation-time"),
        created.header("x-ms-creation-time")
    );
    assert_ne!(
        head.header("last-modified"),
        created.header("last-modified")
    );
    assert!(!head.has("x-ms-meta-a") && !head.has("x-ms-tag-count"));
    let star = [BLOCK, ("if-none-match", "*")];
    let again = client.send("PUT", "/box/b", &star, "third").await;
    assert_eq!(again.outcome(), (409, "BlobAlreadyExists"));
}

#[tokio::test]
async fn conditions_guard_reads_and_writes() {
    let client = with_container().await;
    let etag = put(&client, "hello").await.header("etag").to_owned();
    let other = "\"0x1\"";
    for (method, path, headers, expected) in [
        (
            "GET",
            "/box/b",
            ("if-none-match", etag.as_str()),
            (304, "ConditionNotMet"),
        ),
        (
            "HEAD",
            "/box/b",
            ("if-match", other),
            (412, "ConditionNotMet"),
        ),
        (
            "GET",
            "/box/b?comp=metadata",
            ("if-match", other),
            (412, "ConditionNotMet"),
        ),
        (
            "PUT",
            "/box/b?comp=metadata",
            ("if-match", other),
            (412, "ConditionNotMet"),
        ),
        (
            "PUT",
            "/box/b?comp=properties",
            ("if-none-match", &etag),
            (412, "ConditionNotMet"),
        ),
        (
            "DELETE",
            "/box/b",
            ("if-match", other),
            (412, "ConditionNotMet"),
        ),
    ] {
        let answer = client.send(method, path, &[headers], "").await;
        assert_eq!(answer.outcome(), expected, "{method} {path}");
        assert_eq!(
            answer.body.is_empty(),
            method == "HEAD" || answer.status == 304
        );
    }
}

/// Recorded: the version is looked at later, so neither it nor the code is in a header.
#[tokio::test]
async fn a_snapshot_without_a_time_is_refused_before_anything_else() {
    let client = Client::new();
    let missing = [("if-match", "\"0x1\"")];
    let answer = client.send("GET", "/box/b?snapshot=1", &missing, "").await;
    assert_eq!(answer.status, 400);
    for name in ["x-ms-version", "x-ms-error-code"] {
        assert!(!answer.headers.contains_key(name), "{name}");
    }
    let body = std::str::from_utf8(&answer.body).unwrap();
    assert!(
        body.contains("<Code>InvalidQueryParameterValue</Code>"),
        "{body}"
    );
}

#[tokio::test]
async fn metadata_and_properties_are_set_as_a_unit() {
    let client = with_container().await;
    let headers = [BLOCK, ("x-ms-meta-a", "1"), ("content-language", "de")];
    let put = client.send("PUT", "/box/b", &headers, "hello").await;
    let meta = [("x-ms-meta-b", "2")];
    let set = client.send("PUT", "/box/b?comp=metadata", &meta, "").await;
    assert_eq!(
        (set.status, set.header("x-ms-request-server-encrypted")),
        (200, "true")
    );
    assert_ne!(set.header("etag"), put.header("etag"));
    let got = client.send("GET", "/box/b?comp=metadata", &[], "").await;
    assert_eq!(
        (got.header("x-ms-meta-a"), got.header("x-ms-meta-b")),
        ("", "2")
    );
    assert_eq!(
        (got.header("content-length"), got.header("etag")),
        ("0", set.header("etag"))
    );
    let kind = [("x-ms-blob-content-type", "a/b")];
    let set = client
        .send("PUT", "/box/b?comp=properties", &kind, "")
        .await;
    assert_eq!(
        (set.status, set.has("x-ms-request-server-encrypted")),
        (200, false)
    );
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(head.header("content-type"), "a/b");
    assert!(!head.has("content-language") && !head.has("content-md5"));
    assert_eq!(head.header("x-ms-meta-b"), "2");
    client.send("PUT", "/box/b?comp=properties", &[], "").await;
    assert!(
        !client
            .send("HEAD", "/box/b", &[], "")
            .await
            .has("content-type")
    );
}

#[tokio::test]
async fn tags_are_set_read_and_counted_without_a_new_version() {
    let client = with_container().await;
    let etag = put(&client, "hello").await.header("etag").to_owned();
    let tag = |key, value| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
    let document = |tags: &str| format!("<Tags><TagSet>{tags}</TagSet></Tags>");
    let two = document(&(tag("b", "2") + &tag("a", "x y")));
    let set = client.send("PUT", "/box/b?comp=tags", &[], two).await;
    assert_eq!(set.status, 204);
    let got = client.send("GET", "/box/b?comp=tags", &[], "").await;
    let sorted = document(&(tag("a", "x y") + &tag("b", "2")));
    assert!(
        String::from_utf8_lossy(&got.body).ends_with(&sorted),
        "{:?}",
        got.body
    );
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(
        (head.header("x-ms-tag-count"), head.header("etag")),
        ("2", etag.as_str())
    );
    let unmet = [("x-ms-if-tags", "a = 'z'")];
    let answer = client.send("DELETE", "/box/b", &unmet, "").await;
    assert_eq!(answer.outcome(), (412, "ConditionNotMet"));
    for (body, code) in [
        (document(&tag("a*", "1")), "InvalidTag"),
        (
            document(&(tag("a", "1") + &tag("a", "2"))),
            "DuplicateTagNames",
        ),
        ("<Tags>".to_owned(), "InvalidXmlDocument"),
        ("<Labels/>".to_owned(), "InvalidXmlDocument"),
    ] {
        let refused = client.send("PUT", "/box/b?comp=tags", &[], body).await;
        assert_eq!(refused.outcome(), (400, code));
    }
}

/// Archive and back: a day of the clock is enough for what takes fifteen hours.
#[tokio::test]
async fn tiers_change_at_once_or_by_the_clock() {
    let client = with_container().await;
    put(&client, "hello").await;
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(head.header("x-ms-access-tier"), "Hot");
    assert_eq!(head.header("x-ms-access-tier-inferred"), "true");
    let tier = |name| [("x-ms-access-tier", name)];
    let set = async |name| {
        client
            .send("PUT", "/box/b?comp=tier", &tier(name), "")
            .await
            .status
    };
    assert_eq!(set("Cool").await, 200);
    assert_eq!(set("Archive").await, 200);
    let archived = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(archived.outcome(), (409, "BlobArchived"));
    assert_eq!(set("Hot").await, 202);
    assert_eq!(set("Cool").await, 409);
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(head.header("x-ms-access-tier"), "Archive");
    assert_eq!(
        head.header("x-ms-archive-status"),
        "rehydrate-pending-to-hot"
    );
    assert_eq!(head.header("x-ms-rehydrate-priority"), "Standard");
    client.advance_s(24 * 60 * 60);
    assert_eq!(client.send("GET", "/box/b", &[], "").await.body, "hello");
    assert_eq!(
        client.send("PUT", "/box/b?comp=tier", &[], "").await.status,
        400
    );
}

#[tokio::test]
async fn a_deleted_blob_is_gone() {
    let client = with_container().await;
    put(&client, "hello").await;
    let only = [("x-ms-delete-snapshots", "only")];
    let kept = client.send("DELETE", "/box/b", &only, "").await;
    assert_eq!(kept.outcome(), (202, ""));
    assert_eq!(client.send("GET", "/box/b", &[], "").await.status, 200);
    let deleted = client.send("DELETE", "/box/b", &[], "").await;
    assert_eq!(deleted.status, 202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "true");
    for method in ["GET", "HEAD", "DELETE"] {
        let answer = client.send(method, "/box/b", &[], "").await;
        assert_eq!(answer.outcome(), (404, "BlobNotFound"), "{method}");
    }
    for (headers, path, code) in [
        (
            ("x-ms-delete-snapshots", "some"),
            "/box/b",
            "InvalidHeaderValue",
        ),
        (
            ("x-ms-x", ""),
            "/box/b?deletetype=later",
            "InvalidQueryParameterValue",
        ),
    ] {
        let answer = client.send("DELETE", path, &[headers], "").await;
        assert_eq!(answer.outcome(), (400, code));
    }
}

#[tokio::test]
async fn older_versions_know_fewer_headers() {
    let client = with_container().await;
    for (version, present, absent) in [
        (
            ApiVersion::V2014_02_14,
            "x-ms-lease-state",
            "x-ms-server-encrypted",
        ),
        (
            ApiVersion::V2015_12_11,
            "x-ms-server-encrypted",
            "x-ms-access-tier",
        ),
        (
            ApiVersion::V2017_04_17,
            "x-ms-access-tier",
            "x-ms-creation-time",
        ),
        (
            ApiVersion::V2018_11_09,
            "x-ms-tag-count",
            "x-ms-is-current-version",
        ),
    ] {
        let client = client.under(version);
        let put = put(&client, "hello").await;
        assert!(put.has("content-md5") && !put.has("x-ms-content-crc64"));
        let head = client.send("HEAD", "/box/b", &[], "").await;
        assert!(head.has(present) && !head.has(absent), "{version}");
    }
}

/// A signature that may create but not write makes a blob once, and sets response headers.
#[tokio::test]
async fn a_shared_access_signature_creates_and_dresses_the_answer() {
    let client = with_container().await;
    let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap();
    let target = |permissions, more: &[(&str, &str)]| {
        let sas = ServiceSas {
            version: ApiVersion::V2020_10_02,
            target: SasTarget {
                service: Service::Blob,
                account: EMULATOR_ACCOUNT_NAME,
                name: "box",
                blob: Some("b"),
                snapshot: "",
            },
            permissions,
            start: None,
            expiry: Some(client.now().plus_s(3_600)),
            policy_id: "",
            ip: "",
            protocol: "",
            more,
        };
        format!(
            "/{EMULATOR_ACCOUNT_NAME}/box/b?{}",
            sas.sign(key.as_bytes())
        )
    };
    let headers = [
        BLOCK,
        ("x-ms-version", "2020-10-02"),
        ("content-length", "5"),
    ];
    let create = target("c", &[]);
    let first = client
        .send_as_is("PUT", &create, &headers, "hello".into())
        .await;
    assert_eq!(first.status, 201);
    let second = client
        .send_as_is("PUT", &create, &headers, "again".into())
        .await;
    assert_eq!(second.outcome(), (403, "UnauthorizedBlobOverwrite"));
    let read = target("r", &[("rscc", "no-store")]);
    let got = client.send_as_is("GET", &read, &[], Bytes::new()).await;
    assert_eq!(
        (got.header("cache-control"), &got.body[..]),
        ("no-store", &b"hello"[..])
    );
}
