//! The time of the last access, where the account tracks it.

use smalt::AccountSettings;
use smalt_protocol::ApiVersion;

use crate::support::Client;

const HOUR_S: u64 = 3600;
const NAME: &str = "x-ms-last-access-time";

async fn with_blob(last_access_tracking: bool) -> Client {
    let client = Client::of_account(AccountSettings {
        last_access_tracking,
        ..AccountSettings::default()
    });
    client.send("PUT", "/box?restype=container", &[], "").await;
    put(&client).await;
    client
}

async fn put(client: &Client) {
    let kind = [("x-ms-blob-type", "BlockBlob")];
    client.send("PUT", "/box/b", &kind, "text").await;
}

async fn get(client: &Client) {
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!((got.status, got.body.as_ref()), (200, &b"text"[..]));
}

async fn shown(client: &Client) -> String {
    let head = client.send("HEAD", "/box/b", &[], "").await;
    let path = "/box?restype=container&comp=list";
    let listed = client.send("GET", path, &[], "").await;
    let listed = String::from_utf8_lossy(&listed.body).into_owned();
    let time = head.header(NAME).to_owned();
    assert!(listed.contains(&format!("<LastAccessTime>{time}</LastAccessTime>")));
    time
}

/// The first read of a day is noted, the others are not, and a write counts as an access.
#[tokio::test]
async fn one_read_a_day_is_noted() {
    let client = with_blob(true).await;
    let written = client.now().rfc1123();
    client.advance_s(23 * HOUR_S);
    get(&client).await;
    assert_eq!(shown(&client).await, written);
    client.advance_s(HOUR_S);
    let read = client.now().rfc1123();
    let before = client.send("HEAD", "/box/b", &[], "").await;
    get(&client).await;
    assert_eq!(shown(&client).await, read);
    let after = client.send("HEAD", "/box/b", &[], "").await;
    for name in ["etag", "last-modified"] {
        assert_eq!(after.header(name), before.header(name), "{name}");
    }
    client.advance_s(HOUR_S);
    get(&client).await;
    assert_eq!(shown(&client).await, read);
    client.advance_s(HOUR_S);
    put(&client).await;
    assert_eq!(shown(&client).await, client.now().rfc1123());
}

#[tokio::test]
async fn nobody_else_counts_and_older_versions_do_not_see_it() {
    let client = with_blob(true).await;
    let written = client.now().rfc1123();
    client.advance_s(48 * HOUR_S);
    client.send("GET", "/box/b?comp=metadata", &[], "").await;
    client.send("HEAD", "/box/b", &[], "").await;
    client
        .send(
            "GET",
            "/box/b",
            &[("if-match", "\"0x8D6D4173A7F45B7\"")],
            "",
        )
        .await;
    assert_eq!(shown(&client).await, written);
    let old = client.under(ApiVersion::V2019_12_12);
    let head = old.send("HEAD", "/box/b", &[], "").await;
    assert!(!head.has(NAME));
    let untracked = with_blob(false).await;
    untracked.advance_s(48 * HOUR_S);
    get(&untracked).await;
    let head = untracked.send("HEAD", "/box/b", &[], "").await;
    assert!(!head.has(NAME));
}
