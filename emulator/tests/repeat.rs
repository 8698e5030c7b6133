//! The same seed, clock and requests give the same answers, to the byte.

#[allow(dead_code, reason = "this test needs a part of the client only")]
mod support;

use std::fmt::Write as _;

use support::Client;

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
/// Beyond the bytes that stay in a record.
const LARGE_BYTES: usize = 100_000;

/// Sends a fixed row of requests, good and bad; returns everything that came back.
async fn transcript() -> String {
    let client = Client::new();
    let lease = ("x-ms-lease-action", "acquire");
    let duration = ("x-ms-lease-duration", "15");
    let rows: [(&str, &str, &[(&str, &str)], usize); 9] = [
        ("PUT", "/box?restype=container", &[], 0),
        ("PUT", "/box/small", &[BLOCK, ("x-ms-meta-Team", "a")], 3),
        ("PUT", "/box/large", &[BLOCK], LARGE_BYTES),
        ("PUT", "/box/small?comp=lease", &[lease, duration], 0),
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
