//! Append blobs as a client sees them: made, extended, sealed, copied.

use bytes::Bytes;
use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

const PATH: &str = "/box/log";

async fn with_blob() -> Client {
    let client = Client::new();
    client.send("PUT", "/box?restype=container", &[], "").await;
    let made = create(&client, "log", &[]).await;
    assert_eq!(made.status, 201);
    assert!(!made.has("content-md5") && !made.has("x-ms-content-crc64"));
    client
}

async fn create(client: &Client, name: &str, headers: &[(&str, &str)]) -> Answer {
    let path = format!("/box/{name}");
    let headers = [&[("x-ms-blob-type", "AppendBlob")], headers].concat();
    client.send("PUT", &path, &headers, "").await
}

async fn append(client: &Client, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let path = format!("{PATH}?comp=appendblock");
    client.send("PUT", &path, headers, body).await
}

#[tokio::test]
async fn blocks_follow_each_other() {
    let client = with_blob().await;
    for (block, offset, count) in [("one ", "0", "1"), ("two ", "4", "2"), ("three", "8", "3")] {
        let answer = append(&client, &[], block).await;
        assert_eq!(answer.status, 201);
        assert_eq!(answer.header("x-ms-blob-append-offset"), offset);
        assert_eq!(answer.header("x-ms-blob-committed-block-count"), count);
        assert!(answer.has("x-ms-content-crc64") && !answer.has("content-md5"));
    }
    let got = client
        .send("GET", PATH, &[("x-ms-range", "bytes=2-9")], "")
        .await;
    assert_eq!((got.status, got.body.as_ref()), (206, &b"e two th"[..]));
    assert_eq!(got.header("x-ms-blob-committed-block-count"), "3");
    let head = client.send("HEAD", PATH, &[], "").await;
    assert_eq!(head.header("x-ms-blob-type"), "AppendBlob");
    assert_eq!(head.header("content-length"), "13");
    assert!(!head.has("content-md5") && !head.has("x-ms-blob-sealed"));
}

#[tokio::test]
async fn positions_and_conditions_are_demanded() {
    let client = with_blob().await;
    append(&client, &[], "12345").await;
    let at = "x-ms-blob-condition-appendpos";
    let most = "x-ms-blob-condition-maxsize";
    for (headers, expected) in [
        ([(at, "4")], (412, "AppendPositionConditionNotMet")),
        ([(most, "9")], (412, "MaxBlobSizeConditionNotMet")),
        ([(at, "x")], (400, "InvalidHeaderValue")),
        (
            [("if-match", "\"0x8D6D416C50F7F00\"")],
            (412, "ConditionNotMet"),
        ),
        (
            [("if-match", "0x111111111111111")],
            (400, "OutOfRangeInput"),
        ),
        // The first of all times of Windows.
        (
            [("if-match", "0x701CE1722770000")],
            (412, "ConditionNotMet"),
        ),
        ([("if-match", "garbage")], (412, "ConditionNotMet")),
        (
            [("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")],
            (400, "Md5Mismatch"),
        ),
        ([(at, "5")], (201, "")),
        ([(most, "15")], (201, "")),
    ] {
        let answer = append(&client, &headers, "67890").await;
        assert_eq!(answer.outcome(), expected, "{headers:?}");
    }
}

#[tokio::test]
async fn only_an_append_blob_is_appended_to() {
    let client = with_blob().await;
    let block = [("x-ms-blob-type", "BlockBlob")];
    client.send("PUT", "/box/b", &block, "x").await;
    for (method, path, body, expected) in [
        (
            "PUT",
            "/box/b?comp=appendblock",
            "x",
            (409, "InvalidBlobType"),
        ),
        ("PUT", "/box/b?comp=seal", "", (409, "InvalidBlobType")),
        (
            "PUT",
            "/box/none?comp=appendblock",
            "x",
            (404, "BlobNotFound"),
        ),
        ("PUT", "/box/none?comp=seal", "", (404, "BlobNotFound")),
        (
            "PUT",
            "/box/log?comp=appendblock",
            "",
            (400, "InvalidHeaderValue"),
        ),
        (
            "PUT",
            "/box/log?comp=block&blockid=MQ%3D%3D",
            "x",
            (409, "InvalidBlobType"),
        ),
        (
            "GET",
            "/box/log?comp=blocklist",
            "",
            (409, "InvalidBlobType"),
        ),
    ] {
        let answer = client.send(method, path, &[], body).await;
        assert_eq!(answer.outcome(), expected, "{method} {path}");
    }
    let list = "<BlockList></BlockList>";
    let committed = client
        .send("PUT", "/box/log?comp=blocklist", &[], list)
        .await;
    assert_eq!(committed.outcome(), (409, "InvalidBlobType"));
}

#[tokio::test]
async fn the_largest_block_depends_on_the_version() {
    let client = with_blob().await;
    let mib = |mib: usize| Bytes::from(vec![0; mib * 1024 * 1024]);
    let old = client.under(ApiVersion::V2021_12_02);
    let refused = append(&old, &[], mib(5)).await;
    assert_eq!(refused.outcome(), (413, "RequestBodyTooLarge"));
    assert_eq!(append(&old, &[], mib(4)).await.status, 201);
    assert_eq!(append(&client, &[], mib(5)).await.status, 201);
    let ancient = client.under(ApiVersion::V2014_02_14);
    let refused = create(&ancient, "old", &[]).await;
    assert_eq!(refused.status, 409);
}

#[tokio::test]
async fn a_seal_holds_and_copies_go_by_their_own() {
    let client = with_blob().await;
    append(&client, &[], "text").await;
    let seal = format!("{PATH}?comp=seal");
    let at = "x-ms-blob-condition-appendpos";
    let refused = client.send("PUT", &seal, &[(at, "3")], "").await;
    assert_eq!(refused.outcome(), (412, "AppendPositionConditionNotMet"));
    let sealed = client.send("PUT", &seal, &[(at, "4")], "").await;
    assert_eq!(
        (sealed.status, sealed.header("x-ms-blob-sealed")),
        (200, "true")
    );
    assert_eq!(
        append(&client, &[], "x").await.outcome(),
        (409, "BlobIsSealed")
    );
    let again = client.send("PUT", &seal, &[], "").await;
    assert_eq!(again.status, 200);
    let source = client.url(PATH);
    for (name, wish, is_sealed) in [("kept", None, true), ("opened", Some("false"), false)] {
        let mut headers = vec![("x-ms-copy-source", source.as_str())];
        headers.extend(wish.map(|wish| ("x-ms-seal-blob", wish)));
        let path = format!("/box/{name}");
        assert_eq!(client.send("PUT", &path, &headers, "").await.status, 202);
        let head = client.send("HEAD", &path, &[], "").await;
        assert_eq!(head.has("x-ms-blob-sealed"), is_sealed, "{name}");
        let more = client
            .send("PUT", &format!("{path}?comp=appendblock"), &[], "+")
            .await;
        assert_eq!(more.status, if is_sealed { 409 } else { 201 }, "{name}");
    }
    let opened = client.send("GET", "/box/opened", &[], "").await;
    assert_eq!(opened.body.as_ref(), b"text+");
    let listed = client
        .send("GET", "/box?restype=container&comp=list", &[], "")
        .await;
    let listed = String::from_utf8(listed.body.to_vec()).unwrap();
    assert_eq!(listed.matches("<Sealed>true</Sealed>").count(), 2);
}

#[tokio::test]
async fn snapshots_stay_as_they_were() {
    let client = with_blob().await;
    append(&client, &[], "before").await;
    let taken = client
        .send("PUT", &format!("{PATH}?comp=snapshot"), &[], "")
        .await;
    let snapshot = format!("{PATH}?snapshot={}", taken.header("x-ms-snapshot"));
    append(&client, &[], " and after").await;
    let old = client.send("GET", &snapshot, &[], "").await;
    assert_eq!(old.body.as_ref(), b"before");
    assert_eq!(old.header("x-ms-blob-committed-block-count"), "1");
    // The snapshot comes back as the blob, and goes its own way.
    let source = client.url(&snapshot);
    let promoted = client
        .send("PUT", PATH, &[("x-ms-copy-source", &source)], "")
        .await;
    assert_eq!(promoted.status, 202);
    append(&client, &[], " again").await;
    let now = client.send("GET", PATH, &[], "").await;
    assert_eq!(now.body.as_ref(), b"before again");
    assert_eq!(
        client.send("GET", &snapshot, &[], "").await.body.as_ref(),
        b"before"
    );
}

#[tokio::test]
async fn ranges_of_other_blobs_are_appended() {
    let client = with_blob().await;
    let block = [("x-ms-blob-type", "BlockBlob")];
    client.send("PUT", "/box/b", &block, "0123456789").await;
    let source = client.signed_url("box", "b", "r");
    let from = ("x-ms-copy-source", source.as_str());
    for (headers, expected) in [
        (vec![("x-ms-source-range", "bytes=0-3")], (201, "")),
        (
            vec![("x-ms-source-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")],
            (400, "Md5Mismatch"),
        ),
        (
            vec![("x-ms-blob-condition-appendpos", "9")],
            (412, "AppendPositionConditionNotMet"),
        ),
        (
            vec![("x-ms-blob-condition-maxsize", "9")],
            (412, "MaxBlobSizeConditionNotMet"),
        ),
        (vec![("x-ms-source-range", "bytes=4-")], (201, "")),
    ] {
        let answer = append(&client, &[&[from], headers.as_slice()].concat(), "").await;
        assert_eq!(answer.outcome(), expected, "{headers:?}");
        // Recorded: the MD5, unlike everywhere else.
        assert_eq!(answer.has("content-md5"), answer.status == 201);
    }
    let got = client.send("GET", PATH, &[], "").await;
    assert_eq!(got.body.as_ref(), b"0123456789");
    let unsigned = client.url("/box/b");
    let earlier = client.under(ApiVersion::V2021_12_02);
    let refused = append(&earlier, &[("x-ms-copy-source", &unsigned)], "").await;
    assert_eq!(refused.outcome(), (401, "CannotVerifyCopySource"));
}
