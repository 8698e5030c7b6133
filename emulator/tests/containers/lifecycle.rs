//! Create, describe, change, guard, delete.

use smalt::Config;
use smalt_protocol::ApiVersion;

use crate::client::{Client, START};

const C: &str = "events?restype=container";

#[tokio::test]
async fn a_container_is_created_once_and_gone_after_its_deletion() {
    let client = Client::new();
    let created = client
        .ask("PUT", C, &[("x-ms-meta-Team", "billing")], "")
        .await;
    assert_eq!(created.outcome(), "201");
    assert_eq!(created.header("last-modified"), START.rfc1123());
    assert_eq!(
        client.try_("PUT", C, &[]).await,
        "409 ContainerAlreadyExists"
    );
    client.put("events/blob").await;
    let found = client.ask("HEAD", C, &[], "").await;
    assert_eq!(found.outcome(), "200");
    assert_eq!(found.header("etag"), created.header("etag"));
    assert_eq!(found.header("x-ms-meta-team"), "billing");
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    assert_eq!(client.try_("DELETE", C, &[]).await, "404 ContainerNotFound");
    assert_eq!(client.try_("GET", C, &[]).await, "404 ContainerNotFound");
    assert_eq!(client.try_("PUT", C, &[]).await, "201");
    assert_eq!(
        client.try_("HEAD", "events/blob", &[]).await,
        "404 BlobNotFound"
    );
    // The blob of the first life is what is left to remove, and the marker.
    assert_eq!(client.emulator.maintain(100).unwrap().records_reaped, 2);
    assert_eq!(client.emulator.maintain(100).unwrap().records_reaped, 0);
}

#[tokio::test]
async fn a_name_that_is_being_deleted_is_taken_for_creation_only() {
    let client = Client::with(Config {
        being_deleted_s: 30,
        ..Config::default()
    });
    client.create("events").await;
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    let refused = client.ask("PUT", C, &[], "").await;
    assert_eq!(refused.outcome(), "409 ContainerBeingDeleted");
    assert!(
        refused
            .text
            .contains("is being deleted. Try operation later.")
    );
    assert_eq!(client.try_("GET", C, &[]).await, "404 ContainerNotFound");
    let listed = client.ask("GET", "?comp=list", &[], "").await;
    assert!(listed.elements("Name").is_empty());
    client.advance(29);
    assert_eq!(client.emulator.maintain(100).unwrap().records_reaped, 0);
    assert_eq!(
        client.try_("PUT", C, &[]).await,
        "409 ContainerBeingDeleted"
    );
    client.advance(1);
    assert_eq!(client.try_("PUT", C, &[]).await, "201");
    // What keeps the name is the new container, which maintenance leaves alone.
    assert_eq!(client.emulator.maintain(100).unwrap().records_reaped, 1);
    assert_eq!(client.try_("GET", C, &[]).await, "200");
}

#[tokio::test]
async fn metadata_is_replaced_whole_under_conditions_on_dates() {
    let client = Client::new();
    client.create("events").await;
    let metadata = "events?restype=container&comp=metadata";
    client.advance(60);
    let (since, later) = (START.rfc1123(), START.plus_s(61).rfc1123());
    for (headers, outcome) in [
        (
            [("x-ms-meta-a", "1"), ("if-modified-since", later.as_str())],
            "412 ConditionNotMet",
        ),
        (
            [("x-ms-meta-a", "1"), ("if-unmodified-since", &since)],
            "200",
        ),
        (
            [("x-ms-meta-b", "2"), ("if-unmodified-since", &since)],
            "412 ConditionNotMet",
        ),
        ([("x-ms-meta-b", "2"), ("if-modified-since", &since)], "200"),
    ] {
        assert_eq!(
            client.try_("PUT", metadata, &headers).await,
            outcome,
            "{headers:?}"
        );
    }
    let found = client.ask("GET", metadata, &[], "").await;
    assert_eq!(
        (found.header("x-ms-meta-a"), found.header("x-ms-meta-b")),
        ("", "2")
    );
    assert_eq!(found.header("x-ms-lease-state"), "");
}

#[tokio::test]
async fn policies_and_public_access_come_back_as_set() {
    let client = Client::new();
    client.create("events").await;
    let acl = "events?restype=container&comp=acl";
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
                    <Start>2023-11-14T00:00:00Z</Start><Permission>r</Permission></AccessPolicy>\
                    </SignedIdentifier></SignedIdentifiers>";
    let access = [("x-ms-blob-public-access", "blob")];
    assert_eq!(
        client.ask("PUT", acl, &access, policies).await.outcome(),
        "200"
    );
    let found = client.ask("GET", acl, &[], "").await;
    assert_eq!(found.header("x-ms-blob-public-access"), "blob");
    assert_eq!(found.elements("Start"), ["2023-11-14T00:00:00.0000000Z"]);
    let shown = client.ask("GET", C, &[], "").await;
    assert_eq!(shown.header("x-ms-blob-public-access"), "blob");
    let bad = client.ask("PUT", acl, &[], "<SignedIdentifiers>").await;
    assert_eq!(bad.outcome(), "400 InvalidXmlDocument");
    let wrong = [("x-ms-blob-public-access", "everyone")];
    assert_eq!(
        client.try_("PUT", acl, &wrong).await,
        "400 InvalidHeaderValue"
    );
    assert_eq!(client.try_("PUT", acl, &[]).await, "200");
    let cleared = client.ask("GET", acl, &[], "").await;
    assert!(cleared.text.ends_with("<SignedIdentifiers />"));
    assert_eq!(cleared.header("x-ms-blob-public-access"), "");
}

#[tokio::test]
async fn later_versions_show_more() {
    let mut client = Client::new();
    let scope = [
        ("x-ms-default-encryption-scope", "scope1"),
        ("x-ms-deny-encryption-scope-override", "true"),
    ];
    assert_eq!(client.try_("PUT", C, &scope).await, "201");
    let names = [
        "x-ms-has-legal-hold",
        "x-ms-default-encryption-scope",
        "x-ms-deny-encryption-scope-override",
        "x-ms-immutable-storage-with-versioning-enabled",
    ];
    for (version, expected) in [
        (ApiVersion::V2014_02_14, ["", "", "", ""]),
        (ApiVersion::V2018_03_28, ["false", "", "", ""]),
        (ApiVersion::V2019_02_02, ["false", "scope1", "true", ""]),
        (
            ApiVersion::V2021_12_02,
            ["false", "scope1", "true", "false"],
        ),
    ] {
        client.version = version;
        let found = client.ask("GET", C, &[], "").await;
        assert_eq!(names.map(|name| found.header(name)), expected, "{version}");
    }
    let bad = [("x-ms-deny-encryption-scope-override", "perhaps")];
    assert_eq!(
        client.try_("PUT", "other?restype=container", &bad).await,
        "400 InvalidHeaderValue"
    );
}

/// The lease is proven and left behind; what is in the container stays in it.
#[tokio::test]
async fn a_container_is_renamed_with_everything_in_it() {
    let newer = Client::new();
    let client = Client {
        version: ApiVersion::V2020_06_12,
        ..Client::new()
    };
    let rename = "new?restype=container&comp=rename";
    let source = ("x-ms-source-container-name", "events");
    let none = ("x-ms-source-container-name", "none");
    let id = "1c9d54a6-d687-4797-9ae6-5f47d2006af7";
    let lease = ("x-ms-source-lease-id", id);
    assert_eq!(client.try_("PUT", C, &[("x-ms-meta-a", "1")]).await, "201");
    client.put("events/blob").await;
    let acquire = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", id),
    ];
    let leased = "events?restype=container&comp=lease";
    assert_eq!(client.try_("PUT", leased, &acquire).await, "201");
    let bad_lease = ("x-ms-source-lease-id", "x");
    let bad_name = ("x-ms-source-container-name", "No");
    for (headers, expected) in [
        (&[source][..], "412 LeaseIdMissing"),
        (&[source, bad_lease], "400 InvalidHeaderValue"),
        (&[none], "404 ContainerNotFound"),
        (&[bad_name], "400 InvalidHeaderValue"),
        (&[], "400 MissingRequiredHeader"),
        (&[source, lease], "200"),
        (&[none], "409 ContainerAlreadyExists"),
    ] {
        assert_eq!(client.try_("PUT", rename, headers).await, expected);
    }
    let found = client.ask("HEAD", "new?restype=container", &[], "").await;
    assert_eq!(found.outcome(), "200");
    assert_eq!(found.header("x-ms-lease-state"), "available");
    assert_eq!(found.header("x-ms-meta-a"), "1");
    assert_eq!(client.try_("GET", "new/blob", &[]).await, "200");
    assert_eq!(client.try_("HEAD", C, &[]).await, "404 ContainerNotFound");
    assert_eq!(client.try_("PUT", C, &[]).await, "201");
    let refused = newer.try_("PUT", rename, &[source]).await;
    assert_eq!(refused, "400 InvalidQueryParameterValue");
}
