//! Previous versions of blobs while settings change, and their maintenance.

use smalt::AccountSettings;

use crate::support::Client;

const VERSION: &str = "x-ms-version-id";

fn set_versioning(client: &Client, versioning: bool) {
    let settings = AccountSettings {
        versioning,
        ..AccountSettings::default()
    };
    client.change_settings(settings);
}

async fn with_container() -> Client {
    let client = Client::new();
    set_versioning(&client, true);
    client.create("box").await;
    client
}

async fn put(client: &Client, body: &'static str) -> String {
    client.advance_s(1);
    client.put("/box/b", body).await.header(VERSION).to_owned()
}

/// Returns the ids of the versions as listed, the current one with a star.
async fn listed(client: &Client, include: &str) -> Vec<String> {
    let path = format!("/box?restype=container&comp=list&include={include}");
    let answer = client.get(&path).await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let id = |blob: &str| {
        let part = blob.split("<VersionId>").nth(1)?;
        let id = part.split('<').next()?.to_owned();
        let is_current = blob.contains("<IsCurrentVersion>true<");
        Some(if is_current { format!("{id}*") } else { id })
    };
    text.split("<Blob>").skip(1).filter_map(id).collect()
}

#[tokio::test]
async fn committed_block_list_stays_in_its_version() {
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
    assert_eq!(client.get("/box/b").await.body, "onetwo");
    let first = format!("/box/b?versionid={}", ids[0]);
    assert_eq!(client.get(&first).await.body, "one");
    // Without the version, the block that both contain stays.
    assert_eq!(client.send("DELETE", &first, &[], "").await.status, 202);
    client.emulator().maintain(100).unwrap();
    assert_eq!(client.get("/box/b").await.body, "onetwo");
}

#[tokio::test]
async fn blobs_written_without_versioning_have_no_version_id() {
    let client = with_container().await;
    set_versioning(&client, false);
    assert_eq!(put(&client, "before").await, "");
    set_versioning(&client, true);
    let first = put(&client, "kept").await;
    let all = listed(&client, "versions").await;
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(
        client
            .get(&format!("/box/b?versionid={}", all[0]))
            .await
            .body,
        "before"
    );
    set_versioning(&client, false);
    assert_eq!(put(&client, "after").await, "");
    assert_eq!(
        client.get(&format!("/box/b?versionid={first}")).await.body,
        "kept"
    );
    assert_eq!(put(&client, "last").await, "");
    assert_eq!(listed(&client, "versions").await.len(), 2);
}

#[tokio::test]
async fn deleting_a_container_removes_versions_and_deleted_blobs() {
    let client = with_container().await;
    put(&client, "one").await;
    put(&client, "two").await;
    assert_eq!(client.send("DELETE", "/box/b", &[], "").await.status, 202);
    assert_eq!(
        client.try_("DELETE", "/box?restype=container", &[]).await,
        "202"
    );
    // Two versions, the blob's own record, and the marker of remaining records.
    assert_eq!(client.maintain(), 4);
    assert_eq!(client.maintain(), 0);
}
