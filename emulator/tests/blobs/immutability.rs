//! Immutability policies and legal holds of single versions, as a client sees them.

use smalt::{AccountSettings, Timestamp};

use crate::support::{Answer, Client};

const DAY_S: u64 = 24 * 60 * 60;
const UNTIL: &str = "x-ms-immutability-policy-until-date";
const MODE: &str = "x-ms-immutability-policy-mode";
const HOLD: &str = "x-ms-legal-hold";
const DUE_TO_POLICY: (u16, &str) = (409, "BlobImmutableDueToPolicy");
const DUE_TO_HOLD: (u16, &str) = (409, "BlobImmutableDueToLegalHold");

async fn account(versioning: bool) -> Client {
    let client = Client::of_account(AccountSettings {
        version_immutability: true,
        versioning,
        ..AccountSettings::default()
    });
    client.send("PUT", "/box?restype=container", &[], "").await;
    put(&client, &[]).await;
    client
}

async fn put(client: &Client, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("x-ms-blob-type", "BlockBlob")], headers].concat();
    client.send("PUT", "/box/b", &headers, "text").await
}

async fn delete(client: &Client, path: &str) -> Answer {
    client.send("DELETE", path, &[], "").await
}

fn days(client: &Client, days: u64) -> String {
    Timestamp::plus_s(client.now(), days * DAY_S).rfc1123()
}

async fn set_policy(client: &Client, until: &str, mode: &str) -> Answer {
    let path = "/box/b?comp=immutabilityPolicies";
    client
        .send("PUT", path, &[(UNTIL, until), (MODE, mode)], "")
        .await
}

async fn set_hold(client: &Client, hold: &str) -> Answer {
    let path = "/box/b?comp=legalhold";
    client.send("PUT", path, &[(HOLD, hold)], "").await
}

#[tokio::test]
async fn a_policy_protects_until_its_time() {
    let client = account(false).await;
    let before = client.send("HEAD", "/box/b", &[], "").await;
    let until = days(&client, 2);
    let set = set_policy(&client, &until, "Unlocked").await;
    assert_eq!(
        (set.status, set.header(UNTIL), set.header(MODE)),
        (200, until.as_str(), "unlocked")
    );
    for method in ["HEAD", "GET"] {
        let shown = client.send(method, "/box/b", &[], "").await;
        assert_eq!(
            (shown.header(UNTIL), shown.header(MODE)),
            (until.as_str(), "unlocked")
        );
        assert_eq!(shown.header("etag"), before.header("etag"));
    }
    let path = "/box?restype=container&comp=list";
    for (more, shown) in [("", false), ("&include=immutabilitypolicy", true)] {
        let listed = client.send("GET", &format!("{path}{more}"), &[], "").await;
        let listed = String::from_utf8_lossy(&listed.body).into_owned();
        let mode = "<ImmutabilityPolicyMode>unlocked<";
        assert_eq!(listed.contains(mode), shown, "{more}");
    }
    assert_eq!(delete(&client, "/box/b").await.outcome(), DUE_TO_POLICY);
    assert_eq!(put(&client, &[]).await.outcome(), DUE_TO_POLICY);
    let metadata = client
        .send("PUT", "/box/b?comp=metadata", &[("x-ms-meta-a", "b")], "")
        .await;
    assert_eq!(metadata.outcome(), DUE_TO_POLICY);
    let tier = [("x-ms-access-tier", "Cool")];
    assert_eq!(
        client
            .send("PUT", "/box/b?comp=tier", &tier, "")
            .await
            .status,
        200
    );
    client.advance_s(2 * DAY_S);
    let metadata = client
        .send("PUT", "/box/b?comp=metadata", &[("x-ms-meta-a", "b")], "")
        .await;
    assert_eq!(metadata.outcome(), DUE_TO_POLICY);
    assert_eq!(delete(&client, "/box/b").await.status, 202);
}

#[tokio::test]
async fn a_policy_is_taken_back_unless_it_is_locked() {
    let client = account(false).await;
    set_policy(&client, &days(&client, 2), "Unlocked").await;
    assert_eq!(
        set_policy(&client, &days(&client, 1), "Unlocked")
            .await
            .status,
        200
    );
    let path = "/box/b?comp=immutabilityPolicies";
    assert_eq!(delete(&client, path).await.status, 200);
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert!(!head.has(UNTIL) && !head.has(MODE));
    let locked = set_policy(&client, &days(&client, 2), "Locked").await;
    assert_eq!(locked.header(MODE), "locked");
    for (until, mode, expected) in [
        (1, "Locked", DUE_TO_POLICY),
        (3, "Unlocked", DUE_TO_POLICY),
        (3, "Locked", (200, "")),
    ] {
        let answer = set_policy(&client, &days(&client, until), mode).await;
        assert_eq!(answer.outcome(), expected, "{until} {mode}");
    }
    assert_eq!(delete(&client, path).await.outcome(), DUE_TO_POLICY);
}

#[tokio::test]
async fn a_hold_goes_before_a_policy() {
    let client = account(false).await;
    set_policy(&client, &days(&client, 2), "Unlocked").await;
    let held = set_hold(&client, "true").await;
    assert_eq!((held.status, held.header(HOLD)), (200, "true"));
    assert_eq!(delete(&client, "/box/b").await.outcome(), DUE_TO_HOLD);
    assert_eq!(set_hold(&client, "false").await.header(HOLD), "false");
    assert_eq!(delete(&client, "/box/b").await.outcome(), DUE_TO_POLICY);
}

/// Where versions are kept a protected one can be written over, since it stays.
#[tokio::test]
async fn versions_stay_protected() {
    let client = account(true).await;
    let until = days(&client, 2);
    let made = put(
        &client,
        &[(UNTIL, &until), (MODE, "Locked"), (HOLD, "true")],
    )
    .await;
    assert_eq!(made.status, 201);
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert_eq!((head.header(HOLD), head.header(MODE)), ("true", "locked"));
    assert_eq!(delete(&client, "/box/b").await.outcome(), DUE_TO_HOLD);
    let next = put(&client, &[]).await;
    assert_eq!(next.status, 201);
    let head = client.send("HEAD", "/box/b", &[], "").await;
    assert!(!head.has(HOLD) && !head.has(UNTIL));
    let old = format!("/box/b?versionid={}", made.header("x-ms-version-id"));
    assert_eq!(delete(&client, &old).await.outcome(), DUE_TO_HOLD);
    let release = format!("{old}&comp=legalhold");
    assert_eq!(
        client
            .send("PUT", &release, &[(HOLD, "false")], "")
            .await
            .status,
        200
    );
    assert_eq!(delete(&client, &old).await.outcome(), DUE_TO_POLICY);
    client.advance_s(2 * DAY_S);
    assert_eq!(delete(&client, &old).await.status, 202);
}

#[tokio::test]
async fn append_and_page_blobs_are_not_changed_in_place() {
    let client = account(true).await;
    let hold = (HOLD, "true");
    let append = [("x-ms-blob-type", "AppendBlob"), hold];
    assert_eq!(
        client.send("PUT", "/box/log", &append, "").await.status,
        201
    );
    let appended = client
        .send("PUT", "/box/log?comp=appendblock", &[], "x")
        .await;
    assert_eq!(appended.outcome(), DUE_TO_HOLD);
    let length = ("x-ms-blob-content-length", "512");
    let page = [("x-ms-blob-type", "PageBlob"), length, hold];
    assert_eq!(client.send("PUT", "/box/disk", &page, "").await.status, 201);
    let clear = [("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")];
    let cleared = client.send("PUT", "/box/disk?comp=page", &clear, "").await;
    assert_eq!(cleared.outcome(), DUE_TO_HOLD);
    let resized = client
        .send("PUT", "/box/disk?comp=properties", &[length], "")
        .await;
    assert_eq!(resized.outcome(), DUE_TO_HOLD);
}

#[tokio::test]
async fn an_account_without_it_refuses() {
    let client = Client::new();
    client.send("PUT", "/box?restype=container", &[], "").await;
    let refused = (409, "BlobOperationNotSupported");
    let made = put(&client, &[(HOLD, "true")]).await;
    assert_eq!(made.outcome(), refused);
    put(&client, &[]).await;
    assert_eq!(set_hold(&client, "true").await.outcome(), refused);
    let set = set_policy(&client, &days(&client, 1), "Unlocked").await;
    assert_eq!(set.outcome(), refused);
    let past = set_policy(&client, &client.now().rfc1123(), "Unlocked").await;
    assert_eq!(past.outcome(), (400, "InvalidHeaderValue"));
    let container = client.send("HEAD", "/box?restype=container", &[], "").await;
    let shown = container.header("x-ms-immutable-storage-with-versioning-enabled");
    assert_eq!(shown, "false");
}

/// A protected blob is replaced where it stays as a version: where versions are kept, even of a
/// blob from before that, and where it is one already, even after that.
#[tokio::test]
async fn one_that_stays_as_a_version_is_replaced() {
    for (before, after, wanted) in [
        (false, false, DUE_TO_HOLD),
        (false, true, (201, "")),
        (true, false, (201, "")),
    ] {
        let client = account(before).await;
        assert_eq!(set_hold(&client, "true").await.status, 200);
        let settings = AccountSettings {
            version_immutability: true,
            versioning: after,
            ..AccountSettings::default()
        };
        let name = smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;
        assert!(client.emulator().change_settings(name, settings));
        let replaced = put(&client, &[]).await;
        assert_eq!(replaced.outcome(), wanted, "{before}, then {after}");
    }
}

/// A snapshot is not protected with its blob.
#[tokio::test]
async fn a_snapshot_is_protected_by_itself_alone() {
    let client = account(false).await;
    set_policy(&client, &days(&client, 2), "Unlocked").await;
    set_hold(&client, "true").await;
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    let path = format!("/box/b?snapshot={}", taken.header("x-ms-snapshot"));
    let head = client.send("HEAD", &path, &[], "").await;
    assert_eq!(head.status, 200);
    assert!(!head.has(UNTIL) && !head.has(HOLD), "{head:?}");
    assert_eq!(delete(&client, &path).await.status, 202);
    assert_eq!(delete(&client, "/box/b").await.outcome(), DUE_TO_HOLD);
}
