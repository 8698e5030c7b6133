//! Tags of blobs as a client sees them: found by them, and conditions on them.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use smalt::{AccountSettings, Config};
use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

async fn with_blobs(blobs: &[(&str, &str)]) -> Client {
    let client = Client::new();
    for container in ["/box", "/other"] {
        let path = format!("{container}?restype=container");
        assert_eq!(client.send("PUT", &path, &[], "").await.status, 201);
    }
    for (path, tags) in blobs {
        let headers = [BLOCK, ("x-ms-tags", *tags)];
        let put = client.send("PUT", path, &headers, "x").await;
        assert_eq!(put.status, 201);
    }
    client
}

async fn find(client: &Client, query: &str) -> Answer {
    client
        .send("GET", &format!("/?comp=blobs&where={query}"), &[], "")
        .await
}

/// `box/a box/b`.
fn names(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let element = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>")).unwrap();
        rest.split('<').next().unwrap().to_owned()
    };
    let blobs = text.split("<Blob>").skip(1);
    let paths = blobs.map(|b| format!("{}/{}", element(b, "ContainerName"), element(b, "Name")));
    paths.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn blobs_are_found_by_the_tags_that_they_have_now() {
    let client = with_blobs(&[
        ("/box/a", "team=red&age=032"),
        ("/box/b", "team=blue&age=100"),
        ("/other/a", "team=red"),
    ])
    .await;
    for (query, expected) in [
        ("team%3D'red'", "box/a other/a"),
        (
            "%22team%22%20=%20'red'%20AND%20@container%20=%20'other'",
            "other/a",
        ),
        ("age%3E'032'%20and%20age%3C='100'", "box/b"),
        ("team='green'", ""),
        ("@container='none'%20AND%20team='red'", ""),
    ] {
        assert_eq!(names(&find(&client, query).await), expected, "{query}");
    }
    let tags = "<Tags><TagSet><Tag><Key>team</Key><Value>red</Value></Tag></TagSet></Tags>";
    assert_eq!(
        client
            .send("PUT", "/box/b?comp=tags", &[], tags)
            .await
            .status,
        204
    );
    assert_eq!(
        client.send("PUT", "/box/a", &[BLOCK], "x").await.status,
        201
    );
    assert_eq!(client.send("DELETE", "/other/a", &[], "").await.status, 202);
    assert_eq!(names(&find(&client, "team='red'").await), "box/b");
    let source = client.url("/box/b");
    let headers = [("x-ms-copy-source", &*source), ("x-ms-tags", "team=red")];
    let copied = client.send("PUT", "/other/c", &headers, "");
    assert_eq!(copied.await.status, 202);
    assert_eq!(names(&find(&client, "team='red'").await), "box/b other/c");
    let gone = client
        .send("DELETE", "/box?restype=container", &[], "")
        .await;
    assert_eq!(gone.status, 202);
    assert_eq!(names(&find(&client, "team='red'").await), "other/c");
}

#[tokio::test]
async fn a_page_shows_the_tags_of_the_query_and_where_the_next_one_starts() {
    let client = with_blobs(&[("/box/a", "t=1&u=2"), ("/box/b", "t=1")]).await;
    let first = find(&client, "t='1'&maxresults=1").await;
    let text = String::from_utf8(first.body.to_vec()).unwrap();
    let blob = "<Where>t='1'</Where><MaxResults>1</MaxResults><Blobs><Blob><Name>a</Name>\
                <ContainerName>box</ContainerName><Tags><TagSet><Tag><Key>t</Key><Value>1</Value>\
                </Tag></TagSet></Tags></Blob></Blobs><NextMarker>";
    let (_, rest) = text.split_once(blob).expect(&text);
    let marker = rest.split('<').next().unwrap();
    let second = find(&client, &format!("t='1'&maxresults=1&marker={marker}")).await;
    assert_eq!(names(&second), "box/b");
    let text = String::from_utf8(second.body.to_vec()).unwrap();
    assert!(
        text.contains(&format!("<Marker>{marker}</Marker>")),
        "{text}"
    );
    assert!(text.contains("<NextMarker />"), "{text}");
    let older = find(&client.under(ApiVersion::V2019_12_12), "t='1'").await;
    let text = String::from_utf8(older.body.to_vec()).unwrap();
    assert!(
        text.contains("</ContainerName><TagValue>1</TagValue></Blob>"),
        "{text}"
    );
}

#[tokio::test]
async fn a_container_is_searched_alone_and_must_be_there() {
    let client = with_blobs(&[("/box/a", "t=1"), ("/other/a", "t=1")]).await;
    let path = |container: &str, query: &str| {
        format!("/{container}?restype=container&comp=blobs&where={query}")
    };
    let found = client.send("GET", &path("box", "t='1'"), &[], "").await;
    assert_eq!(names(&found), "box/a");
    let none = client.send("GET", &path("none", "t='1'"), &[], "").await;
    assert_eq!(none.outcome(), (404, "ContainerNotFound"));
    let twice = path("box", "t='1'%20AND%20@container='box'");
    let twice = client.send("GET", &twice, &[], "").await;
    assert_eq!(twice.outcome(), (400, "InvalidQueryParameterValue"));
}

#[tokio::test]
async fn a_condition_on_tags_needs_the_right_to_tags() {
    let client = with_blobs(&[("/box/a", "t=1")]).await;
    for (permissions, condition, expected) in [
        ("rt", "t = '1'", (200, "")),
        ("rt", "t <> '1'", (412, "ConditionNotMet")),
        ("rt", "t = '2' OR (t > '0' AND t < '2')", (200, "")),
        ("rt", "t ~ '1'", (400, "InvalidHeaderValue")),
        ("r", "t = '1'", (403, "AuthorizationPermissionMismatch")),
    ] {
        let url = client.signed_url("box", "a", permissions);
        let target = url.strip_prefix("http://127.0.0.1:10000").unwrap();
        let headers = [("x-ms-version", "2021-12-02"), ("x-ms-if-tags", condition)];
        let got = client.send_as_is("GET", target, &headers, "".into()).await;
        assert_eq!(got.outcome(), expected, "{permissions} {condition}");
    }
}

#[tokio::test]
async fn a_condition_on_the_tags_of_a_source_needs_the_right_to_them() {
    let client = with_blobs(&[("/box/a", "t=1")]).await;
    for (permissions, condition, expected) in [
        ("rt", "t = '1'", 201),
        ("rt", "t = '2'", 412),
        ("r", "t = '1'", 403),
    ] {
        let source = client.signed_url("box", "a", permissions);
        let headers = [
            BLOCK,
            ("x-ms-copy-source", &*source),
            ("x-ms-source-if-tags", condition),
        ];
        let put = client.send("PUT", "/other/b", &headers, "").await;
        assert_eq!(put.status, expected, "{permissions} {condition}");
    }
}

#[tokio::test]
async fn previous_versions_are_found_where_they_are_asked_for() {
    let client = Client::of(|builder| {
        let mut config = Config {
            strict_skew: true,
            ..Config::default()
        };
        for account in config.accounts.values_mut() {
            let settings = AccountSettings::clone(&account.settings);
            account.settings = Arc::new(AccountSettings {
                versioning: true,
                ..settings
            });
        }
        builder.config(config)
    });
    let box_ = "/box?restype=container";
    assert_eq!(client.send("PUT", box_, &[], "").await.status, 201);
    let mut versions = Vec::new();
    for tags in ["t=1", "t=1&u=2", ""] {
        let headers = [BLOCK, ("x-ms-tags", tags)];
        let put = client.send("PUT", "/box/a", &headers, "x").await;
        assert_eq!(put.status, 201);
        versions.push(put.header("x-ms-version-id").to_owned());
    }
    assert_eq!(names(&find(&client, "t='1'").await), "");
    let with_versions = "t='1'&include=versions";
    let found = find(&client, with_versions).await;
    assert_eq!(names(&found), "box/a box/a");
    let text = String::from_utf8(found.body.to_vec()).unwrap();
    for version in &versions[..2] {
        assert!(
            text.contains(&format!("<VersionId>{version}</VersionId>")),
            "{text}"
        );
    }
    assert!(!text.contains("IsCurrentVersion"), "{text}");
    let path = format!("/box/a?versionid={}", versions[0]);
    assert_eq!(client.send("DELETE", &path, &[], "").await.status, 202);
    assert_eq!(names(&find(&client, with_versions).await), "box/a");
    let tags = "<Tags><TagSet /></Tags>";
    let path = format!("/box/a?comp=tags&versionid={}", versions[1]);
    assert_eq!(client.send("PUT", &path, &[], tags).await.status, 204);
    assert_eq!(names(&find(&client, with_versions).await), "");
}

/// A hash that the document of tags does not have is refused, and changes nothing.
#[tokio::test]
async fn the_document_is_compared_with_its_hashes() {
    let client = with_blobs(&[("/box/a", "team=red")]).await;
    let tags = "<Tags><TagSet><Tag><Key>team</Key><Value>blue</Value></Tag></TagSet></Tags>";
    for (header, code) in [
        (("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="), "Md5Mismatch"),
        (("x-ms-content-crc64", "AAAAAAAAAAA="), "Crc64Mismatch"),
    ] {
        let path = "/box/a?comp=tags";
        let set = client.send("PUT", path, &[header], tags).await;
        assert_eq!(set.outcome(), (400, code));
    }
    assert_eq!(names(&find(&client, "team='red'").await), "box/a");
}
