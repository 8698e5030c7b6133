//! Legal holds of single versions in an account whose settings change.

use smalt::AccountSettings;

use crate::support::{Answer, BLOCK, Client};

const HOLD: &str = "x-ms-legal-hold";
const DUE_TO_HOLD: &str = "409 BlobImmutableDueToLegalHold";

async fn account(versioning: bool) -> Client {
    let client = Client::of_account(AccountSettings {
        version_immutability: true,
        versioning,
        ..AccountSettings::default()
    });
    client.create("box").await;
    put(&client, &[]).await;
    client
}

async fn put(client: &Client, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[BLOCK], headers].concat();
    client.send("PUT", "/box/b", &headers, "text").await
}

async fn set_hold(client: &Client, hold: &str) -> Answer {
    let path = "/box/b?comp=legalhold";
    client.send("PUT", path, &[(HOLD, hold)], "").await
}

/// A protected blob can be replaced if it stays as a version: when versioning is on, even for a
/// blob from before that, and when the blob is a version already, even after versioning was turned
/// off.
#[tokio::test]
async fn protected_blob_that_stays_as_a_version_can_be_replaced() {
    for (before, after, wanted) in [
        (false, false, DUE_TO_HOLD),
        (false, true, "201"),
        (true, false, "201"),
    ] {
        let client = account(before).await;
        assert_eq!(set_hold(&client, "true").await.status, 200);
        let settings = AccountSettings {
            version_immutability: true,
            versioning: after,
            ..AccountSettings::default()
        };
        client.change_settings(settings);
        let replaced = put(&client, &[]).await;
        assert_eq!(replaced.outcome(), wanted, "{before}, then {after}");
    }
}
