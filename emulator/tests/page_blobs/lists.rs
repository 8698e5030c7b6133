//! Page lists: whole, in pages, as differences.

use smalt_protocol::ApiVersion;

use crate::disk::{GIB, MIB, clear, create, get, list, put, ranges, snapshot, with_disk};

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
