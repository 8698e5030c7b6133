//! The account, and the properties and statistics of its Blob service.

use smalt_protocol::ApiVersion;

use crate::client::{Client, START};

#[tokio::test]
async fn the_account_is_told_of_any_resource() {
    let mut client = Client::new();
    let question = "restype=account&comp=properties";
    for target in ["", "missing", "missing/missing"] {
        let found = client
            .ask("GET", &format!("{target}?{question}"), &[], "")
            .await;
        assert_eq!(found.outcome(), "200", "{target}");
        assert_eq!(found.header("x-ms-account-kind"), "StorageV2");
        assert_eq!(found.header("x-ms-is-hns-enabled"), "false");
    }
    client.version = ApiVersion::V2018_11_09;
    let found = client.ask("HEAD", &format!("?{question}"), &[], "").await;
    assert_eq!(
        (
            found.outcome().as_str(),
            found.header("x-ms-is-hns-enabled")
        ),
        ("200", "")
    );
}

#[tokio::test]
async fn properties_change_by_sections() {
    let client = Client::new();
    let target = "?restype=service&comp=properties";
    let retention = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
                     <Days>5</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    assert_eq!(
        client.ask("PUT", target, &[], retention).await.outcome(),
        "202"
    );
    let site = "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled></StaticWebsite>\
                </StorageServiceProperties>";
    assert_eq!(client.ask("PUT", target, &[], site).await.outcome(), "202");
    let found = client.ask("GET", target, &[], "").await;
    assert_eq!(found.elements("Days"), ["7", "5"]);
    assert!(
        found
            .text
            .contains("<StaticWebsite><Enabled>true</Enabled></StaticWebsite>")
    );
    let bad = client.ask(
        "PUT",
        target,
        &[],
        "<StorageServiceProperties><X /></StorageServiceProperties>",
    );
    assert_eq!(bad.await.outcome(), "400 InvalidXmlDocument");
}

#[tokio::test]
async fn statistics_are_the_secondary_s() {
    let client = Client::new();
    let stats = "?restype=service&comp=stats";
    assert_eq!(
        client.try_("GET", stats, &[]).await,
        "400 InvalidQueryParameterValue"
    );
    let secondary = format!("/devstoreaccount1-secondary/{stats}");
    let found = client.ask_at("GET", &secondary, &[], "").await;
    assert_eq!(found.outcome(), "200");
    assert_eq!(found.elements("Status"), ["live"]);
    assert_eq!(found.elements("LastSyncTime"), [START.rfc1123()]);
}

/// "Common REST API error codes": the secondary is read, and not written to.
#[tokio::test]
async fn the_secondary_is_only_read() {
    let client = Client::new();
    let block = [("x-ms-blob-type", "BlockBlob")];
    for (method, path, headers, expected) in [
        (
            "PUT",
            "/box?restype=container",
            &[][..],
            "403 InsufficientAccountPermissions",
        ),
        (
            "PUT",
            "/box/b",
            &block,
            "403 InsufficientAccountPermissions",
        ),
        (
            "DELETE",
            "/box/b",
            &[],
            "403 InsufficientAccountPermissions",
        ),
        (
            "POST",
            "/?comp=batch",
            &[],
            "403 InsufficientAccountPermissions",
        ),
        ("GET", "/box/b", &[], "404 ContainerNotFound"),
        ("GET", "/?comp=list", &[], "200"),
    ] {
        let target = format!("/devstoreaccount1-secondary{path}");
        let answer = client.ask_at(method, &target, headers, "").await;
        assert_eq!(answer.outcome(), expected, "{method} {path}");
        if expected.starts_with("403") {
            assert_eq!(answer.elements("Message").len(), 1);
            assert!(answer.text.contains("Write operations are not allowed."));
        }
    }
}
