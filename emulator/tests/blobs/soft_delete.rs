//! Soft delete of blobs: what maintenance removes, and when.

use smalt::AccountSettings;
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;

use crate::support::{Answer, Client};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const PERMANENT: &str = "x-ms-delete-type-permanent";
const DAY_S: u64 = 86_400;

/// Creates a container in an account that keeps deleted blobs for two days.
async fn with_container() -> Client {
    let client = Client::new();
    set_policy(&client, "<Enabled>true</Enabled><Days>2</Days>").await;
    let created = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(created.status, 201);
    client
}

async fn set_policy(client: &Client, policy: &str) {
    let name = "DeleteRetentionPolicy";
    let root = "StorageServiceProperties";
    let body = format!("<{root}><{name}>{policy}</{name}></{root}>");
    let path = "/?restype=service&comp=properties";
    assert_eq!(client.send("PUT", path, &[], body).await.status, 202);
}

async fn put(client: &Client, body: &'static str) {
    let answer = client.send("PUT", "/box/b", &[BLOCK], body).await;
    assert_eq!(answer.status, 201);
}

async fn snapshot(client: &Client) -> String {
    client.advance_s(1);
    let answer = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    assert_eq!(answer.status, 201);
    answer.header("x-ms-snapshot").to_owned()
}

async fn try_(client: &Client, method: &str, path: &str) -> String {
    outcome(&client.send(method, path, &[], "").await)
}

fn outcome(answer: &Answer) -> String {
    let code = answer.header("x-ms-error-code");
    format!("{} {code}", answer.status).trim_end().to_owned()
}

/// Returns one line per blob: snapshot or not, and for a deleted one the remaining days.
async fn listed(client: &Client, include: &str) -> Vec<String> {
    let path = format!("/box?restype=container&comp=list&include={include}");
    let answer = client.send("GET", &path, &[], "").await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let line = |blob: &str| {
        let kind = if blob.contains("<Snapshot>") {
            "snapshot"
        } else {
            "blob"
        };
        let days = blob.split("<RemainingRetentionDays>").nth(1);
        assert_eq!(
            days.is_some(),
            blob.contains("<Deleted>true</Deleted>"),
            "{blob}"
        );
        match days.and_then(|days| days.split('<').next()) {
            Some(days) => format!("{kind} deleted {days}"),
            None => kind.to_owned(),
        }
    };
    text.split("<Blob>").skip(1).map(line).collect()
}

#[tokio::test]
async fn soft_deleted_blob_is_removed_after_the_retention() {
    let client = with_container().await;
    put(&client, "one").await;
    snapshot(&client).await;
    let headers = [("x-ms-delete-snapshots", "include")];
    assert_eq!(
        client.send("DELETE", "/box/b", &headers, "").await.status,
        202
    );
    client.advance_s(DAY_S + 1);
    assert_eq!(listed(&client, "deleted").await, ["blob deleted 0"]);
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 0);
    client.advance_s(DAY_S - 1);
    assert!(listed(&client, "deleted,snapshots").await.is_empty());
    let undelete = try_(&client, "PUT", "/box/b?comp=undelete").await;
    assert_eq!(undelete, "404 BlobNotFound");
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 2);
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 0);
}

#[tokio::test]
async fn deleted_snapshot_is_permanently_deleted_if_allowed() {
    let client = with_container().await;
    put(&client, "one").await;
    let taken = snapshot(&client).await;
    let path = format!("/box/b?snapshot={taken}");
    let permanent = format!("{path}&deletetype=permanent");
    assert_eq!(
        try_(&client, "DELETE", &permanent).await,
        "409 PermanentDeleteIsOff"
    );
    let policy = "<Enabled>true</Enabled><Days>2</Days>";
    let allowed = "<AllowPermanentDelete>true</AllowPermanentDelete>";
    set_policy(&client, &format!("{policy}{allowed}")).await;
    assert_eq!(try_(&client, "DELETE", &path).await, "202");
    let gone = client.send("HEAD", &path, &[], "").await;
    assert_eq!(outcome(&gone), "404 BlobNotFound");
    assert_eq!(gone.header("x-ms-is-soft-deleted"), "true");
    let deleted = client.send("DELETE", &permanent, &[], "").await;
    assert_eq!((deleted.status, deleted.header(PERMANENT)), (202, "true"));
    assert_eq!(
        try_(&client, "DELETE", &permanent).await,
        "404 BlobNotFound"
    );
    assert_eq!(listed(&client, "deleted,snapshots").await, ["blob"]);
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 0);
    // An expired snapshot cannot be deleted, whether maintenance has removed it or not.
    let path = format!("/box/b?snapshot={}", snapshot(&client).await);
    assert_eq!(try_(&client, "DELETE", &path).await, "202");
    client.advance_s(2 * 24 * 60 * 60);
    let permanent = format!("{path}&deletetype=permanent");
    assert_eq!(
        try_(&client, "DELETE", &permanent).await,
        "404 BlobNotFound"
    );
}

#[tokio::test]
async fn deleted_version_is_undeleted_without_a_current_one() {
    let client = with_container().await;
    let settings = AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    };
    client
        .emulator()
        .change_settings(EMULATOR_ACCOUNT_NAME, settings);
    put(&client, "one").await;
    let current = client.send("HEAD", "/box/b", &[], "").await;
    let path = format!("/box/b?versionid={}", current.header("x-ms-version-id"));
    assert_eq!(try_(&client, "DELETE", "/box/b").await, "202");
    assert_eq!(listed(&client, "versions,deleted").await, ["blob"]);
    let deleted = client.send("DELETE", &path, &[], "").await;
    assert_eq!((deleted.status, deleted.header(PERMANENT)), (202, "false"));
    assert_eq!(try_(&client, "GET", &path).await, "404 BlobNotFound");
    assert!(listed(&client, "versions").await.is_empty());
    assert_eq!(
        listed(&client, "versions,deleted").await,
        ["blob deleted 1"]
    );
    assert_eq!(try_(&client, "PUT", "/box/b?comp=undelete").await, "200");
    assert_eq!(client.send("GET", &path, &[], "").await.body, "one");
    assert_eq!(try_(&client, "GET", "/box/b").await, "404 BlobNotFound");
    assert_eq!(try_(&client, "DELETE", &path).await, "202");
    client.advance_s(2 * DAY_S);
    assert_eq!(client.emulator().maintain(100).unwrap().records_reaped, 1);
    assert_eq!(
        try_(&client, "PUT", "/box/b?comp=undelete").await,
        "404 BlobNotFound"
    );
}
