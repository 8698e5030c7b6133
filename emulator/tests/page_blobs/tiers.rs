//! Premium accounts: their page blobs have tiers, which are sizes.

use smalt::{AccountSettings, DefaultTier};

use crate::disk::{GIB, create, put};
use crate::support::Client;

const TIER: &str = "x-ms-access-tier";

async fn premium() -> Client {
    let client = Client::of_account(AccountSettings {
        default_tier: DefaultTier::Premium,
        ..AccountSettings::default()
    });
    let path = "/disks?restype=container";
    assert_eq!(client.send("PUT", path, &[], "").await.status, 201);
    client
}

#[tokio::test]
async fn a_tier_is_given_or_goes_by_the_length() {
    let client = premium().await;
    for (length, given, tier, inferred) in [
        (GIB, None, "P10", "true"),
        (512 * GIB, None, "P20", "true"),
        (GIB, Some("P4"), "P4", ""),
    ] {
        let headers: Vec<_> = given.map(|tier| (TIER, tier)).into_iter().collect();
        assert_eq!(create(&client, length, &headers).await.status, 201);
        let head = client.send("HEAD", "/disks/d", &[], "").await;
        assert_eq!(head.header(TIER), tier);
        assert_eq!(head.header("x-ms-access-tier-inferred"), inferred);
        assert!(!head.has("x-ms-access-tier-change-time"));
    }
    let listed = client
        .send("GET", "/disks?restype=container&comp=list", &[], "")
        .await;
    let listed = String::from_utf8(listed.body.to_vec()).unwrap();
    assert!(listed.contains("<AccessTier>P4</AccessTier>"), "{listed}");
    // Recorded: premium accounts answer with the MD5.
    let written = put(&client, 0, 512, 'a', &[]).await;
    assert!(written.has("content-md5") && !written.has("x-ms-content-crc64"));
}

#[tokio::test]
async fn a_blob_fits_its_tier() {
    let client = premium().await;
    let small = [(TIER, "P4")];
    let too_small = create(&client, 33 * GIB, &small).await;
    let code = "BlobTierInadequateForContentLength";
    assert_eq!(too_small.outcome(), (409, code));
    assert_eq!(create(&client, 32 * GIB, &small).await.status, 201);
    let length = (33 * GIB).to_string();
    let headers = [("x-ms-blob-content-length", length.as_str())];
    let resized = client
        .send("PUT", "/disks/d?comp=properties", &headers, "")
        .await;
    assert_eq!(resized.outcome(), (409, "ContentLengthLargerThanTierLimit"));
    let cool = create(&client, GIB, &[(TIER, "Cool")]).await;
    assert_eq!(cool.outcome(), (400, "AccessTierNotSupportedForBlobType"));
}

/// A page blob of a gibibyte, `/disks/d`, and a block blob, `/disks/b`.
async fn premium_with_both_kinds() -> Client {
    let client = premium().await;
    assert_eq!(create(&client, GIB, &[]).await.status, 201);
    let block = [("x-ms-blob-type", "BlockBlob")];
    let put = client.send("PUT", "/disks/b", &block, "text").await;
    assert_eq!(put.status, 201);
    client
}

/// A copy gets a tier of its kind: of pages a size, of blocks none of them.
#[tokio::test]
async fn the_tier_of_a_copy_is_one_of_its_kind() {
    let client = premium_with_both_kinds().await;
    let refused = (400, "AccessTierNotSupportedForBlobType");
    for (source, tier, wanted) in [
        ("/disks/d", "P6", (202, "")),
        ("/disks/d", "Cool", refused),
        ("/disks/b", "Cool", (202, "")),
        ("/disks/b", "P6", refused),
    ] {
        let url = client.url(source);
        let headers = [("x-ms-copy-source", url.as_str()), (TIER, tier)];
        let copied = client.send("PUT", "/disks/copy", &headers, "").await;
        assert_eq!(copied.outcome(), wanted, "{source} as {tier}");
        if wanted == refused {
            continue;
        }
        let head = client.send("HEAD", "/disks/copy", &[], "").await;
        assert_eq!(head.header(TIER), tier);
        client.send("DELETE", "/disks/copy", &[], "").await;
    }
}

/// The same of a tier that is set: what is none of the kind has a code for each kind.
#[tokio::test]
async fn the_tier_that_is_set_is_one_of_the_kind() {
    let client = premium_with_both_kinds().await;
    for (path, tier, wanted) in [
        ("/disks/d", "P15", (200, "")),
        (
            "/disks/d",
            "Cool",
            (400, "AccessTierNotSupportedForBlobType"),
        ),
        ("/disks/b", "Cool", (200, "")),
        ("/disks/b", "P15", (400, "InvalidBlobTier")),
    ] {
        let path = format!("{path}?comp=tier");
        let set = client.send("PUT", &path, &[(TIER, tier)], "").await;
        assert_eq!(set.outcome(), wanted, "{path} {tier}");
    }
}
