//! Copy sources within the emulator: old forms, customer-provided keys, snapshots.

use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

const PUT: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// Creates two containers, and a blob in one of them.
async fn with_source() -> Client {
    let client = Client::new();
    for container in ["box", "shelf"] {
        let path = format!("/{container}?restype=container");
        assert_eq!(client.send("PUT", &path, &[], "").await.status, 201);
    }
    let put = client.send("PUT", "/box/b", &[PUT], "hello world").await;
    assert_eq!(put.status, 201);
    client
}

/// Copies to `/shelf/c`.
async fn copy(client: &Client, source: &str, more: &[(&str, &str)]) -> Answer {
    let headers = [&[("x-ms-copy-source", source)], more].concat();
    client.send("PUT", "/shelf/c", &headers, "").await
}

async fn bytes(client: &Client) -> String {
    let got = client.send("GET", "/shelf/c", &[], "").await;
    String::from_utf8_lossy(&got.body).into_owned()
}

#[tokio::test]
async fn copies_before_2012_stay_in_their_account_and_name_no_host() {
    let client = with_source().await.under(ApiVersion::V2011_08_18);
    let copied = copy(&client, "/devstoreaccount1/box/b", &[]).await;
    assert_eq!(copied.status, 201);
    assert!(!copied.has("x-ms-copy-id"));
    let other = client.of_other_account().url("/box/b");
    let refused = copy(&client, &other, &[]).await;
    assert_eq!(refused.status, 400);
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(said.contains("CopyAcrossAccountsNotSupported"), "{said}");
    let newer = client.under(ApiVersion::V2012_02_12);
    let refused = copy(&newer, "/devstoreaccount1/box/b", &[]).await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn source_with_a_customer_key_needs_the_key() {
    let client = with_source().await;
    const KEY: &str = "MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=";
    const HASH: &str = "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=";
    let put = [
        PUT,
        ("x-ms-encryption-key", KEY),
        ("x-ms-encryption-key-sha256", HASH),
        ("x-ms-encryption-algorithm", "AES256"),
    ];
    let made = client.send("PUT", "/box/locked", &put, "secret").await;
    assert_eq!(made.status, 201);
    let signed = client.signed_url("box", "locked", "r");
    let refused = copy(&client, &signed, &[PUT]).await;
    assert_eq!(refused.outcome(), (409, "CannotVerifyCopySource"));
    let key = [
        PUT,
        ("x-ms-source-encryption-key", KEY),
        ("x-ms-source-encryption-key-sha256", HASH),
        ("x-ms-source-encryption-algorithm", "AES256"),
    ];
    assert_eq!(copy(&client, &signed, &key).await.status, 201);
    assert_eq!(bytes(&client).await, "secret");
    let head = client.send("HEAD", "/shelf/c", &[], "").await;
    assert!(!head.has("x-ms-encryption-key-sha256"));
}

#[tokio::test]
async fn snapshot_is_copied_by_its_url() {
    let client = with_source().await;
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    client.send("PUT", "/box/b", &[PUT], "new").await;
    let signed = client.signed_url("box", "b", "r");
    for (source, expected) in [
        (signed.clone(), "new"),
        (
            format!("{signed}&snapshot={}", taken.header("x-ms-snapshot")),
            "hello world",
        ),
    ] {
        assert_eq!(copy(&client, &source, &[PUT]).await.status, 201);
        assert_eq!(bytes(&client).await, expected);
    }
}
