//! Large block blobs.

use bytes::Bytes;

use crate::support::Client;

/// A body beyond 16 KiB is in an extent, beyond 64 KiB in several frames of it.
#[tokio::test]
async fn large_bodies_are_read_back_whole_and_in_ranges() {
    let client = Client::new();
    client.create("box").await;
    let body: Bytes = (0..1_000_000_u32).map(|at| (at % 253) as u8).collect();
    client.put("/box/b", body.clone()).await;
    let got = client.get("/box/b").await;
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
