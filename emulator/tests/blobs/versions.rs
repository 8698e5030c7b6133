//! Previous versions of blobs: what makes one, what reads, deletes and brings one back.

use smalt::AccountSettings;
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;

use crate::support::{Answer, Client};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const VERSION: &str = "x-ms-version-id";
const CURRENT: &str = "x-ms-is-current-version";

fn set_versioning(client: &Client, versioning: bool) {
    let settings = AccountSettings {
        versioning,
        ..AccountSettings::default()
    };
    assert!(
        client
            .emulator()
            .change_settings(EMULATOR_ACCOUNT_NAME, settings)
    );
}

async fn with_container() -> Client {
    let client = Client::new();
    set_versioning(&client, true);
    let created = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(created.status, 201);
    client
}

async fn put(client: &Client, body: &'static str) -> String {
    client.advance_s(1);
    let answer = client.send("PUT", "/box/b", &[BLOCK], body).await;
    assert_eq!(answer.status, 201);
    answer.header(VERSION).to_owned()
}

async fn get(client: &Client, path: &str) -> Answer {
    client.send("GET", path, &[], "").await
}

/// Ids of the versions as listed, the current one with a star.
async fn listed(client: &Client, include: &str) -> Vec<String> {
    let path = format!("/box?restype=container&comp=list&include={include}");
    let answer = get(client, &path).await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let id = |blob: &str| {
        let part = blob.split("<VersionId>").nth(1)?;
        let id = part.split('<').next()?.to_owned();
        let is_current = blob.contains("<IsCurrentVersion>true<");
        Some(if is_current { format!("{id}*") } else { id })
    };
    text.split("<Blob>").skip(1).filter_map(id).collect()
}

#[tokio::test]
async fn an_overwrite_keeps_what_was_there() {
    let client = with_container().await;
    let (first, second) = (put(&client, "one").await, put(&client, "two").await);
    assert!(first < second, "{first} {second}");
    let current = get(&client, "/box/b").await;
    assert_eq!(current.body, "two");
    assert_eq!(current.header(VERSION), second);
    assert_eq!(current.header(CURRENT), "true");
    assert_eq!(current.header("x-ms-lease-state"), "available");
    let previous = get(&client, &format!("/box/b?versionid={first}")).await;
    assert_eq!(previous.body, "one");
    assert_eq!(previous.header(VERSION), first);
    assert!(!previous.has(CURRENT) && !previous.has("x-ms-lease-state"));
    let by_id = get(&client, &format!("/box/b?versionid={second}")).await;
    assert_eq!(
        (by_id.body.as_ref(), by_id.header(CURRENT)),
        (&b"two"[..], "true")
    );
    assert!(!by_id.has("x-ms-lease-state"));
    assert_eq!(
        listed(&client, "versions").await,
        [first, format!("{second}*")]
    );
    assert_eq!(listed(&client, "metadata").await, [format!("{second}*")]);
    let missing = get(&client, "/box/b?versionid=2020-01-01T00:00:00.0000000Z").await;
    assert_eq!(
        (missing.status, missing.header("x-ms-error-code")),
        (404, "BlobNotFound")
    );
}

#[tokio::test]
async fn metadata_and_snapshots_make_versions_and_properties_and_tags_do_not() {
    let client = with_container().await;
    let first = put(&client, "one").await;
    let metadata = [("x-ms-meta-team", "billing")];
    let set = client
        .send("PUT", "/box/b?comp=metadata", &metadata, "")
        .await;
    let second = set.header(VERSION).to_owned();
    assert!(first < second);
    let old = client
        .send("HEAD", &format!("/box/b?versionid={first}"), &[], "")
        .await;
    assert!(!old.has("x-ms-meta-team"));
    let etag = client
        .send("HEAD", "/box/b", &[], "")
        .await
        .header("etag")
        .to_owned();
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    let third = taken.header(VERSION).to_owned();
    assert!(second < third && taken.header("x-ms-snapshot") < third.as_str());
    assert_eq!(taken.header("etag"), etag);
    let snapshot = format!("/box/b?snapshot={}", taken.header("x-ms-snapshot"));
    assert!(!get(&client, &snapshot).await.has(VERSION));
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    for (path, body, status) in [
        ("/box/b?comp=properties", "", 200),
        ("/box/b?comp=tags", tags, 204),
    ] {
        let answer = client.send("PUT", path, &[], body).await;
        assert_eq!(
            (answer.status, answer.has(VERSION)),
            (status, false),
            "{path}"
        );
    }
    let all = [first, second, format!("{third}*")];
    assert_eq!(listed(&client, "versions").await, all);
}

#[tokio::test]
async fn a_version_has_tags_and_a_tier_of_its_own() {
    let client = with_container().await;
    let (first, _) = (put(&client, "one").await, put(&client, "two").await);
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    let path = format!("/box/b?comp=tags&versionid={first}");
    assert_eq!(client.send("PUT", &path, &[], tags).await.status, 204);
    assert!(
        get(&client, &path)
            .await
            .body
            .ends_with(&tags.as_bytes()[6..])
    );
    assert!(
        !get(&client, "/box/b?comp=tags")
            .await
            .body
            .windows(5)
            .any(|w| w == b"<Key>")
    );
    let path = format!("/box/b?comp=tier&versionid={first}");
    let cool = [("x-ms-access-tier", "Cool")];
    assert_eq!(client.send("PUT", &path, &cool, "").await.status, 200);
    let version = client
        .send("HEAD", &format!("/box/b?versionid={first}"), &[], "")
        .await;
    assert_eq!(version.header("x-ms-access-tier"), "Cool");
    let current = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!(current.header("x-ms-access-tier"), "Hot");
}

#[tokio::test]
async fn a_deletion_leaves_versions_and_a_version_is_deleted_by_its_id() {
    let client = with_container().await;
    let (first, second) = (put(&client, "one").await, put(&client, "two").await);
    let current = format!("/box/b?versionid={second}");
    let refused = client.send("DELETE", &current, &[], "").await;
    assert_eq!(
        refused.header("x-ms-error-code"),
        "OperationNotAllowedOnRootBlob"
    );
    let deleted = client.send("DELETE", "/box/b", &[], "").await;
    assert_eq!(deleted.status, 202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "false");
    assert_eq!(get(&client, "/box/b").await.status, 404);
    assert_eq!(get(&client, &current).await.body, "two");
    assert_eq!(
        listed(&client, "versions").await,
        [first.clone(), second.clone()]
    );
    // The blob as such is told of on request only.
    let only = get(
        &client,
        "/box?restype=container&comp=list&include=deletedwithversions",
    )
    .await;
    let only = String::from_utf8(only.body.to_vec()).unwrap();
    assert!(
        only.contains("<HasVersionsOnly>true</HasVersionsOnly>"),
        "{only}"
    );
    assert!(listed(&client, "deleted").await.is_empty());
    for id in [&first, &second] {
        let path = format!("/box/b?versionid={id}");
        let deleted = client.send("DELETE", &path, &[], "").await;
        assert_eq!(deleted.header("x-ms-delete-type-permanent"), "true");
        assert_eq!(get(&client, &path).await.status, 404);
    }
    assert!(
        listed(&client, "versions,deletedwithversions")
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn a_version_is_promoted_by_a_copy() {
    let client = with_container().await;
    let (first, _) = (put(&client, "one").await, put(&client, "two").await);
    let source = client.url(&format!("/box/b?versionid={first}"));
    let headers = [("x-ms-copy-source", source.as_str())];
    let copied = client.send("PUT", "/box/b", &headers, "").await;
    assert_eq!(
        (copied.status, copied.header("x-ms-copy-status")),
        (202, "success")
    );
    let current = get(&client, "/box/b").await;
    assert_eq!(current.body, "one");
    assert_eq!(current.header(VERSION), copied.header(VERSION));
    assert_eq!(listed(&client, "versions").await.len(), 3);
}

#[tokio::test]
async fn a_committed_block_list_goes_on_in_its_version() {
    let client = with_container().await;
    let mut ids = Vec::new();
    for (id, body) in [("MQ%3D%3D", "one"), ("Mg%3D%3D", "two")] {
        let path = format!("/box/b?comp=block&blockid={id}");
        assert_eq!(client.send("PUT", &path, &[], body).await.status, 201);
        let plain = id.replace("%3D", "=");
        let list = if ids.is_empty() {
            format!("<BlockList><Latest>{plain}</Latest></BlockList>")
        } else {
            format!("<BlockList><Latest>MQ==</Latest><Latest>{plain}</Latest></BlockList>")
        };
        let put = client.send("PUT", "/box/b?comp=blocklist", &[], list).await;
        assert_eq!(put.status, 201);
        ids.push(put.header(VERSION).to_owned());
    }
    assert_eq!(get(&client, "/box/b").await.body, "onetwo");
    let first = format!("/box/b?versionid={}", ids[0]);
    assert_eq!(get(&client, &first).await.body, "one");
    // Without the version the block that both hold stays.
    assert_eq!(client.send("DELETE", &first, &[], "").await.status, 202);
    client.emulator().maintain(100).unwrap();
    assert_eq!(get(&client, "/box/b").await.body, "onetwo");
}

#[tokio::test]
async fn what_was_there_before_versioning_and_after_it_has_no_id() {
    let client = with_container().await;
    set_versioning(&client, false);
    assert_eq!(put(&client, "before").await, "");
    set_versioning(&client, true);
    let first = put(&client, "kept").await;
    let all = listed(&client, "versions").await;
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(
        get(&client, &format!("/box/b?versionid={}", all[0]))
            .await
            .body,
        "before"
    );
    set_versioning(&client, false);
    assert_eq!(put(&client, "after").await, "");
    assert_eq!(
        get(&client, &format!("/box/b?versionid={first}"))
            .await
            .body,
        "kept"
    );
    assert_eq!(put(&client, "last").await, "");
    assert_eq!(listed(&client, "versions").await.len(), 2);
}

#[tokio::test]
async fn older_clients_hear_nothing_of_versions() {
    let client = with_container().await;
    put(&client, "one").await;
    let old = client.under(ApiVersion::V2019_02_02);
    assert_eq!(put(&old, "two").await, "");
    let got = get(&old, "/box/b").await;
    assert!(!got.has(VERSION) && !got.has(CURRENT));
    assert!(listed(&old, "metadata").await.is_empty());
    assert_eq!(listed(&client, "versions").await.len(), 2);
}

#[tokio::test]
async fn a_deleted_container_takes_versions_and_deleted_blobs_along() {
    let client = with_container().await;
    put(&client, "one").await;
    put(&client, "two").await;
    assert_eq!(client.send("DELETE", "/box/b", &[], "").await.status, 202);
    let deleted = client
        .send("DELETE", "/box?restype=container", &[], "")
        .await;
    assert_eq!(deleted.status, 202);
    // Two versions, what tells of the blob, and the mark of what is left.
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 4);
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 0);
}
