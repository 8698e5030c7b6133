//! Anonymous requests.

use std::sync::Arc;

use smalt::{AccountSettings, Config};
use smalt_protocol::ApiVersion;

use super::world::{By, World, config};

const NONE: &str = "NoAuthenticationInformation";

async fn opened(level: &str) -> World {
    let world = World::new().await;
    let path = "/open?restype=container&comp=acl";
    let headers = [("x-ms-blob-public-access", level)];
    assert_eq!(world.owner("PUT", path, &headers, "").await.status, 200);
    let block = [("x-ms-blob-type", "BlockBlob")];
    let put = world.owner("PUT", "/open/b", &block, "hello").await;
    assert_eq!(put.status, 201);
    world
}

/// Which operations public access to blobs and to the container allows.
#[tokio::test]
async fn each_public_access_level_allows_its_operations() {
    let (blobs, container) = (opened("blob").await, opened("container").await);
    for (method, path, with_blob, with_container) in [
        ("GET", "/open/b", 200, 200),
        ("HEAD", "/open/b", 200, 200),
        ("GET", "/open/b?comp=metadata", 200, 200),
        ("GET", "/open/b?comp=blocklist", 200, 200),
        ("GET", "/open?restype=container", 401, 200),
        ("GET", "/open?restype=container&comp=metadata", 401, 200),
        ("GET", "/open?restype=container&comp=list", 401, 200),
        ("GET", "/open?restype=container&comp=acl", 401, 401),
        ("GET", "/open/b?comp=tags", 401, 401),
        ("PUT", "/open/b?comp=metadata", 401, 401),
        ("DELETE", "/open/b", 401, 401),
        ("GET", "/box/b", 401, 401),
        ("GET", "/?comp=list", 401, 401),
    ] {
        for (world, status) in [(&blobs, with_blob), (&container, with_container)] {
            let answer = world.ask(By::Nobody, method, path, &[], "").await;
            assert_eq!(answer.status, status, "{method} {path}");
        }
    }
}

/// Recorded: without a version, or with one before the challenges, a private resource appears as
/// missing.
#[tokio::test]
async fn private_resource_is_hidden_or_challenged_by_version() {
    let world = World::new().await;
    for path in ["/box/b", "/missing/b", "/box?restype=container&comp=list"] {
        let bare = world.send("http", "GET", path, &[], "").await;
        assert_eq!(bare.status, 404);
        assert!(bare.body.contains("<Code>ResourceNotFound</Code>"));
        let old = world.under(ApiVersion::V2019_07_07);
        let hidden = old.get(By::Nobody, path).await;
        assert_eq!(hidden.outcome(), (404, "ResourceNotFound"), "{path}");
        let challenged = world.get(By::Nobody, path).await;
        assert_eq!(challenged.outcome(), (401, NONE), "{path}");
        assert!(challenged.header("www-authenticate").starts_with("Bearer "));
    }
}

/// An account that forbids public access overrides its containers' settings.
#[tokio::test]
async fn account_can_forbid_public_access() {
    let mut config: Config = config();
    for account in config.accounts.values_mut() {
        account.settings = Arc::new(AccountSettings {
            public_access: false,
            ..AccountSettings::default()
        });
    }
    let world = World::with(config).await;
    let read = world.get(By::Nobody, "/box/b").await;
    assert_eq!(read.outcome(), (409, "PublicAccessNotPermitted"));
    let written = world.ask(By::Nobody, "DELETE", "/box/b", &[], "").await;
    assert_eq!(written.outcome(), (401, NONE));
}
