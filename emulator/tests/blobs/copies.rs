//! Copies of blobs from one account to another.

use bytes::Bytes;
use smalt_protocol::ApiVersion;

use crate::support::{Answer, BLOCK, Client};

/// Creates a container with a blob of two blocks that has properties, metadata and tags.
async fn with_source() -> Client {
    let client = Client::new();
    for container in ["box", "shelf"] {
        client.create(container).await;
    }
    for (id, body) in [("YQ%3D%3D", "hello "), ("Yg%3D%3D", "world")] {
        let path = format!("/box/b?comp=block&blockid={id}");
        assert_eq!(client.send("PUT", &path, &[], body).await.status, 201);
    }
    let list = "<BlockList><Latest>YQ==</Latest><Latest>Yg==</Latest></BlockList>";
    let headers = [
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-language", "en"),
        ("x-ms-meta-team", "billing"),
        ("x-ms-tags", "a=1"),
        ("x-ms-access-tier", "Cool"),
    ];
    let path = "/box/b?comp=blocklist";
    assert_eq!(client.send("PUT", path, &headers, list).await.status, 201);
    client
}

/// Copies to `/shelf/c`.
async fn copy(client: &Client, source: &str, more: &[(&str, &str)]) -> Answer {
    let headers = [&[("x-ms-copy-source", source)], more].concat();
    client.send("PUT", "/shelf/c", &headers, "").await
}

async fn head(client: &Client) -> Answer {
    client.head("/shelf/c").await
}

async fn bytes(client: &Client) -> Bytes {
    let got = client.get("/shelf/c").await;
    assert_eq!(got.status, 200);
    got.body
}

/// Another account's blob is readable if it is public, or with a signature.
#[tokio::test]
async fn copies_cross_accounts() {
    let client = with_source().await;
    let other = client.of_other_account();
    other.create("shelf").await;
    let private = copy(&other, &client.url("/box/b"), &[]).await;
    assert_eq!(private.outcome(), "401 CannotVerifyCopySource");
    let signed = client.signed_url("box", "b", "r");
    let copied = copy(&other, &signed, &[]).await;
    assert_eq!(copied.status, 202);
    let shown = head(&other).await;
    let (unsigned, _) = signed.split_once("&sig=").unwrap();
    assert_eq!(shown.header("x-ms-copy-source"), unsigned);
    for (source, expected) in [
        (
            client.signed_url("box", "b", "w"),
            "403 CannotVerifyCopySource",
        ),
        (
            client.signed_url("box", "none", "r"),
            "404 CannotVerifyCopySource",
        ),
        (
            signed.replace("/box/b", "/box/c"),
            "403 CannotVerifyCopySource",
        ),
    ] {
        let answer = copy(&other, &source, &[]).await;
        assert_eq!(answer.outcome(), expected, "{source}");
    }
    // Tags need their own permission.
    let tags = [("x-ms-copy-source-tag-option", "COPY")];
    let refused = copy(&other, &signed, &tags).await;
    assert_eq!(refused.outcome(), "403 CannotVerifyCopySource");
    let signed = client.signed_url("box", "b", "rt");
    assert_eq!(copy(&other, &signed, &tags).await.status, 202);
    assert_eq!(head(&other).await.header("x-ms-tag-count"), "1");
    let both = [tags[0], ("x-ms-tags", "b=2")];
    let both = copy(&other, &signed, &both).await;
    assert_eq!(
        both.outcome(),
        "400 BothUserTagsAndSourceTagsCopyPresentException"
    );
    client.send("DELETE", "/box/b", &[], "").await;
    assert_eq!(bytes(&other).await, "hello world");
}

const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");

#[tokio::test]
async fn public_blobs_are_copied_without_a_signature() {
    let client = with_source().await;
    let public = [("x-ms-blob-public-access", "blob")];
    let path = "/open?restype=container";
    assert_eq!(client.send("PUT", path, &public, "").await.status, 201);
    client.put("/open/b", "for all").await;
    let other = client.of_other_account();
    other.create("shelf").await;
    for more in [&[][..], &[SYNC], &[BLOCK]] {
        let copied = copy(&other, &client.url("/open/b"), more).await;
        assert!(copied.status < 300, "{more:?}");
        assert_eq!(bytes(&other).await, "for all");
        assert_eq!(other.send("DELETE", "/shelf/c", &[], "").await.status, 202);
    }
}

/// Recorded: a private source in another account.
#[tokio::test]
async fn private_source_is_missing_or_refused_by_version() {
    let client = Client::new();
    client.create("box").await;
    client.put("/box/b", "text").await;
    let other = client.of_other_account();
    other.create("box").await;
    let source = client.url("/box/b");
    for (version, status) in [
        (ApiVersion::V2018_11_09, 404),
        (ApiVersion::V2019_12_12, 404),
        (ApiVersion::V2020_10_02, 401),
    ] {
        let copy = [("x-ms-copy-source", source.as_str())];
        let answer = other.under(version).send("PUT", "/box/b", &copy, "").await;
        assert_eq!(answer.outcome(), format!("{status} CannotVerifyCopySource"));
    }
}

#[tokio::test]
async fn copies_before_2012_stay_in_their_account() {
    let client = with_source().await.under(ApiVersion::V2011_08_18);
    let other = client.of_other_account().url("/box/b");
    let refused = copy(&client, &other, &[]).await;
    assert_eq!(refused.status, 400);
    let text = refused.text();
    assert!(text.contains("CopyAcrossAccountsNotSupported"), "{text}");
}
