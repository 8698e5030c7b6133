//! Blobs that expire by the clock, through a client.

use smalt::AccountSettings;

use crate::support::{Answer, BLOCK, Client};

const HOUR_S: u64 = 3600;

async fn with_blob() -> Client {
    let client = Client::of_account(AccountSettings {
        blob_expiry: true,
        ..AccountSettings::default()
    });
    client.create("box").await;
    client.put("/box/dir/b", "text").await;
    client
}

async fn expire(client: &Client, option: &str, time: &str) -> Answer {
    let mut headers = vec![("x-ms-expiry-option", option)];
    headers.extend((!time.is_empty()).then_some(("x-ms-expiry-time", time)));
    client
        .send("PUT", "/box/dir/b?comp=expiry", &headers, "")
        .await
}

async fn listed(client: &Client, more: &str) -> String {
    let path = format!("/box?restype=container&comp=list{more}");
    client.get(&path).await.text().to_owned()
}

#[tokio::test]
async fn expired_blob_does_not_exist() {
    let client = with_blob().await;
    let before = client.head("/box/dir/b").await;
    let set = expire(&client, "RelativeToNow", "3600000").await;
    assert_eq!(set.status, 200);
    assert_eq!(set.header("etag"), before.header("etag"));
    let head = client.head("/box/dir/b").await;
    let expires = client.now().plus_s(HOUR_S).rfc1123();
    assert_eq!(head.header("x-ms-expiry-time"), expires);
    let shown = format!("<Expiry-Time>{expires}</Expiry-Time>");
    assert!(listed(&client, "").await.contains(&shown));
    let taken = client
        .send("PUT", "/box/dir/b?comp=snapshot", &[], "")
        .await;
    // A snapshot has no expiry of its own: it expires with its blob.
    let snapshot = format!("/box/dir/b?snapshot={}", taken.header("x-ms-snapshot"));
    let head = client.head(&snapshot).await;
    assert!(head.status == 200 && !head.has("x-ms-expiry-time"));
    client.advance_s(HOUR_S - 1);
    assert_eq!(client.get("/box/dir/b").await.status, 200);
    client.advance_s(1);
    let gone = client.get("/box/dir/b").await;
    assert_eq!(gone.outcome(), "404 BlobNotFound");
    assert!(!listed(&client, "").await.contains("dir/b"));
    assert!(!listed(&client, "&delimiter=/").await.contains("dir/"));
    assert_eq!(client.maintain(), 1);
    assert!(
        !listed(&client, "&include=snapshots")
            .await
            .contains("dir/b")
    );
    assert_eq!(client.maintain(), 0);
}

#[tokio::test]
async fn expiry_can_be_removed_and_is_lost_on_overwrite() {
    let client = with_blob().await;
    expire(&client, "RelativeToNow", "3600000").await;
    assert_eq!(expire(&client, "NeverExpire", "").await.status, 200);
    client.advance_s(HOUR_S);
    assert_eq!(client.get("/box/dir/b").await.status, 200);
    expire(&client, "RelativeToCreation", "7200000").await;
    client.put("/box/dir/b", "text").await;
    client.advance_s(HOUR_S);
    let head = client.head("/box/dir/b").await;
    assert_eq!((head.status, head.has("x-ms-expiry-time")), (200, false));
    assert_eq!(client.maintain(), 0);
}

/// A new blob replaces an expired one that is not reaped yet, and nothing of it remains.
#[tokio::test]
async fn new_blob_replaces_an_expired_one() {
    let client = with_blob().await;
    let at = client.now().plus_s(HOUR_S).rfc1123();
    assert_eq!(expire(&client, "Absolute", &at).await.status, 200);
    client.advance_s(HOUR_S);
    let fresh = [BLOCK, ("if-none-match", "*")];
    let made = client.send("PUT", "/box/dir/b", &fresh, "new").await;
    assert_eq!(made.status, 201);
    assert_eq!(client.maintain(), 0);
    let got = client.get("/box/dir/b").await;
    assert_eq!(got.body.as_ref(), b"new");
    let past = client.now().rfc1123();
    let refused = expire(&client, "Absolute", &past).await;
    assert_eq!(refused.outcome(), "400 InvalidHeaderValue");
}

#[tokio::test]
async fn account_without_the_setting_has_no_expiry() {
    let client = Client::new();
    client.create("box").await;
    client.put("/box/dir/b", "text").await;
    let refused = expire(&client, "NeverExpire", "").await;
    assert_eq!(refused.outcome(), "400 HierarchicalNamespaceNotEnabled");
}

/// Whatever takes the place of an expired file that is not reaped yet, nothing of it remains.
#[tokio::test]
async fn paths_replace_an_expired_one() {
    let client = Client::hierarchical();
    client.create("box").await;
    let lake = client.as_data_lake();
    let from = [("x-ms-rename-source", "/box/other")];
    for (path, headers) in [
        ("/box/dir/b?resource=directory", &[][..]),
        ("/box/dir/b/c?resource=file", &[]),
        ("/box/dir/b", &from),
    ] {
        client.put("/box/dir/b", "text").await;
        client.put("/box/other", "other").await;
        expire(&client, "RelativeToNow", "3600000").await;
        let waits = "/box/dir/b?action=append&position=0";
        assert_eq!(lake.send("PATCH", waits, &[], "wait").await.status, 202);
        client.advance_s(HOUR_S);
        assert_eq!(lake.try_("PUT", path, headers).await, "201", "{path}");
        assert_eq!(client.emulator().audit().unwrap().differences, [""; 0]);
        assert_eq!(client.maintain(), 0);
        let flush = "/box/dir/b?action=flush&position=4";
        assert_ne!(lake.try_("PATCH", flush, &[]).await, "200", "{path}");
        assert_eq!(
            lake.try_("DELETE", "/box/dir?recursive=true", &[]).await,
            "200"
        );
        while client.emulator().maintain(100).unwrap().more {}
    }
}

/// A directory that expired would take the way to what it holds along.
#[tokio::test]
async fn directory_has_no_expiry() {
    let client = Client::hierarchical();
    client.create("box").await;
    client.put("/box/dir/b", "text").await;
    let lake = client.as_data_lake();
    for (client, code) in [(&client, "ResourceTypeMismatch"), (&lake, "PathConflict")] {
        let never = [("x-ms-expiry-option", "NeverExpire")];
        let refused = client.try_("PUT", "/box/dir?comp=expiry", &never).await;
        assert_eq!(refused, format!("409 {code}"));
    }
}
