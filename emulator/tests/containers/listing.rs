//! The documents of the listings; what they list is proved beside the operation.

use smalt_protocol::ApiVersion;

use crate::client::{Client, START};

const LIST: &str = "events?restype=container&comp=list";

#[tokio::test]
async fn containers_come_in_pages_by_name() {
    let client = Client::new();
    for name in ["events-b", "other", "events-a", "$logs", "events-c"] {
        client.create(name).await;
    }
    let first = client
        .ask("GET", "?comp=list&prefix=events&maxresults=2", &[], "")
        .await;
    assert_eq!(first.elements("Name"), ["events-a", "events-b"]);
    assert_eq!(first.elements("NextMarker"), ["/devstoreaccount1/events-c"]);
    assert_eq!(
        (first.elements("Prefix"), first.elements("MaxResults")),
        (vec!["events"], vec!["2"])
    );
    let target = "?comp=list&prefix=events&marker=/devstoreaccount1/events-c";
    let last = client.ask("GET", target, &[], "").await;
    assert_eq!(last.elements("Name"), ["events-c"]);
    assert!(last.text.contains("<NextMarker />"));
    assert!(
        last.text
            .contains("ServiceEndpoint=\"http://127.0.0.1:10000/devstoreaccount1/\"")
    );
    let all = client.ask("GET", "?comp=list", &[], "").await;
    assert_eq!(
        all.elements("Name"),
        ["events-a", "events-b", "events-c", "other"]
    );
    let all = client
        .ask("GET", "?comp=list&include=system,metadata", &[], "")
        .await;
    assert_eq!(all.elements("Name").first(), Some(&"$logs"));
    assert!(all.text.contains("<Metadata />"));
}

#[tokio::test]
async fn bad_parameters_are_refused() {
    let client = Client::new();
    client.create("events").await;
    for (query, outcome) in [
        ("&maxresults=0", "400 OutOfRangeQueryParameterValue"),
        ("&maxresults=-1", "400 OutOfRangeQueryParameterValue"),
        ("&maxresults=many", "400 InvalidQueryParameterValue"),
        ("&include=everything", "400 InvalidQueryParameterValue"),
        ("&marker=garbage", "400 OutOfRangeInput"),
        ("&maxresults=6000", "200"),
        ("&include=deleted", "200"),
    ] {
        for list in ["?comp=list", LIST] {
            let target = format!("{list}{query}");
            assert_eq!(client.try_("GET", &target, &[]).await, outcome, "{target}");
        }
    }
    for (query, outcome) in [
        (
            "&delimiter=/&include=snapshots",
            "400 InvalidQueryParameterValue",
        ),
        (
            "&delimiter=/&include=versions,deleted,immutabilitypolicy,legalhold",
            "200",
        ),
        ("&include=tags&include=uncommittedblobs", "200"),
    ] {
        assert_eq!(
            client.try_("GET", &format!("{LIST}{query}"), &[]).await,
            outcome
        );
    }
    let missing = "none?restype=container&comp=list";
    assert_eq!(
        client.try_("GET", missing, &[]).await,
        "404 ContainerNotFound"
    );
}

#[tokio::test]
async fn blobs_and_prefixes_stand_in_the_order_of_names() {
    let mut client = Client::new();
    client.create("events").await;
    for blob in ["b", "a/1", "a/2", "c/1", "Z", "a%26%3C"] {
        client.put(&format!("events/{blob}")).await;
    }
    let first = client
        .ask("GET", &format!("{LIST}&delimiter=/&maxresults=3"), &[], "")
        .await;
    assert_eq!(first.elements("Name"), ["Z", "a&amp;&lt;", "a/"]);
    assert!(
        first
            .text
            .contains("<BlobPrefix><Name>a/</Name></BlobPrefix>")
    );
    let marker = first.elements("NextMarker")[0].to_owned();
    let target = format!("{LIST}&delimiter=/&marker={marker}");
    let rest = client.ask("GET", &target, &[], "").await;
    assert_eq!(rest.elements("Name"), ["b", "c/"]);
    assert_eq!(rest.elements("Marker"), [marker.as_str()]);
    let target = format!("{LIST}&prefix=a/&startFrom=a/2");
    let unknown = client.ask("GET", &target, &[], "").await;
    assert_eq!(unknown.elements("Name"), ["a/1", "a/2"]);
    client.version = ApiVersion::V2026_02_06;
    let within = client.ask("GET", &target, &[], "").await;
    assert_eq!(within.elements("Name"), ["a/2"]);
}

#[tokio::test]
async fn each_version_shows_its_own_elements() {
    let mut client = Client::new();
    client.create("events").await;
    let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-k", "v")];
    assert_eq!(client.try_("PUT", "events/blob", &headers).await, "201");
    for (version, shown, hidden) in [
        (
            ApiVersion::V2014_02_14,
            "<LeaseState>",
            "<Creation-Time>|<AccessTier>|<ServerEncrypted>",
        ),
        (
            ApiVersion::V2018_03_28,
            "<Creation-Time>|<AccessTier>",
            "<Content-CRC64|<OrMetadata|TagCount",
        ),
        (ApiVersion::V2019_02_02, "<Content-CRC64 />", "<OrMetadata"),
        (
            ApiVersion::V2019_12_12,
            "<Content-CRC64 />|<OrMetadata />",
            "<TagCount>|<Metadata>",
        ),
    ] {
        client.version = version;
        let list = client.ask("GET", LIST, &[], "").await;
        assert!(
            shown.split('|').all(|part| list.text.contains(part)),
            "{version}"
        );
        assert!(
            !hidden.split('|').any(|part| list.text.contains(part)),
            "{version}"
        );
    }
    let list = client
        .ask("GET", &format!("{LIST}&include=metadata"), &[], "")
        .await;
    assert!(list.text.contains("<Metadata><k>v</k></Metadata>"));
    assert_eq!(list.elements("Last-Modified"), [START.rfc1123()]);
    assert!(!list.elements("Etag")[0].contains('"'));
}

#[tokio::test]
async fn an_old_version_is_given_addresses() {
    let mut client = Client::new();
    client.create("events").await;
    client.put("events/a%20b").await;
    client.version = ApiVersion::V2012_02_12;
    let account = "http://127.0.0.1:10000/devstoreaccount1";
    let containers = client.ask("GET", "?comp=list", &[], "").await;
    let head = format!("<EnumerationResults AccountName=\"{account}/\">");
    assert!(containers.text.contains(&head), "{}", containers.text);
    assert_eq!(containers.elements("Url"), [format!("{account}/events")]);
    let blobs = client
        .ask("GET", "events?restype=container&comp=list", &[], "")
        .await;
    let head = format!("<EnumerationResults ContainerName=\"{account}/events\">");
    assert!(blobs.text.contains(&head), "{}", blobs.text);
    assert_eq!(blobs.elements("Url"), [format!("{account}/events/a%20b")]);
}
