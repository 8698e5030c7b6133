//! Tiers by the clock, as a client sees them.

use smalt::{AccountSettings, DefaultTier};
use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

const HOUR_S: u64 = 60 * 60;
const DAY_S: u64 = 24 * HOUR_S;
const TIER: &str = "x-ms-access-tier";
const PRIORITY: &str = "x-ms-rehydrate-priority";

async fn with_blob(tier: &str) -> Client {
    let client = Client::new();
    client.send("PUT", "/box?restype=container", &[], "").await;
    let headers = [("x-ms-blob-type", "BlockBlob"), (TIER, tier)];
    let made = client.send("PUT", "/box/b", &headers, "text").await;
    assert_eq!(made.status, 201);
    client
}

async fn set(client: &Client, tier: &str, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[(TIER, tier)], headers].concat();
    client.send("PUT", "/box/b?comp=tier", &headers, "").await
}

async fn head(client: &Client, name: &str) -> Answer {
    client.send("HEAD", &format!("/box/{name}"), &[], "").await
}

#[tokio::test]
async fn an_archived_blob_comes_back_by_the_clock() {
    for (priority, takes_s) in [("High", HOUR_S), ("Standard", 15 * HOUR_S)] {
        let client = with_blob("Archive").await;
        let read = client.send("GET", "/box/b", &[], "").await;
        assert_eq!(read.outcome(), (409, "BlobArchived"));
        let sent = set(&client, "Cool", &[(PRIORITY, priority)]).await;
        assert_eq!(sent.status, 202);
        let other = set(&client, "Hot", &[]).await;
        assert_eq!(other.outcome(), (409, "BlobBeingRehydrated"));
        client.advance_s(takes_s - 1);
        let before = head(&client, "b").await;
        assert_eq!(before.header(TIER), "Archive");
        assert_eq!(
            before.header("x-ms-archive-status"),
            "rehydrate-pending-to-cool"
        );
        assert_eq!(before.header(PRIORITY), priority);
        client.advance_s(1);
        let after = head(&client, "b").await;
        assert_eq!(
            (after.header(TIER), after.has("x-ms-archive-status")),
            ("Cool", false)
        );
        let changed = after.header("x-ms-access-tier-change-time");
        assert_eq!(changed, client.now().rfc1123());
        let read = client.send("GET", "/box/b", &[], "").await;
        assert_eq!(read.body.as_ref(), b"text");
    }
}

#[tokio::test]
async fn a_copy_of_an_archived_blob_is_pending_as_long() {
    let client = with_blob("Archive").await;
    let source = client.url("/box/b");
    let from = ("x-ms-copy-source", source.as_str());
    let refused = client.send("PUT", "/box/copy", &[from], "").await;
    assert_eq!(refused.outcome(), (409, "BlobArchived"));
    let headers = [from, (TIER, "Hot"), (PRIORITY, "High")];
    let copied = client.send("PUT", "/box/copy", &headers, "").await;
    assert_eq!(
        (copied.status, copied.header("x-ms-copy-status")),
        (202, "pending")
    );
    client.advance_s(HOUR_S - 1);
    let pending = head(&client, "copy").await;
    assert_eq!(pending.header("x-ms-copy-status"), "pending");
    client.advance_s(1);
    let read = client.send("GET", "/box/copy", &[], "").await;
    assert_eq!(read.body.as_ref(), b"text");
    let done = head(&client, "copy").await;
    assert_eq!(
        (done.header("x-ms-copy-status"), done.header(TIER)),
        ("success", "Hot")
    );
    assert_eq!(head(&client, "b").await.header(TIER), "Archive");
}

/// A smart blob goes where its use says; reading it brings it back.
#[tokio::test]
async fn a_smart_blob_follows_its_use() {
    let client = with_blob("Smart").await;
    for (days, place) in [(0, "Hot"), (30, "Cool"), (60, "Cold")] {
        client.advance_s(days * DAY_S);
        let shown = head(&client, "b").await;
        assert_eq!(shown.header(TIER), "Smart");
        assert_eq!(shown.header("x-ms-smart-access-tier"), place);
    }
    client.send("GET", "/box/b", &[], "").await;
    let shown = head(&client, "b").await;
    assert_eq!(shown.header("x-ms-smart-access-tier"), "Hot");
    let old = client.under(ApiVersion::V2021_12_02);
    assert_eq!(
        set(&old, "Smart", &[]).await.outcome(),
        (400, "InvalidHeaderValue")
    );
}

#[tokio::test]
async fn page_blobs_of_premium_accounts_rise() {
    for (default_tier, expected) in [
        (
            DefaultTier::Premium,
            [(200, ""), (409, "CannotChangeToLowerTier"), (200, "")],
        ),
        (
            DefaultTier::Hot,
            [(400, "AccessTierNotSupportedForBlobType"); 3],
        ),
    ] {
        let client = Client::of_account(AccountSettings {
            default_tier,
            ..AccountSettings::default()
        });
        client.send("PUT", "/box?restype=container", &[], "").await;
        let page = [
            ("x-ms-blob-type", "PageBlob"),
            ("x-ms-blob-content-length", "512"),
        ];
        assert_eq!(client.send("PUT", "/box/b", &page, "").await.status, 201);
        for (tier, expected) in ["P10", "P6", "P20"].into_iter().zip(expected) {
            assert_eq!(set(&client, tier, &[]).await.outcome(), expected, "{tier}");
        }
    }
}

#[tokio::test]
async fn tags_are_a_condition_of_a_tier() {
    let client = with_blob("Hot").await;
    let document = "<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>";
    client.send("PUT", "/box/b?comp=tags", &[], document).await;
    let unmet = set(&client, "Cool", &[("x-ms-if-tags", "a = '2'")]).await;
    assert_eq!(unmet.outcome(), (412, "ConditionNotMet"));
    let met = set(&client, "Cool", &[("x-ms-if-tags", "a = '1'")]).await;
    assert_eq!(met.status, 200);
}
