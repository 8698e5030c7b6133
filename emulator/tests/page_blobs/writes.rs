//! Writing, clearing, resizing: what is there afterwards, and what is refused.

use crate::disk::{KIND, clear, get, list, put, ranges, with_disk};

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
async fn other_kinds_of_blobs_have_no_pages_and_page_blobs_no_blocks() {
    let client = with_disk(512).await;
    client
        .send("PUT", "/disks/block", &[(KIND, "BlockBlob")], "a")
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
