//! Soft delete of blobs: what maintenance removes, and when.

use smalt::AccountSettings;

use crate::support::Client;

const PERMANENT: &str = "x-ms-delete-type-permanent";
const DAY_S: u64 = 86_400;

/// Creates a container in an account that keeps deleted blobs for two days.
async fn with_container() -> Client {
    let client = Client::new();
    set_policy(&client, "<Enabled>true</Enabled><Days>2</Days>").await;
    client.create("box").await;
    client
}

async fn set_policy(client: &Client, policy: &str) {
    let name = "DeleteRetentionPolicy";
    let root = "StorageServiceProperties";
    let body = format!("<{root}><{name}>{policy}</{name}></{root}>");
    let path = "/?restype=service&comp=properties";
    assert_eq!(client.send("PUT", path, &[], body).await.status, 202);
}

async fn snapshot(client: &Client) -> String {
    client.advance_s(1);
    let answer = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    assert_eq!(answer.status, 201);
    answer.header("x-ms-snapshot").to_owned()
}

/// Returns one line per blob: snapshot or not, and for a deleted one the remaining days.
async fn listed(client: &Client, include: &str) -> Vec<String> {
    let path = format!("/box?restype=container&comp=list&include={include}");
    let answer = client.get(&path).await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
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
    client.put("/box/b", "one").await;
    snapshot(&client).await;
    let headers = [("x-ms-delete-snapshots", "include")];
    assert_eq!(client.try_("DELETE", "/box/b", &headers).await, "202");
    client.advance_s(DAY_S + 1);
    assert_eq!(listed(&client, "deleted").await, ["blob deleted 0"]);
    assert_eq!(client.maintain(), 0);
    client.advance_s(DAY_S - 1);
    assert!(listed(&client, "deleted,snapshots").await.is_empty());
    let undelete = client.try_("PUT", "/box/b?comp=undelete", &[]).await;
    assert_eq!(undelete, "404 BlobNotFound");
    assert_eq!(client.maintain(), 2);
    assert_eq!(client.maintain(), 0);
}

#[tokio::test]
async fn deleted_snapshot_is_permanently_deleted_if_allowed() {
    let client = with_container().await;
    client.put("/box/b", "one").await;
    let taken = snapshot(&client).await;
    let path = format!("/box/b?snapshot={taken}");
    let permanent = format!("{path}&deletetype=permanent");
    assert_eq!(
        client.try_("DELETE", &permanent, &[]).await,
        "409 PermanentDeleteIsOff"
    );
    let policy = "<Enabled>true</Enabled><Days>2</Days>";
    let allowed = "<AllowPermanentDelete>true</AllowPermanentDelete>";
    set_policy(&client, &format!("{policy}{allowed}")).await;
    assert_eq!(client.try_("DELETE", &path, &[]).await, "202");
    let gone = client.head(&path).await;
    assert_eq!(gone.outcome(), "404 BlobNotFound");
    assert_eq!(gone.header("x-ms-is-soft-deleted"), "true");
    let deleted = client.send("DELETE", &permanent, &[], "").await;
    assert_eq!((deleted.status, deleted.header(PERMANENT)), (202, "true"));
    assert_eq!(
        client.try_("DELETE", &permanent, &[]).await,
        "404 BlobNotFound"
    );
    assert_eq!(listed(&client, "deleted,snapshots").await, ["blob"]);
    assert_eq!(client.maintain(), 0);
    // An expired snapshot cannot be deleted, whether maintenance has removed it or not.
    let path = format!("/box/b?snapshot={}", snapshot(&client).await);
    assert_eq!(client.try_("DELETE", &path, &[]).await, "202");
    client.advance_s(2 * 24 * 60 * 60);
    let permanent = format!("{path}&deletetype=permanent");
    assert_eq!(
        client.try_("DELETE", &permanent, &[]).await,
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
    client.change_settings(settings);
    client.put("/box/b", "one").await;
    let current = client.head("/box/b").await;
    let path = format!("/box/b?versionid={}", current.header("x-ms-version-id"));
    assert_eq!(client.try_("DELETE", "/box/b", &[]).await, "202");
    assert_eq!(listed(&client, "versions,deleted").await, ["blob"]);
    let deleted = client.send("DELETE", &path, &[], "").await;
    assert_eq!((deleted.status, deleted.header(PERMANENT)), (202, "false"));
    assert_eq!(client.try_("GET", &path, &[]).await, "404 BlobNotFound");
    assert!(listed(&client, "versions").await.is_empty());
    assert_eq!(
        listed(&client, "versions,deleted").await,
        ["blob deleted 1"]
    );
    assert_eq!(client.try_("PUT", "/box/b?comp=undelete", &[]).await, "200");
    assert_eq!(client.get(&path).await.body, "one");
    assert_eq!(client.try_("GET", "/box/b", &[]).await, "404 BlobNotFound");
    assert_eq!(client.try_("DELETE", &path, &[]).await, "202");
    client.advance_s(2 * DAY_S);
    assert_eq!(client.maintain(), 1);
    assert_eq!(
        client.try_("PUT", "/box/b?comp=undelete", &[]).await,
        "404 BlobNotFound"
    );
}
