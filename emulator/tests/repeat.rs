//! The same seed, clock and requests give the same responses, byte for byte.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fmt::Write as _;

use crate::support::{BLOCK, Client};

const ACQUIRE: (&str, &str) = ("x-ms-lease-action", "acquire");
const DURATION: (&str, &str) = ("x-ms-lease-duration", "15");
/// More bytes than fit in a record.
const LARGE_BYTES: usize = 100_000;

/// Method, path and query, headers, length of the body.
type Row = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    usize,
);

/// Sends a fixed sequence of valid and invalid requests. Returns all responses as text.
async fn transcript() -> String {
    let client = Client::new();
    let rows: [Row; 9] = [
        ("PUT", "/box?restype=container", &[], 0),
        ("PUT", "/box/small", &[BLOCK, ("x-ms-meta-Team", "a")], 3),
        ("PUT", "/box/large", &[BLOCK], LARGE_BYTES),
        ("PUT", "/box/small?comp=lease", &[ACQUIRE, DURATION], 0),
        ("PUT", "/box/small", &[BLOCK], 3),
        ("PUT", "/box/large?comp=snapshot", &[], 0),
        (
            "GET",
            "/box?restype=container&comp=list&include=snapshots",
            &[],
            0,
        ),
        ("GET", "/box/large", &[], 0),
        ("DELETE", "/box/missing", &[], 0),
    ];
    let mut text = String::new();
    for (method, path, headers, length) in rows {
        let answer = client.send(method, path, headers, vec![b'x'; length]).await;
        writeln!(text, "{answer:?}").unwrap();
        client.advance_s(1);
    }
    text
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes() {
    let first = transcript().await;
    assert!(first.contains("x-ms-lease-id") && first.contains("LeaseIdMissing"));
    assert_eq!(first, transcript().await);
}

#[tokio::test]
async fn reopened_store_uses_no_id_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for round in 0..3 {
        let client = Client::of(|builder| builder.fast(dir.path()));
        client.create(&format!("box{round}")).await;
        let lease = format!("/box{round}?restype=container&comp=lease");
        let leased = client.send("PUT", &lease, &[ACQUIRE, DURATION], "").await;
        assert!(
            ids.insert(leased.headers["x-ms-lease-id"].clone()),
            "round {round}"
        );
        client.emulator().close().unwrap();
    }
}
