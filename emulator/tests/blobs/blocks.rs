//! Blocks, block lists and snapshots through a signing client.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

async fn with_container() -> Client {
    let client = Client::new();
    let made = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(made.status, 201);
    client
}

fn id(text: &str) -> String {
    BASE64.encode(text).replace('=', "%3D")
}

async fn put_block(client: &Client, block: &str, body: impl Into<Bytes>) -> Answer {
    let path = format!("/box/b?comp=block&blockid={}", id(block));
    client.send("PUT", &path, &[], body).await
}

/// `"C:a L:b"` commits block `a` of the committed list and the latest block `b`.
async fn commit(client: &Client, list: &str, headers: &[(&str, &str)]) -> Answer {
    let mut document = "<BlockList>".to_owned();
    for entry in list.split_whitespace() {
        let (kind, block) = entry.split_once(':').unwrap();
        let kind = match kind {
            "C" => "Committed",
            "U" => "Uncommitted",
            _ => "Latest",
        };
        document += &format!("<{kind}>{}</{kind}>", BASE64.encode(block));
    }
    document += "</BlockList>";
    let path = "/box/b?comp=blocklist";
    client.send("PUT", path, headers, document).await
}

/// The body of Get Block List, shortened: `C[a5 b3] U[]`.
async fn lists(client: &Client, more: &str) -> (Answer, String) {
    let path = format!("/box/b?comp=blocklist&blocklisttype=all{more}");
    let got = client.send("GET", &path, &[], "").await;
    let text = String::from_utf8(got.body.to_vec()).unwrap();
    let mut shown = String::new();
    for (letter, name) in [("C", "Committed"), ("U", "Uncommitted")] {
        let open = format!("<{name}Blocks>");
        let inner = text.split_once(&open).map_or("", |(_, rest)| rest);
        let inner = inner.split("Blocks>").next().unwrap();
        let blocks = inner.split("<Name>").skip(1).map(|block| {
            let (name, rest) = block.split_once("</Name><Size>").unwrap();
            let name = String::from_utf8(BASE64.decode(name).unwrap()).unwrap();
            name + rest.split('<').next().unwrap()
        });
        let blocks: Vec<_> = blocks.collect();
        shown += &format!("{letter}[{}] ", blocks.join(" "));
    }
    (got, shown.trim_end().to_owned())
}

async fn bytes(client: &Client) -> Bytes {
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.status, 200);
    got.body
}

#[tokio::test]
async fn blocks_become_a_blob() {
    let client = with_container().await;
    let put = put_block(&client, "b", "world").await;
    assert_eq!((put.status, put.has("etag")), (201, false));
    assert!(put.has("x-ms-content-crc64") && !put.has("content-md5"));
    assert_eq!(put.header("x-ms-request-server-encrypted"), "true");
    put_block(&client, "a", "hello ").await;
    // Nothing is there to be read, but the lists are.
    let missing = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(missing.outcome(), (404, "BlobNotFound"));
    let (got, shown) = lists(&client, "").await;
    assert_eq!(shown, "C[] U[a6 b5]");
    assert!(!got.has("etag") && !got.has("x-ms-blob-content-length"));

    let headers = [
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tags", "a=1"),
        ("x-ms-access-tier", "Cool"),
    ];
    let committed = commit(&client, "L:a L:b", &headers).await;
    assert_eq!(committed.status, 201);
    assert!(committed.has("x-ms-content-crc64") && committed.has("etag"));
    assert_eq!(bytes(&client).await, "hello world");
    let head = client.send("HEAD", "/box/b", &[], "").await;
    for (name, value) in [
        ("content-type", "text/plain"),
        ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tag-count", "1"),
        ("x-ms-access-tier", "Cool"),
        ("content-length", "11"),
        ("etag", committed.header("etag")),
    ] {
        assert_eq!(head.header(name), value, "{name}");
    }
    let (got, shown) = lists(&client, "").await;
    assert_eq!(shown, "C[a6 b5] U[]");
    assert_eq!(got.header("etag"), committed.header("etag"));
    assert_eq!(got.header("x-ms-blob-content-length"), "11");
}

/// A commit takes from both lists, drops what it leaves out, and frees what it replaces.
#[tokio::test]
async fn a_commit_takes_from_both_lists() {
    let client = with_container().await;
    for (block, body) in [("a", "1"), ("b", "22"), ("c", "333")] {
        put_block(&client, block, body).await;
    }
    commit(&client, "L:a L:b L:c", &[]).await;
    put_block(&client, "b", "4444").await;
    put_block(&client, "d", "55555").await;
    let refused = commit(&client, "L:a U:c", &[]).await;
    assert_eq!(refused.outcome(), (400, "InvalidBlockList"));
    let (_, shown) = lists(&client, "").await;
    assert_eq!(shown, "C[a1 b2 c3] U[b4 d5]");
    assert_eq!(commit(&client, "C:b L:a C:b", &[]).await.status, 201);
    assert_eq!(bytes(&client).await, "22122");
    let (_, shown) = lists(&client, "").await;
    assert_eq!(shown, "C[b2 a1 b2] U[]");
    // One block twice among the new ones, then none at all.
    put_block(&client, "e", "6").await;
    commit(&client, "U:e C:b U:e", &[]).await;
    assert_eq!(bytes(&client).await, "6226");
    assert_eq!(commit(&client, "", &[]).await.status, 201);
    assert_eq!(bytes(&client).await, "");
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(head.header("content-type"), "application/octet-stream");
    assert!(!head.has("content-md5"));
}

#[tokio::test]
async fn blocks_that_are_not_right_are_refused() {
    let client = with_container().await;
    put_block(&client, "aa", "x").await;
    let long = id(&"i".repeat(65));
    for (query, headers, body, expected) in [
        ("", &[][..], "x", (400, "MissingRequiredQueryParameter")),
        (
            "&blockid=%3F",
            &[],
            "x",
            (400, "InvalidQueryParameterValue"),
        ),
        ("&blockid=", &[], "x", (400, "InvalidQueryParameterValue")),
        (
            &format!("&blockid={long}"),
            &[],
            "x",
            (400, "InvalidQueryParameterValue"),
        ),
        ("&blockid=MQ%3D%3D", &[], "x", (400, "InvalidBlobOrBlock")),
        ("&blockid=MTE%3D", &[], "", (400, "InvalidHeaderValue")),
        (
            "&blockid=MTE%3D",
            &[("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")],
            "x",
            (400, "Md5Mismatch"),
        ),
        (
            "&blockid=MTE%3D",
            &[("x-ms-content-crc64", "AQIDBAUGBwg=")],
            "x",
            (400, "Crc64Mismatch"),
        ),
        (
            "&blockid=MTE%3D",
            &[("x-ms-lease-id", "6a2f3c5e-0000-4000-8000-000000000001")],
            "x",
            (412, "LeaseNotPresentWithBlobOperation"),
        ),
    ] {
        let path = format!("/box/b?comp=block{query}");
        let answer = client.send("PUT", &path, headers, body).await;
        assert_eq!(answer.outcome(), expected, "{query} {headers:?}");
    }
    let (_, shown) = lists(&client, "").await;
    assert_eq!(shown, "C[] U[aa1]");
    let bad = client
        .send("PUT", "/box/b?comp=blocklist", &[], "<Blocks/>")
        .await;
    assert_eq!(bad.outcome(), (400, "InvalidXmlDocument"));
    let bad = "<BlockList><Latest>?</Latest></BlockList>";
    let bad = client.send("PUT", "/box/b?comp=blocklist", &[], bad).await;
    assert_eq!(bad.outcome(), (400, "InvalidBlockId"));
    let path = "/box/b?comp=blocklist&blocklisttype=some";
    let bad = client.send("GET", path, &[], "").await;
    assert_eq!(bad.outcome(), (400, "InvalidQueryParameterValue"));
}

#[tokio::test]
async fn conditions_and_leases_guard_a_commit() {
    let client = with_container().await;
    put_block(&client, "a", "x").await;
    let star = [("if-none-match", "*")];
    assert_eq!(commit(&client, "L:a", &star).await.status, 201);
    let again = commit(&client, "L:a", &star).await;
    assert_eq!(again.outcome(), (409, "BlobAlreadyExists"));
    let other = [("if-match", "\"0x1\"")];
    let unmet = commit(&client, "L:a", &other).await;
    assert_eq!(unmet.outcome(), (412, "ConditionNotMet"));
    let lease = "6a2f3c5e-0000-4000-8000-000000000001";
    let leased = client
        .send(
            "PUT",
            "/box/b?comp=lease",
            &[
                ("x-ms-lease-action", "acquire"),
                ("x-ms-lease-duration", "-1"),
                ("x-ms-proposed-lease-id", lease),
            ],
            "",
        )
        .await;
    assert_eq!(leased.status, 201);
    let locked = commit(&client, "L:a", &[]).await;
    assert_eq!(locked.outcome(), (412, "LeaseIdMissing"));
    let locked = put_block(&client, "b", "y").await;
    assert_eq!(locked.outcome(), (412, "LeaseIdMissing"));
    let held = commit(&client, "L:a", &[("x-ms-lease-id", lease)]).await;
    assert_eq!(held.status, 201);
}

#[tokio::test]
async fn uncommitted_blocks_are_forgotten_after_a_week() {
    let client = with_container().await;
    put_block(&client, "a", "x").await;
    client.advance_s(7 * 24 * 3600 - 1);
    assert_eq!(lists(&client, "").await.1, "C[] U[a1]");
    client.advance_s(1);
    let (gone, _) = lists(&client, "").await;
    assert_eq!(gone.outcome(), (404, "BlobNotFound"));
    // What is left of them is in nobody's way: another length, and not to be committed.
    assert_eq!(put_block(&client, "bb", "y").await.status, 201);
    assert_eq!(lists(&client, "").await.1, "C[] U[bb1]");
}

/// `x-ms-delete-snapshots: only` leaves the blob: also one that is nothing but blocks yet.
#[tokio::test]
async fn to_delete_snapshots_only_leaves_uncommitted_blocks() {
    let client = with_container().await;
    put_block(&client, "a", "12").await;
    let only = [("x-ms-delete-snapshots", "only")];
    let answer = client.send("DELETE", "/box/b", &only, "").await;
    assert_eq!(answer.status, 202);
    assert_eq!(lists(&client, "").await.1, "C[] U[a2]");
    let answer = client.send("DELETE", "/box/b", &[], "").await;
    assert_eq!(answer.status, 202);
    assert_eq!(lists(&client, "").await.0.status, 404);
}

#[tokio::test]
async fn a_blob_put_whole_has_no_blocks_and_drops_uncommitted_ones() {
    let client = with_container().await;
    put_block(&client, "a", "x").await;
    let put = [("x-ms-blob-type", "BlockBlob")];
    client.send("PUT", "/box/b", &put, "whole").await;
    let (got, shown) = lists(&client, "").await;
    assert_eq!(shown, "C[] U[]");
    assert_eq!(got.header("x-ms-blob-content-length"), "5");
}

/// Recorded: before 2019-02-02 a write answers with an MD5, and encryption is not spoken of.
#[tokio::test]
async fn older_versions_answer_with_md5() {
    let client = with_container().await.under(ApiVersion::V2015_07_08);
    let put = put_block(&client, "a", "x").await;
    let committed = commit(&client, "L:a", &[]).await;
    let snapshot = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    for answer in [&put, &committed] {
        assert!(answer.has("content-md5") && !answer.has("x-ms-content-crc64"));
    }
    for answer in [put, committed, snapshot] {
        assert!(!answer.has("x-ms-request-server-encrypted"));
    }
}

#[tokio::test]
async fn snapshots_keep_what_was() {
    let client = with_container().await;
    put_block(&client, "a", "old").await;
    let committed = commit(&client, "L:a", &[("x-ms-meta-k", "v")]).await;
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    assert_eq!(taken.status, 201);
    assert_eq!(taken.header("etag"), committed.header("etag"));
    assert_eq!(taken.header("x-ms-request-server-encrypted"), "false");
    let with_metadata = [("x-ms-meta-own", "1")];
    let other = client
        .send("PUT", "/box/b?comp=snapshot", &with_metadata, "")
        .await;
    assert_ne!(other.header("x-ms-snapshot"), taken.header("x-ms-snapshot"));
    assert_ne!(other.header("etag"), committed.header("etag"));
    let unmet = [("if-none-match", committed.header("etag"))];
    let unmet = client.send("PUT", "/box/b?comp=snapshot", &unmet, "").await;
    assert_eq!(unmet.outcome(), (412, "ConditionNotMet"));

    put_block(&client, "a", "newer").await;
    commit(&client, "L:a", &[]).await;
    let at = format!("?snapshot={}", taken.header("x-ms-snapshot"));
    let got = client.send("GET", &format!("/box/b{at}"), &[], "").await;
    assert_eq!(
        (got.body.as_ref(), got.header("x-ms-meta-k")),
        (&b"old"[..], "v")
    );
    assert_eq!(bytes(&client).await, "newer");
    let (_, shown) = lists(&client, &at.replace('?', "&")).await;
    assert_eq!(shown, "C[a3] U[]");
    let path = format!("/box/b?snapshot={}", other.header("x-ms-snapshot"));
    let got = client.send("HEAD", &path, &[], "").await;
    assert_eq!(
        (got.header("x-ms-meta-own"), got.has("x-ms-meta-k")),
        ("1", false)
    );

    let missing = client.send("PUT", "/box/c?comp=snapshot", &[], "").await;
    assert_eq!(missing.outcome(), (404, "BlobNotFound"));
    let of_snapshot = format!("/box/b{at}&comp=snapshot");
    let refused = client.send("PUT", &of_snapshot, &[], "").await;
    assert_eq!(refused.outcome(), (400, "InvalidQueryParameterValue"));
}

/// A full list is one commit, and so is the next one made of the same blocks.
#[tokio::test]
async fn fifty_thousand_blocks_commit_at_once() {
    const BLOCKS: usize = 50_000;
    let client = with_container().await;
    let name = |at: usize| format!("{at:05}");
    for at in 0..200 {
        put_block(&client, &name(at), format!("{at:03}")).await;
    }
    let list = |from: usize| {
        let entries = (0..BLOCKS).map(|at| format!("L:{}", name((from + at) % 200)));
        entries.collect::<Vec<_>>().join(" ")
    };
    for from in [0, 1] {
        assert_eq!(commit(&client, &list(from), &[]).await.status, 201);
        let head = client.send("HEAD", "/box/b", &[], "").await;
        assert_eq!(head.header("content-length"), (3 * BLOCKS).to_string());
        let range = [("x-ms-range", "bytes=149997-")];
        let got = client.send("GET", "/box/b", &range, "").await;
        assert_eq!(got.body, format!("{:03}", (from + BLOCKS - 1) % 200));
    }
    let snapshot = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    assert_eq!(snapshot.status, 201);
    let more = format!("{} L:00000", list(0));
    let refused = commit(&client, &more, &[]).await;
    assert_eq!(refused.outcome(), (400, "BlockListTooLong"));
}

/// "Version 2013-08-15": since then a lease id needs a blob that is there.
#[tokio::test]
async fn older_versions_take_a_lease_id_where_no_blob_is() {
    let client = with_container().await;
    let lease = [("x-ms-lease-id", "6a2f3c5e-0000-4000-8000-000000000001")];
    let path = format!("/box/b?comp=block&blockid={}", id("a"));
    for (version, status) in [
        (ApiVersion::V2012_02_12, 201),
        (ApiVersion::V2013_08_15, 412),
    ] {
        let client = client.under(version);
        let put = client.send("PUT", &path, &lease, "x").await;
        assert_eq!(put.status, status, "{version}");
        let text = String::from_utf8_lossy(&put.body);
        let is_refused = text.contains("<Code>LeaseNotPresentWithBlobOperation<");
        assert_eq!(is_refused, status == 412, "{text}");
    }
}

#[tokio::test]
async fn contents_in_memory_take_no_more_than_the_limit() {
    let client = Client::of(|builder| builder.memory_limit(100_000));
    let send = |method, path, size| {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        let client = &client;
        async move { client.send(method, path, &headers, vec![1; size]).await }
    };
    let status = |answer: Answer| answer.status;
    assert_eq!(status(send("PUT", "/box?restype=container", 0).await), 201);
    assert_eq!(status(send("PUT", "/box/first", 80_000).await), 201);
    let refused = send("PUT", "/box/second", 80_000).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.headers["x-ms-error-code"], "ServerBusy");
    assert_eq!(status(send("GET", "/box/second", 0).await), 404);
    assert_eq!(status(send("PUT", "/box/small", 100).await), 201);
    assert_eq!(status(send("DELETE", "/box/first", 0).await), 202);
    assert_eq!(status(send("PUT", "/box/second", 80_000).await), 201);
}
