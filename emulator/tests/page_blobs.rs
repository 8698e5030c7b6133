//! Page blobs through a signing client: pages, ranges, differences, sequence numbers, copies.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use smalt_protocol::ApiVersion;
use support::{Answer, Client};

const PAGE: &str = "x-ms-blob-type";
const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;

/// A container with a page blob `/disks/d` of this length.
async fn with_disk(length: u64) -> Client {
    let client = Client::new();
    let created = client
        .send("PUT", "/disks?restype=container", &[], "")
        .await;
    assert_eq!(created.status, 201);
    assert_eq!(create(&client, length, &[]).await.status, 201);
    client
}

async fn create(client: &Client, length: u64, more: &[(&str, &str)]) -> Answer {
    let length = length.to_string();
    let own = [
        (PAGE, "PageBlob"),
        ("x-ms-blob-content-length", length.as_str()),
    ];
    client
        .send("PUT", "/disks/d", &[&own, more].concat(), "")
        .await
}

/// Writes pages of one letter.
async fn put(
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

async fn clear(client: &Client, first: u64, count: u64, more: &[(&str, &str)]) -> Answer {
    let range = format!("bytes={first}-{}", first + count - 1);
    let own = [("x-ms-page-write", "clear"), ("x-ms-range", range.as_str())];
    client
        .send("PUT", "/disks/d?comp=page", &[&own, more].concat(), "")
        .await
}

async fn snapshot(client: &Client) -> String {
    let taken = client.send("PUT", "/disks/d?comp=snapshot", &[], "").await;
    assert_eq!(taken.status, 201);
    taken.header("x-ms-snapshot").to_owned()
}

async fn get(client: &Client, path: &str, range: &str) -> Vec<u8> {
    let got = client.send("GET", path, &[("x-ms-range", range)], "").await;
    assert_eq!(got.status, 206, "{path} {range}");
    got.body.to_vec()
}

/// The ranges of a page list: `0-511 !512-1023`, cleared ones with a mark.
async fn list(client: &Client, path: &str) -> String {
    let got = client.send("GET", path, &[], "").await;
    assert_eq!(got.outcome(), (200, ""), "{path}");
    ranges(&got)
}

fn ranges(list: &Answer) -> String {
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

#[tokio::test]
async fn a_new_page_blob_is_zeros() {
    let client = with_disk(2048).await;
    let head = client.send("HEAD", "/disks/d", &[], "").await;
    for (name, value) in [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-sequence-number", "0"),
        ("content-length", "2048"),
        ("content-type", "application/octet-stream"),
        ("x-ms-access-tier", ""),
    ] {
        assert_eq!(head.header(name), value, "{name}");
    }
    let got = client.send("GET", "/disks/d", &[], "").await;
    assert_eq!((got.status, got.body.to_vec()), (200, vec![0; 2048]));
    assert_eq!(list(&client, "/disks/d?comp=pagelist").await, "");
    let listed = client
        .send("GET", "/disks?restype=container&comp=list", &[], "")
        .await;
    let listed = String::from_utf8(listed.body.to_vec()).unwrap();
    let number = "<x-ms-blob-sequence-number>0</x-ms-blob-sequence-number><BlobType>PageBlob<";
    assert!(listed.contains(number), "{listed}");
}

#[tokio::test]
async fn pages_are_written_over_each_other_and_cleared() {
    let client = with_disk(8192).await;
    let put_a = put(&client, 0, 4096, 'a', &[]).await;
    assert_eq!(
        (put_a.status, put_a.header("x-ms-blob-sequence-number")),
        (201, "0")
    );
    assert!(put_a.has("x-ms-content-crc64") && !put_a.has("content-md5"));
    assert_eq!(put(&client, 1024, 512, 'b', &[]).await.status, 201);
    let cleared = clear(&client, 2048, 1024, &[]).await;
    assert_eq!(cleared.status, 201);
    assert!(!cleared.has("x-ms-request-server-encrypted"));
    let mut expected = vec![b'a'; 4096];
    expected[1024..1536].fill(b'b');
    expected[2048..3072].fill(0);
    expected.extend([0; 4096]);
    assert_eq!(get(&client, "/disks/d", "bytes=0-8191").await, expected);
    assert_eq!(
        get(&client, "/disks/d", "bytes=1000-2100").await,
        expected[1000..=2100]
    );
    assert_eq!(
        list(&client, "/disks/d?comp=pagelist").await,
        "0-2047 3072-4095"
    );
    let within = [("x-ms-range", "bytes=512-3583")];
    let found = client
        .send("GET", "/disks/d?comp=pagelist", &within, "")
        .await;
    assert_eq!(ranges(&found), "512-2047 3072-3583");
    // A hash of a range that is partly written, partly not.
    let hash = [
        ("x-ms-range", "bytes=2048-4095"),
        ("x-ms-range-get-content-md5", "true"),
    ];
    let hashed = client.send("GET", "/disks/d", &hash, "").await;
    assert_eq!((hashed.status, hashed.has("content-md5")), (206, true));
}

#[tokio::test]
async fn writes_are_held_to_their_conditions() {
    let client = with_disk(1024).await;
    assert_eq!(
        put(&client, 512, 1024, 'a', &[]).await.outcome(),
        (416, "InvalidPageRange")
    );
    let etag = client
        .send("HEAD", "/disks/d", &[], "")
        .await
        .header("etag")
        .to_owned();
    let leased = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
    ];
    for (headers, expected) in [
        (("if-match", etag.as_str()), (201, "")),
        (("if-match", etag.as_str()), (412, "ConditionNotMet")),
        (("x-ms-if-sequence-number-le", "0"), (201, "")),
        (
            ("x-ms-if-sequence-number-lt", "0"),
            (412, "SequenceNumberConditionNotMet"),
        ),
        (
            ("x-ms-if-sequence-number-eq", "1"),
            (412, "SequenceNumberConditionNotMet"),
        ),
        (("x-ms-if-sequence-number-eq", "-1"), (400, "InvalidInput")),
        (
            ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
            (400, "Md5Mismatch"),
        ),
        (
            ("x-ms-content-crc64", "AAAAAAAAAAA="),
            (400, "Crc64Mismatch"),
        ),
    ] {
        let answer = put(&client, 0, 512, 'a', &[headers]).await;
        assert_eq!(answer.outcome(), expected, "{headers:?}");
    }
    let lease = client.send("PUT", "/disks/d?comp=lease", &leased, "").await;
    assert_eq!(
        put(&client, 0, 512, 'a', &[]).await.outcome(),
        (412, "LeaseIdMissing")
    );
    let held = [("x-ms-lease-id", lease.header("x-ms-lease-id"))];
    assert_eq!(put(&client, 0, 512, 'a', &held).await.status, 201);
}

#[tokio::test]
async fn length_and_sequence_number_are_properties() {
    let client = with_disk(4096).await;
    put(&client, 2048, 2048, 'a', &[]).await;
    let described = [("x-ms-blob-content-type", "a/b")];
    assert_eq!(
        client
            .send("PUT", "/disks/d?comp=properties", &described, "")
            .await
            .status,
        200
    );
    let set = async |headers: &[(&str, &str)]| {
        let answer = client
            .send("PUT", "/disks/d?comp=properties", headers, "")
            .await;
        (
            answer.status,
            answer.header("x-ms-blob-sequence-number").to_owned(),
        )
    };
    let action = "x-ms-sequence-number-action";
    let number = "x-ms-blob-sequence-number";
    assert_eq!(set(&[(action, "increment")]).await, (200, "1".to_owned()));
    assert_eq!(
        set(&[(action, "max"), (number, "9")]).await,
        (200, "9".to_owned())
    );
    assert_eq!(
        set(&[(action, "max"), (number, "3")]).await,
        (200, "9".to_owned())
    );
    assert_eq!(
        set(&[(action, "update"), (number, "3")]).await,
        (200, "3".to_owned())
    );
    let largest = i64::MAX.to_string();
    assert_eq!(
        set(&[(action, "update"), (number, &largest)]).await,
        (200, largest.clone())
    );
    assert_eq!(set(&[(action, "increment")]).await.0, 409);
    // What a shorter blob loses does not come back with the length.
    let length = "x-ms-blob-content-length";
    assert_eq!(set(&[(length, "3072")]).await.0, 200);
    assert_eq!(list(&client, "/disks/d?comp=pagelist").await, "2048-3071");
    assert_eq!(set(&[(length, "8192")]).await.0, 200);
    assert_eq!(list(&client, "/disks/d?comp=pagelist").await, "2048-3071");
    assert_eq!(get(&client, "/disks/d", "bytes=3072-").await, vec![0; 5120]);
    let head = client.send("HEAD", "/disks/d", &[], "").await;
    assert_eq!(
        (head.header("content-type"), head.header("content-length")),
        ("a/b", "8192")
    );
}

#[tokio::test]
async fn differences_count_writes_and_not_bytes() {
    let client = with_disk(4096).await;
    let empty = snapshot(&client).await;
    put(&client, 0, 1536, 'a', &[]).await;
    let full = snapshot(&client).await;
    clear(&client, 512, 512, &[]).await;
    put(&client, 1024, 512, 'a', &[]).await;
    let since = |snapshot: &str| format!("/disks/d?comp=pagelist&prevsnapshot={snapshot}");
    assert_eq!(
        list(&client, &since(&empty)).await,
        "0-511 !512-1023 1024-1535"
    );
    assert_eq!(list(&client, &since(&full)).await, "!512-1023 1024-1535");
    let between = format!("{}&snapshot={full}", since(&empty));
    assert_eq!(list(&client, &between).await, "0-1535");
    let backwards = format!("{}&snapshot={empty}", since(&full));
    let refused = client.send("GET", &backwards, &[], "").await;
    assert_eq!(refused.outcome(), (400, "PreviousSnapshotCannotBeNewer"));
    let unknown = client
        .send("GET", &since("2020-01-01T00:00:00.0000000Z"), &[], "")
        .await;
    assert_eq!(unknown.outcome(), (409, "PreviousSnapshotNotFound"));
    // By URL, as for managed disks: the end of the list is told.
    let url = client.url(&format!("/disks/d?snapshot={full}&sig=none"));
    let by_url = [("x-ms-previous-snapshot-url", url.as_str())];
    let found = client
        .send("GET", "/disks/d?comp=pagelist", &by_url, "")
        .await;
    assert_eq!(ranges(&found), "!512-1023 1024-1535");
    assert!(found.body.ends_with(b"<NextMarker /></PageList>"));
    // A blob that was made anew has nothing in common with its snapshots.
    assert_eq!(create(&client, 4096, &[]).await.status, 201);
    let overwritten = client.send("GET", &since(&full), &[], "").await;
    assert_eq!(overwritten.outcome(), (409, "BlobOverwritten"));
    assert_eq!(
        get(
            &client,
            &format!("/disks/d?snapshot={full}"),
            "bytes=0-1535"
        )
        .await,
        [b'a'; 1536]
    );
}

#[tokio::test]
async fn long_lists_come_in_pages_since_2020_10_02() {
    let client = with_disk(1_048_576).await;
    for page in 0..5 {
        put(&client, page * 4096, 512, 'a', &[]).await;
    }
    let (mut found, mut marker) = (Vec::new(), String::new());
    for _ in 0..3 {
        let path = format!("/disks/d?comp=pagelist&maxresults=2&marker={marker}");
        let page = client.send("GET", &path, &[], "").await;
        found.push(ranges(&page));
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        let next = text.split_once("<NextMarker>").map_or("", |(_, next)| next);
        marker = next.split('<').next().unwrap_or_default().to_owned();
    }
    assert_eq!(
        found,
        ["0-511 4096-4607", "8192-8703 12288-12799", "16384-16895"]
    );
    assert_eq!(marker, "");
    let older = client.under(ApiVersion::V2019_12_12);
    let whole = list(&older, "/disks/d?comp=pagelist&maxresults=2").await;
    assert_eq!(whole.split(' ').count(), 5);
}

#[tokio::test]
async fn pages_come_from_other_blobs() {
    let client = with_disk(2048).await;
    let body = [vec![b'x'; 512], vec![b'y'; 512]].concat();
    let kind = [(PAGE, "BlockBlob")];
    assert_eq!(
        client
            .send("PUT", "/disks/source", &kind, body)
            .await
            .status,
        201
    );
    let source = client.signed_url("disks", "source", "r");
    let copy = async |range: &str, from: &str, more: &[(&str, &str)]| {
        let own = [
            ("x-ms-page-write", "update"),
            ("x-ms-range", range),
            ("x-ms-copy-source", source.as_str()),
            ("x-ms-source-range", from),
        ];
        client
            .send("PUT", "/disks/d?comp=page", &[&own, more].concat(), "")
            .await
    };
    let copied = copy("bytes=1024-1535", "bytes=512-1023", &[]).await;
    assert_eq!((copied.status, copied.has("content-md5")), (201, true));
    assert_eq!(
        get(&client, "/disks/d", "bytes=1024-1535").await,
        [b'y'; 512]
    );
    let wrong = [("x-ms-source-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")];
    let refused = copy("bytes=0-511", "bytes=0-511", &wrong).await;
    assert_eq!(refused.outcome(), (400, "Md5Mismatch"));
    let short = copy("bytes=0-1023", "bytes=512-1535", &[]).await;
    assert_eq!(short.outcome(), (416, "CannotVerifyCopySource"));
    let unequal = copy("bytes=0-511", "bytes=0-1023", &[]).await;
    assert_eq!(unequal.outcome(), (400, "InvalidHeaderValue"));
    let later = copy(
        "bytes=0-511",
        "bytes=0-511",
        &[("x-ms-source-if-match", "\"0x1\"")],
    )
    .await;
    assert_eq!(later.outcome(), (412, "CannotVerifyCopySource"));
}

#[tokio::test]
async fn copies_share_pages_until_one_of_them_changes() {
    let client = with_disk(2048).await;
    put(&client, 0, 2048, 'a', &[]).await;
    let number = [
        ("x-ms-sequence-number-action", "update"),
        ("x-ms-blob-sequence-number", "7"),
    ];
    client
        .send("PUT", "/disks/d?comp=properties", &number, "")
        .await;
    let from = [("x-ms-copy-source", client.url("/disks/d"))];
    let from = [(from[0].0, from[0].1.as_str())];
    assert_eq!(client.send("PUT", "/disks/e", &from, "").await.status, 202);
    put(&client, 512, 512, 'b', &[]).await;
    assert_eq!(
        get(&client, "/disks/e", "bytes=0-2047").await,
        vec![b'a'; 2048]
    );
    let head = client.send("HEAD", "/disks/e", &[], "").await;
    assert_eq!(head.header("x-ms-blob-sequence-number"), "7");
    assert_eq!(client.send("DELETE", "/disks/d", &[], "").await.status, 202);
    assert_eq!(
        get(&client, "/disks/e", "bytes=512-1023").await,
        [b'a'; 512]
    );
}

#[tokio::test]
async fn incremental_copies_follow_the_snapshots_of_one_blob() {
    let client = with_disk(1024).await;
    put(&client, 0, 512, 'a', &[]).await;
    let first = snapshot(&client).await;
    put(&client, 512, 512, 'b', &[]).await;
    let second = snapshot(&client).await;
    let copy = async |path: &str, snapshot: &str| {
        let source = client.url(&format!("/disks/d{snapshot}"));
        let from = [("x-ms-copy-source", source.as_str())];
        client.send("PUT", path, &from, "").await
    };
    let (path, at) = ("/disks/e?comp=incrementalcopy", |time: &str| {
        format!("?snapshot={time}")
    });
    let base = copy(path, "").await;
    assert_eq!(base.outcome(), (409, "IncrementalCopySourceMustBeSnapshot"));
    let copied = copy(path, &at(&first)).await;
    assert_eq!(
        (copied.status, copied.header("x-ms-copy-status")),
        (202, "pending")
    );
    assert_eq!(copy(path, &at(&second)).await.status, 202);
    let earlier = copy(path, &at(&first)).await;
    let code = "IncrementalCopyOfEarlierVersionSnapshotNotAllowed";
    assert_eq!(earlier.outcome(), (409, code));
    let onto = copy("/disks/d?comp=incrementalcopy", &at(&second)).await;
    assert_eq!(onto.outcome(), (409, "IncrementalCopyBlobMismatch"));
    let head = client.send("HEAD", "/disks/e", &[], "").await;
    assert_eq!(head.header("x-ms-incremental-copy"), "true");
    assert_eq!(head.header("x-ms-copy-status"), "success");
    // The destination is read through its snapshots, and changes by such copies only.
    let last = head.header("x-ms-copy-destination-snapshot");
    let bytes = get(
        &client,
        &format!("/disks/e?snapshot={last}"),
        "bytes=0-1023",
    )
    .await;
    assert_eq!(bytes, [[b'a'; 512], [b'b'; 512]].concat());
    let code = "OperationNotAllowedOnIncrementalCopyBlob";
    for (method, path) in [("GET", "/disks/e"), ("PUT", "/disks/e?comp=snapshot")] {
        let refused = client.send(method, path, &[], "").await;
        assert_eq!(refused.outcome(), (409, code), "{method} {path}");
    }
    let all = [("x-ms-delete-snapshots", "include")];
    assert_eq!(
        client.send("DELETE", "/disks/e", &all, "").await.status,
        202
    );
}

#[tokio::test]
async fn other_kinds_of_blobs_have_no_pages_and_page_blobs_no_blocks() {
    let client = with_disk(512).await;
    client
        .send("PUT", "/disks/block", &[(PAGE, "BlockBlob")], "a")
        .await;
    let range = ("x-ms-range", "bytes=0-511");
    for (method, path, headers) in [
        (
            "PUT",
            "/disks/block?comp=page",
            vec![("x-ms-page-write", "clear"), range],
        ),
        ("GET", "/disks/block?comp=pagelist", vec![]),
        (
            "PUT",
            "/disks/block?comp=properties",
            vec![("x-ms-blob-content-length", "512")],
        ),
        ("GET", "/disks/d?comp=blocklist", vec![]),
    ] {
        let refused = client.send(method, path, &headers, "").await;
        assert_eq!(
            refused.outcome(),
            (409, "InvalidBlobType"),
            "{method} {path}"
        );
    }
    let block = client
        .send("PUT", "/disks/d?comp=block&blockid=YQ%3D%3D", &[], "a")
        .await;
    assert_eq!(block.outcome(), (409, "InvalidBlobType"));
    let appended = client
        .send("PUT", "/disks/d?comp=appendblock", &[], "a")
        .await;
    assert_eq!(appended.outcome(), (409, "InvalidBlobType"));
}

#[tokio::test]
async fn a_sparse_blob_of_20_gib_is_cheap_wherever_it_is_touched() {
    let client = with_disk(20 * GIB).await;
    for at in [0, 7 * GIB + 512, 20 * GIB - 4 * MIB] {
        assert_eq!(
            put(&client, at, 4 * 1024 * 1024, 'a', &[]).await.status,
            201
        );
    }
    let taken = snapshot(&client).await;
    assert_eq!(clear(&client, 0, 20 * GIB, &[]).await.status, 201);
    assert_eq!(list(&client, "/disks/d?comp=pagelist").await, "");
    let listed = list(&client, &format!("/disks/d?comp=pagelist&snapshot={taken}")).await;
    assert_eq!(
        listed,
        "0-4194303 7516193280-7520387583 21470642176-21474836479"
    );
    let changed = list(
        &client,
        &format!("/disks/d?comp=pagelist&prevsnapshot={taken}"),
    )
    .await;
    assert_eq!(changed, "!0-21474836479");
    let middle = format!("bytes={}-{}", 7 * GIB, 7 * GIB + 1023);
    let bytes = get(&client, &format!("/disks/d?snapshot={taken}"), &middle).await;
    assert_eq!(bytes, [[0; 512], [b'a'; 512]].concat());
}
