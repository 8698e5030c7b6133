//! A page blob to test with, and short ways to use it.

use crate::support::{Answer, Client};

/// The header that says what kind of blob it is.
pub(crate) const KIND: &str = "x-ms-blob-type";
pub(crate) const MIB: u64 = 1024 * 1024;
pub(crate) const GIB: u64 = 1024 * MIB;

/// A container with a page blob `/disks/d` of this length.
pub(crate) async fn with_disk(length: u64) -> Client {
    let client = Client::new();
    let created = client
        .send("PUT", "/disks?restype=container", &[], "")
        .await;
    assert_eq!(created.status, 201);
    assert_eq!(create(&client, length, &[]).await.status, 201);
    client
}

pub(crate) async fn create(client: &Client, length: u64, more: &[(&str, &str)]) -> Answer {
    let length = length.to_string();
    let own = [
        (KIND, "PageBlob"),
        ("x-ms-blob-content-length", length.as_str()),
    ];
    client
        .send("PUT", "/disks/d", &[&own, more].concat(), "")
        .await
}

/// Writes pages of one letter.
pub(crate) async fn put(
    client: &Client,
    first: u64,
    count: usize,
    letter: char,
    more: &[(&str, &str)],
) -> Answer {
    let last = first + count as u64 - 1;
    let range = format!("bytes={first}-{last}");
    let own = [
        ("x-ms-page-write", "update"),
        ("x-ms-range", range.as_str()),
    ];
    let body = letter.to_string().repeat(count);
    client
        .send("PUT", "/disks/d?comp=page", &[&own, more].concat(), body)
        .await
}

pub(crate) async fn clear(
    client: &Client,
    first: u64,
    count: u64,
    more: &[(&str, &str)],
) -> Answer {
    let range = format!("bytes={first}-{}", first + count - 1);
    let own = [("x-ms-page-write", "clear"), ("x-ms-range", range.as_str())];
    client
        .send("PUT", "/disks/d?comp=page", &[&own, more].concat(), "")
        .await
}

pub(crate) async fn snapshot(client: &Client) -> String {
    let taken = client.send("PUT", "/disks/d?comp=snapshot", &[], "").await;
    assert_eq!(taken.status, 201);
    taken.header("x-ms-snapshot").to_owned()
}

pub(crate) async fn get(client: &Client, path: &str, range: &str) -> Vec<u8> {
    let got = client.send("GET", path, &[("x-ms-range", range)], "").await;
    assert_eq!(got.status, 206, "{path} {range}");
    got.body.to_vec()
}

/// The ranges of a page list: `0-511 !512-1023`, cleared ones with a mark.
pub(crate) async fn list(client: &Client, path: &str) -> String {
    let got = client.send("GET", path, &[], "").await;
    assert_eq!(got.outcome(), (200, ""), "{path}");
    ranges(&got)
}

pub(crate) fn ranges(list: &Answer) -> String {
    let text = String::from_utf8(list.body.to_vec()).unwrap();
    let text = text.split_once("<PageList").unwrap().1;
    let end = text.find("<NextMarker").unwrap_or(text.len());
    let parts = text[..end].split("Range><Start>").skip(1);
    let parts = parts
        .zip(text.match_indices("Range><Start>"))
        .map(|(part, (at, _))| {
            let (first, rest) = part.split_once('<').unwrap();
            let last = rest
                .split_once("<End>")
                .unwrap()
                .1
                .split_once('<')
                .unwrap()
                .0;
            let mark = if text[..at].ends_with("Clear") {
                "!"
            } else {
                ""
            };
            format!("{mark}{first}-{last}")
        });
    parts.collect::<Vec<_>>().join(" ")
}
