//! Pages from other blobs, copies that share them, incremental copies.

use smalt::AccountSettings;
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;

use crate::disk::{KIND, create, get, put, snapshot, with_disk};
use crate::support::{Answer, Client};

#[tokio::test]
async fn pages_come_from_other_blobs() {
    let client = with_disk(2048).await;
    let body = [vec![b'x'; 512], vec![b'y'; 512]].concat();
    let kind = [(KIND, "BlockBlob")];
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
    let tiered = [from[0], ("x-ms-access-tier", "P10")];
    let refused = client.send("PUT", "/disks/f", &tiered, "").await;
    let code = "AccessTierNotSupportedForBlobType";
    assert_eq!(refused.outcome(), (400, code));
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

/// Metadata, a type and a sequence number for the source.
async fn describe(client: &Client) {
    for (part, headers) in [
        ("metadata", vec![("x-ms-meta-k", "v")]),
        (
            "properties",
            vec![
                ("x-ms-blob-content-type", "text/plain"),
                ("x-ms-sequence-number-action", "update"),
                ("x-ms-blob-sequence-number", "7"),
            ],
        ),
    ] {
        let path = format!("/disks/d?comp={part}");
        assert_eq!(client.send("PUT", &path, &headers, "").await.status, 200);
    }
}

#[tokio::test]
async fn incremental_copies_follow_the_snapshots_of_one_blob() {
    let client = with_disk(1024).await;
    put(&client, 0, 512, 'a', &[]).await;
    let first = snapshot(&client).await;
    put(&client, 512, 512, 'b', &[]).await;
    describe(&client).await;
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
    for (name, value) in [
        ("content-type", "text/plain"),
        ("x-ms-meta-k", "v"),
        ("x-ms-blob-sequence-number", "7"),
    ] {
        assert_eq!(head.header(name), value);
    }
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
    // Each copy has left a snapshot.
    let refused = client.send("DELETE", "/disks/e", &[], "").await;
    assert_eq!(refused.outcome(), (409, "SnapshotsPresent"));
    let all = [("x-ms-delete-snapshots", "include")];
    assert_eq!(
        client.send("DELETE", "/disks/e", &all, "").await.status,
        202
    );
}

/// Copies a snapshot of a disk into `/disks/e`.
async fn copy_incrementally(client: &Client, disk: &str, snapshot: &str) -> Answer {
    let source = client.url(&format!("/disks/{disk}?snapshot={snapshot}"));
    let from = [("x-ms-copy-source", source.as_str())];
    let path = "/disks/e?comp=incrementalcopy";
    client.send("PUT", path, &from, "").await
}

#[tokio::test]
async fn incremental_copies_have_one_source() {
    let client = with_disk(512).await;
    let first = snapshot(&client).await;
    let copied = copy_incrementally(&client, "d", &first).await;
    assert_eq!(copied.outcome(), (202, ""));
    let again = copy_incrementally(&client, "d", &first).await;
    assert_eq!(again.outcome(), (202, ""), "the same snapshot once more");
    let kind = [(KIND, "PageBlob"), ("x-ms-blob-content-length", "512")];
    let other = client.send("PUT", "/disks/other", &kind, "").await;
    assert_eq!(other.status, 201);
    let path = "/disks/other?comp=snapshot";
    let taken = client.send("PUT", path, &[], "").await;
    let of_other = taken.header("x-ms-snapshot");
    let refused = copy_incrementally(&client, "other", of_other).await;
    assert_eq!(refused.outcome(), (409, "IncrementalCopyBlobMismatch"));
    // Of the same name, but another blob.
    let all = [("x-ms-delete-snapshots", "include")];
    assert_eq!(
        client.send("DELETE", "/disks/d", &all, "").await.status,
        202
    );
    assert_eq!(create(&client, 512, &[]).await.status, 201);
    let of_new = snapshot(&client).await;
    let refused = copy_incrementally(&client, "d", &of_new).await;
    assert_eq!(refused.outcome(), (409, "IncrementalCopyBlobMismatch"));
}

#[tokio::test]
async fn the_first_incremental_copy_alone_names_a_version() {
    let client = with_disk(512).await;
    let settings = AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    };
    let emulator = client.emulator();
    assert!(emulator.change_settings(EMULATOR_ACCOUNT_NAME, settings));
    let taken = snapshot(&client).await;
    let first = copy_incrementally(&client, "d", &taken).await;
    let second = copy_incrementally(&client, "d", &taken).await;
    assert_eq!((first.status, second.status), (202, 202));
    let names_one = [&first, &second].map(|answer| answer.has("x-ms-version-id"));
    assert_eq!(names_one, [true, false]);
    let head = client.send("HEAD", "/disks/e", &[], "").await;
    assert!(!head.has("x-ms-version-id"));
}
