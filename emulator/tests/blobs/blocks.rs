//! Many blocks, and large contents in memory.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;

use crate::support::{Answer, BLOCK, Client};

async fn with_container() -> Client {
    let client = Client::new();
    client.create("box").await;
    client
}

fn id(text: &str) -> String {
    BASE64.encode(text).replace('=', "%3D")
}

async fn put_block(client: &Client, block: &str, body: impl Into<Bytes>) -> Answer {
    let path = format!("/box/b?comp=block&blockid={}", id(block));
    client.send("PUT", &path, &[], body).await
}

/// Commits a list such as `"C:a L:b"`: block `a` of the committed list and the latest block `b`.
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

/// A full list is one commit, and so is the next one of the same blocks.
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
        let head = client.head("/box/b").await;
        assert_eq!(head.header("content-length"), (3 * BLOCKS).to_string());
        let range = [("x-ms-range", "bytes=149997-")];
        let got = client.send("GET", "/box/b", &range, "").await;
        assert_eq!(got.body, format!("{:03}", (from + BLOCKS - 1) % 200));
    }
    let snapshot = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    assert_eq!(snapshot.status, 201);
    let more = format!("{} L:00000", list(0));
    let refused = commit(&client, &more, &[]).await;
    assert_eq!(refused.outcome(), "400 BlockListTooLong");
}

/// B2: a blob of 50 GiB is listed, read around every power of two, and copied.
#[tokio::test]
async fn b2_a_blob_of_fifty_gibibytes_is_read_and_copied() {
    const MIB: u64 = 1024 * 1024;
    const BLOCKS: u64 = 49_999;
    let client = with_container().await;
    let filler: String = "abcdefghijklmnopqrstuvw"
        .chars()
        .cycle()
        .take(1 << 20)
        .collect();
    put_block(&client, "fill", filler.clone()).await;
    let expected = filler[filler.len() - 2..].to_owned() + &filler[..2];
    put_block(&client, "last", "the end").await;
    let list = "L:fill ".repeat(BLOCKS as usize) + "L:last";
    assert_eq!(commit(&client, &list, &[]).await.status, 201);
    let source = client.url("/box/b");
    let copy = [("x-ms-copy-source", source.as_str())];
    let copied = client.send("PUT", "/box/copy", &copy, "").await;
    assert_eq!(copied.status, 202, "{copied:?}");
    let length = BLOCKS * MIB + 7;
    let bits = (20..36).map(|bit| 1_u64 << bit).filter(|at| *at < length);
    for path in ["/box/b", "/box/copy"] {
        let head = client.head(path).await;
        assert_eq!(head.header("content-length"), length.to_string());
        for at in bits.clone() {
            let range = format!("bytes={}-{}", at - 2, at + 1);
            let got = client
                .send("GET", path, &[("x-ms-range", &range)], "")
                .await;
            assert_eq!(
                (got.status, &got.body[..]),
                (206, expected.as_bytes()),
                "{range}"
            );
        }
        let range = format!("bytes={}-", BLOCKS * MIB);
        let got = client
            .send("GET", path, &[("x-ms-range", &range)], "")
            .await;
        assert_eq!(got.body, "the end");
    }
}

#[tokio::test]
async fn contents_in_memory_stay_within_the_limit() {
    let client = Client::of(|builder| builder.memory_limit(100_000));
    let put = async |path, size| {
        let answer = client.send("PUT", path, &[BLOCK], vec![1; size]).await;
        answer.outcome()
    };
    client.create("box").await;
    assert_eq!(put("/box/first", 80_000).await, "201");
    assert_eq!(put("/box/second", 80_000).await, "503 ServerBusy");
    assert_eq!(client.get("/box/second").await.status, 404);
    assert_eq!(put("/box/small", 100).await, "201");
    assert_eq!(client.try_("DELETE", "/box/first", &[]).await, "202");
    assert_eq!(put("/box/second", 80_000).await, "201");
}
