//! Copies of blobs, whole and in blocks, through a signing client.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

const PUT: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// A container with a blob of two blocks, described in every way.
async fn with_source() -> Client {
    let client = Client::new();
    for container in ["box", "shelf"] {
        let path = format!("/{container}?restype=container");
        assert_eq!(client.send("PUT", &path, &[], "").await.status, 201);
    }
    for (id, body) in [("YQ%3D%3D", "hello "), ("Yg%3D%3D", "world")] {
        let path = format!("/box/b?comp=block&blockid={id}");
        assert_eq!(client.send("PUT", &path, &[], body).await.status, 201);
    }
    let list = "<BlockList><Latest>YQ==</Latest><Latest>Yg==</Latest></BlockList>";
    let headers = [
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-language", "en"),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tags", "a=1"),
        ("x-ms-access-tier", "Cool"),
    ];
    let path = "/box/b?comp=blocklist";
    assert_eq!(client.send("PUT", path, &headers, list).await.status, 201);
    client
}

/// Copies to `/shelf/c`.
async fn copy(client: &Client, source: &str, more: &[(&str, &str)]) -> Answer {
    let headers = [&[("x-ms-copy-source", source)], more].concat();
    client.send("PUT", "/shelf/c", &headers, "").await
}

async fn head(client: &Client) -> Answer {
    client.send("HEAD", "/shelf/c", &[], "").await
}

async fn bytes(client: &Client) -> String {
    let got = client.send("GET", "/shelf/c", &[], "").await;
    assert_eq!(got.status, 200);
    String::from_utf8(got.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_copy_takes_properties_blocks_and_metadata_along() {
    let client = with_source().await;
    let copied = copy(&client, &client.url("/box/b"), &[]).await;
    assert_eq!(
        (copied.status, copied.header("x-ms-copy-status")),
        (202, "success")
    );
    assert!(copied.has("etag") && !copied.has("x-ms-request-server-encrypted"));
    // The source may go: its bytes are shared, not borrowed.
    let deleted = client.send("DELETE", "/box/b", &[], "").await;
    assert_eq!(deleted.status, 202);
    assert_eq!(bytes(&client).await, "hello world");
    let head = head(&client).await;
    for (name, value) in [
        ("content-type", "text/plain"),
        ("content-language", "en"),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tag-count", ""),
        ("x-ms-access-tier", "Hot"),
        ("x-ms-access-tier-inferred", "true"),
        ("x-ms-copy-id", copied.header("x-ms-copy-id")),
        ("x-ms-copy-source", &client.url("/box/b")),
        ("x-ms-copy-status", "success"),
        ("x-ms-copy-progress", "11/11"),
        ("x-ms-copy-completion-time", head.header("last-modified")),
    ] {
        assert_eq!(head.header(name), value, "{name}");
    }
    let path = "/shelf/c?comp=blocklist";
    let lists = client.send("GET", path, &[], "").await;
    assert!(String::from_utf8_lossy(&lists.body).contains("<Name>Yg==</Name><Size>5</Size>"));
}

#[tokio::test]
async fn a_copy_has_what_its_request_says() {
    let client = with_source().await;
    let source = client.url("/box/b");
    let own = [
        ("x-ms-meta-own", "1"),
        ("x-ms-tags", "b=2&c=3"),
        ("x-ms-access-tier", "Archive"),
    ];
    assert_eq!(copy(&client, &source, &own).await.status, 202);
    let shown = head(&client).await;
    assert_eq!(shown.header("x-ms-meta-own"), "1");
    assert!(!shown.has("x-ms-meta-team"));
    assert_eq!(shown.header("x-ms-tag-count"), "2");
    assert_eq!(shown.header("x-ms-access-tier"), "Archive");
    // An archived source needs a tier that can be read.
    let archived = client.url("/shelf/c");
    let to = |more: Vec<(&'static str, String)>| {
        let (client, archived) = (&client, archived.clone());
        async move {
            let mut headers = vec![("x-ms-copy-source", archived.as_str())];
            headers.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
            client.send("PUT", "/shelf/d", &headers, "").await
        }
    };
    assert_eq!(to(vec![]).await.outcome(), (409, "BlobArchived"));
    let hot = to(vec![("x-ms-access-tier", "Hot".to_owned())]).await;
    assert_eq!(
        (hot.status, hot.header("x-ms-copy-status")),
        (202, "pending")
    );
    let got = client.send("GET", "/shelf/d", &[], "").await;
    assert_eq!(got.body, "");
    // As long as it takes to bring an archived blob back.
    client.advance_s(15 * 60 * 60);
    let got = client.send("GET", "/shelf/d", &[], "").await;
    assert_eq!(got.body, "hello world");
    let pages = to(vec![("x-ms-access-tier", "P10".to_owned())]).await;
    assert_eq!(pages.outcome(), (400, "AccessTierNotSupportedForBlobType"));
}

#[tokio::test]
async fn snapshots_and_blobs_are_copied_over_themselves() {
    let client = with_source().await;
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    client.send("PUT", "/box/b", &[PUT], "new").await;
    let at = format!("/box/b?snapshot={}", taken.header("x-ms-snapshot"));
    let source = [("x-ms-copy-source", client.url(&at))];
    let source = [(source[0].0, source[0].1.as_str())];
    assert_eq!(client.send("PUT", "/box/b", &source, "").await.status, 202);
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body, "hello world");
    assert!(got.header("x-ms-copy-source").contains("?snapshot="));
    // Onto itself: the same bytes, new metadata.
    let source = client.url("/box/b");
    let headers = [("x-ms-copy-source", source.as_str()), ("x-ms-meta-n", "2")];
    assert_eq!(client.send("PUT", "/box/b", &headers, "").await.status, 202);
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(
        (got.body.as_ref(), got.header("x-ms-meta-n")),
        (&b"hello world"[..], "2")
    );
}

#[tokio::test]
async fn sources_and_targets_have_conditions() {
    let client = with_source().await;
    let source = client.url("/box/b");
    let of_source = client.send("HEAD", "/box/b", &[], "").await;
    let etag = of_source.header("etag");
    for (name, value, expected) in [
        (
            "x-ms-source-if-match",
            "\"0x1\"",
            (412, "SourceConditionNotMet"),
        ),
        (
            "x-ms-source-if-none-match",
            etag,
            (412, "SourceConditionNotMet"),
        ),
        ("x-ms-source-if-tags", "a = '2'", (412, "ConditionNotMet")),
        ("if-match", "\"0x1\"", (412, "TargetConditionNotMet")),
        ("x-ms-source-if-match", etag, (202, "")),
        ("if-none-match", "*", (409, "BlobAlreadyExists")),
        ("x-ms-if-tags", "a = '2'", (412, "ConditionNotMet")),
        (
            "if-unmodified-since",
            "Mon, 13 Nov 2000 00:00:00 GMT",
            (412, "TargetConditionNotMet"),
        ),
        (
            "x-ms-lease-id",
            "6a2f3c5e-0000-4000-8000-000000000001",
            (412, "LeaseNotPresentWithBlobOperation"),
        ),
    ] {
        let answer = copy(&client, &source, &[(name, value)]).await;
        assert_eq!(answer.outcome(), expected, "{name}: {value}");
    }
}

#[tokio::test]
async fn sources_that_are_not_there_are_refused() {
    let client = with_source().await;
    let own = |path: &str| client.url(path);
    for (source, expected) in [
        (own("/box/none"), (404, "BlobNotFound")),
        (own("/none/b"), (404, "ContainerNotFound")),
        (own("/box/"), (400, "InvalidHeaderValue")),
        (own(""), (400, "InvalidHeaderValue")),
        ("nonsense".to_owned(), (400, "InvalidHeaderValue")),
        (
            "http://example.org/c/b".to_owned(),
            (404, "CannotVerifyCopySource"),
        ),
        (
            "https://unknown.blob.core.windows.net/c/b".to_owned(),
            (404, "CannotVerifyCopySource"),
        ),
    ] {
        let answer = copy(&client, &source, &[]).await;
        assert_eq!(answer.outcome(), expected, "{source}");
    }
    let source = client.url("/box/b");
    let headers = [("x-ms-copy-source", source.as_str())];
    let nowhere = client.send("PUT", "/none/c", &headers, "").await;
    assert_eq!(nowhere.outcome(), (404, "ContainerNotFound"));
    let account = client.url("").rsplit('/').next().unwrap().to_owned();
    let hosted = format!("https://{account}.blob.core.windows.net/box/b");
    assert_eq!(copy(&client, &hosted, &[]).await.status, 202);
}

/// Another account's blob is read as a stranger reads it: in public, or with a signature.
#[tokio::test]
async fn copies_cross_accounts() {
    let client = with_source().await;
    let other = client.of_other_account();
    other.send("PUT", "/shelf?restype=container", &[], "").await;
    let private = copy(&other, &client.url("/box/b"), &[]).await;
    assert_eq!(private.outcome(), (401, "CannotVerifyCopySource"));
    let signed = client.signed_url("box", "b", "r");
    let copied = copy(&other, &signed, &[]).await;
    assert_eq!(copied.status, 202);
    let shown = head(&other).await;
    let (unsigned, _) = signed.split_once("&sig=").unwrap();
    assert_eq!(shown.header("x-ms-copy-source"), unsigned);
    for (source, expected) in [
        (
            client.signed_url("box", "b", "w"),
            (403, "CannotVerifyCopySource"),
        ),
        (
            client.signed_url("box", "none", "r"),
            (404, "CannotVerifyCopySource"),
        ),
        (
            signed.replace("/box/b", "/box/c"),
            (403, "CannotVerifyCopySource"),
        ),
    ] {
        let answer = copy(&other, &source, &[]).await;
        assert_eq!(answer.outcome(), expected, "{source}");
    }
    // Tags are a right of their own.
    let tags = [("x-ms-copy-source-tag-option", "COPY")];
    let refused = copy(&other, &signed, &tags).await;
    assert_eq!(refused.outcome(), (403, "CannotVerifyCopySource"));
    let signed = client.signed_url("box", "b", "rt");
    assert_eq!(copy(&other, &signed, &tags).await.status, 202);
    assert_eq!(head(&other).await.header("x-ms-tag-count"), "1");
    let both = [tags[0], ("x-ms-tags", "b=2")];
    let both = copy(&other, &signed, &both).await;
    assert_eq!(
        both.outcome(),
        (400, "BothUserTagsAndSourceTagsCopyPresentException")
    );
    client.send("DELETE", "/box/b", &[], "").await;
    assert_eq!(bytes(&other).await, "hello world");
}

const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");

#[tokio::test]
async fn a_copy_from_a_url_answers_with_its_hash() {
    let client = with_source().await;
    let signed = client.signed_url("box", "b", "r");
    let copied = copy(&client, &signed, &[SYNC]).await;
    assert_eq!(
        (copied.status, copied.header("x-ms-copy-status")),
        (202, "success")
    );
    // The CRC64 of "hello world".
    assert_eq!(copied.header("x-ms-content-crc64"), "vo7q9sPVKY0=");
    assert!(!copied.has("content-md5"));
    assert_eq!(bytes(&client).await, "hello world");
    assert_eq!(head(&client).await.header("x-ms-copy-progress"), "11/11");
    let md5 = ("x-ms-source-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==");
    let copied = copy(&client, &signed, &[SYNC, md5]).await;
    assert_eq!(copied.header("content-md5"), md5.1);
    let etag = client.send("HEAD", "/box/b", &[], "").await;
    let etag = etag.header("etag");
    let bad_md5 = ("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
    let own = client.url("/box/b");
    // Once even the owner of the account read as a stranger.
    let earlier = client.under(ApiVersion::V2021_12_02);
    let stranger = copy(&earlier, &own, &[SYNC]).await;
    assert_eq!(stranger.outcome(), (401, "CannotVerifyCopySource"));
    assert_eq!(copy(&client, &own, &[SYNC]).await.status, 202);
    for (source, header, expected) in [
        (&signed, bad_md5, (400, "Md5Mismatch")),
        (
            &signed,
            ("if-match", "\"0x1\""),
            (412, "TargetConditionNotMet"),
        ),
        (
            &signed,
            ("x-ms-source-if-none-match", etag),
            (304, "CannotVerifyCopySource"),
        ),
        (
            &signed,
            ("x-ms-source-if-match", "\"0x1\""),
            (412, "CannotVerifyCopySource"),
        ),
    ] {
        let answer = copy(&client, source, &[SYNC, header]).await;
        assert_eq!(answer.outcome(), expected, "{header:?}");
    }
}

#[tokio::test]
async fn a_blob_is_put_from_a_url() {
    let client = with_source().await;
    let signed = client.signed_url("box", "b", "rt");
    let put = copy(
        &client,
        &signed,
        &[PUT, ("x-ms-blob-content-type", "text/html")],
    )
    .await;
    assert_eq!(put.status, 201);
    assert!(put.has("x-ms-content-crc64") && !put.has("x-ms-copy-id"));
    let shown = head(&client).await;
    for (name, value) in [
        ("content-type", "text/html"),
        ("content-language", "en"),
        ("content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tag-count", ""),
        ("x-ms-copy-id", ""),
    ] {
        assert_eq!(shown.header(name), value, "{name}");
    }
    let bare = ("x-ms-copy-source-blob-properties", "false");
    assert_eq!(copy(&client, &signed, &[PUT, bare]).await.status, 201);
    let shown = head(&client).await;
    assert_eq!(shown.header("content-type"), "application/octet-stream");
    assert!(!shown.has("content-language") && !shown.has("x-ms-meta-team"));
    let exists = copy(&client, &signed, &[PUT, ("if-none-match", "*")]).await;
    assert_eq!(exists.outcome(), (409, "BlobAlreadyExists"));
    let page = ("x-ms-blob-type", "PageBlob");
    let refused = copy(&client, &signed, &[page]).await;
    assert_eq!(refused.outcome(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn blocks_are_put_from_ranges_of_a_url() {
    let client = with_source().await;
    let signed = client.signed_url("box", "b", "r");
    let block = |id: &'static str, more: Vec<(&'static str, &'static str)>| {
        let (client, signed) = (&client, signed.clone());
        async move {
            let path = format!("/shelf/c?comp=block&blockid={id}");
            let headers = [vec![("x-ms-copy-source", signed.as_str())], more].concat();
            client.send("PUT", &path, &headers, "").await
        }
    };
    let range = |range| vec![("x-ms-source-range", range)];
    let put = block("MQ%3D%3D", range("bytes=4-7")).await;
    assert_eq!((put.status, put.has("x-ms-content-crc64")), (201, true));
    assert_eq!(block("Mg%3D%3D", vec![]).await.status, 201);
    assert_eq!(block("Mw%3D%3D", range("bytes=9-500")).await.status, 201);
    for (more, expected) in [
        (range("bytes=11-"), (416, "CannotVerifyCopySource")),
        (range("all"), (400, "InvalidHeaderValue")),
        (
            vec![("x-ms-source-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")],
            (400, "Md5Mismatch"),
        ),
        (
            vec![("x-ms-source-if-match", "\"0x1\"")],
            (412, "CannotVerifyCopySource"),
        ),
    ] {
        let answer = block("NA%3D%3D", more).await;
        assert_eq!(answer.outcome(), expected);
    }
    let list =
        "<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest><Latest>Mw==</Latest></BlockList>";
    let path = "/shelf/c?comp=blocklist";
    assert_eq!(client.send("PUT", path, &[], list).await.status, 201);
    assert_eq!(bytes(&client).await, "o wohello worldld");
}

#[tokio::test]
async fn only_a_pending_copy_is_aborted() {
    let client = with_source().await;
    let copied = copy(&client, &client.url("/box/b"), &[]).await;
    let abort = ("x-ms-copy-action", "abort");
    let id = copied.header("x-ms-copy-id");
    for (path, headers, expected) in [
        (
            format!("/shelf/c?comp=copy&copyid={id}"),
            vec![abort],
            (409, "NoPendingCopyOperation"),
        ),
        (
            format!("/box/b?comp=copy&copyid={id}"),
            vec![abort],
            (409, "NoPendingCopyOperation"),
        ),
        (
            format!("/shelf/d?comp=copy&copyid={id}"),
            vec![abort],
            (404, "BlobNotFound"),
        ),
        (
            "/shelf/c?comp=copy&copyid=x".to_owned(),
            vec![abort],
            (400, "InvalidQueryParameterValue"),
        ),
        (
            "/shelf/c?comp=copy".to_owned(),
            vec![abort],
            (400, "MissingRequiredQueryParameter"),
        ),
        (
            format!("/shelf/c?comp=copy&copyid={id}"),
            vec![],
            (400, "MissingRequiredHeader"),
        ),
    ] {
        let answer = client.send("PUT", &path, &headers, "").await;
        assert_eq!(answer.outcome(), expected, "{path}");
    }
}

#[tokio::test]
async fn public_blobs_are_copied_without_a_signature() {
    let client = with_source().await;
    let public = [("x-ms-blob-public-access", "blob")];
    let path = "/open?restype=container";
    assert_eq!(client.send("PUT", path, &public, "").await.status, 201);
    client.send("PUT", "/open/b", &[PUT], "for all").await;
    let other = client.of_other_account();
    other.send("PUT", "/shelf?restype=container", &[], "").await;
    for more in [&[][..], &[SYNC], &[PUT]] {
        let copied = copy(&other, &client.url("/open/b"), more).await;
        assert!(copied.status < 300, "{more:?}");
        assert_eq!(bytes(&other).await, "for all");
        assert_eq!(other.send("DELETE", "/shelf/c", &[], "").await.status, 202);
    }
}

/// A lease with an end may end before a copy does; one without end is kept.
#[tokio::test]
async fn a_leased_target_needs_a_lease_without_end() {
    let client = with_source().await;
    let source = client.url("/box/b");
    let lease = "6a2f3c5e-0000-4000-8000-000000000001";
    for (duration, expected) in [
        ("15", (412, "InfiniteLeaseDurationRequired")),
        ("-1", (202, "")),
    ] {
        client.send("PUT", "/shelf/c", &[PUT], "").await;
        let headers = [
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", duration),
            ("x-ms-proposed-lease-id", lease),
        ];
        let leased = client
            .send("PUT", "/shelf/c?comp=lease", &headers, "")
            .await;
        assert_eq!(leased.status, 201);
        let missing = copy(&client, &source, &[]).await;
        assert_eq!(missing.outcome(), (412, "LeaseIdMissing"));
        let held = copy(&client, &source, &[("x-ms-lease-id", lease)]).await;
        assert_eq!(held.outcome(), expected, "{duration}");
        client.advance_s(16);
    }
    assert_eq!(head(&client).await.header("x-ms-lease-state"), "leased");
}
