//! Requests of the Data Lake interface to an account with a flat namespace.

use smalt::AccountSettings;

use super::client::Client;

const REFUSED: &str = "400 HierarchicalNamespaceNotEnabled";

/// Method, target, headers.
type Shape = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Some shapes of requests of the interface, with a header that they need.
const REQUESTS: &[Shape] = &[
    ("GET", "?resource=account", &[]),
    ("PUT", "lake?resource=filesystem", &[]),
    ("GET", "lake?resource=filesystem&recursive=true", &[]),
    ("PUT", "lake/dir?resource=directory", &[]),
    ("PATCH", "lake/file?action=append&position=0", &[]),
    ("HEAD", "lake/?action=getAccessControl&upn=false", &[]),
    (
        "POST",
        "lake/file",
        &[
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", "-1"),
        ],
    ),
    ("DELETE", "lake/file?recursive=true", &[]),
];

/// Creates the container of these tests, with one blob.
async fn flat() -> Client {
    let client = Client::new();
    client.create("lake").await;
    client.put("lake/file").await;
    client
}

/// Returns the names of all blobs.
async fn blobs(client: &Client) -> Vec<String> {
    let target = "lake?restype=container&comp=list";
    let listed = client.ask("GET", target, &[], "").await;
    listed
        .elements("Name")
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// A host name distinguishes the interfaces, whatever the request's shape.
#[tokio::test]
async fn data_lake_host_serves_all_its_requests() {
    let client = flat().await;
    for (method, target) in [
        ("GET", "/lake/file"),
        ("HEAD", "/lake/file"),
        ("DELETE", "/lake/file"),
        ("HEAD", "/lake/?action=getAccessControl"),
        ("PUT", "/lake?resource=filesystem"),
    ] {
        let host = "devstoreaccount1.dfs.localhost:10000";
        let found = client.ask_host(host, method, target).await;
        assert_eq!(found.outcome(), REFUSED, "{method} {target}");
        let host = "devstoreaccount1.blob.localhost:10000";
        let found = client.ask_host(host, method, target).await;
        assert_ne!(found.outcome(), REFUSED, "{method} {target}");
    }
    assert_eq!(blobs(&client).await, ["file"; 0]);
}

/// An account that becomes hierarchical keeps the containers that it has as they are.
#[tokio::test]
async fn older_container_stays_flat() {
    let client = flat().await;
    become_hierarchical(&client);
    for (method, target, headers) in REQUESTS {
        let expected = match *target {
            "?resource=account" => "200",
            "lake?resource=filesystem" if *method == "PUT" => "409 FilesystemAlreadyExists",
            _ => REFUSED,
        };
        let found = client.try_(method, target, headers).await;
        assert_eq!(found, expected, "{method} {target}");
    }
    assert_eq!(blobs(&client).await, ["file"]);
    client.put("lake/a/b").await;
    assert_eq!(blobs(&client).await, ["a/b", "file"]);
    let found = client.ask("HEAD", "lake/a/b", &[], "").await;
    assert_eq!(found.outcome(), "200");
    for name in ["x-ms-resource-type", "x-ms-owner", "x-ms-permissions"] {
        assert_eq!(found.header(name), "", "{name}");
    }
}

fn become_hierarchical(client: &Client) {
    let hierarchical = AccountSettings {
        hierarchical_namespace: true,
        ..AccountSettings::default()
    };
    let changed = client
        .emulator
        .change_settings("devstoreaccount1", hierarchical);
    assert!(changed);
}

/// A port of its own serves the interface alone, whatever the request's shape.
#[tokio::test]
async fn data_lake_port_serves_the_interface_alone() {
    let client = Client::new();
    become_hierarchical(&client);
    client.create("lake").await;
    let meta = [
        ("x-ms-meta-team", "billing"),
        ("x-ms-blob-type", "BlockBlob"),
    ];
    let put = client.ask("PUT", "lake/a/file", &meta, "hello").await;
    assert_eq!(put.outcome(), "201");
    let ask = |method, target| client.ask_host("127.0.0.1:10004", method, target);
    let read = ask("GET", "/devstoreaccount1/lake/a/file").await;
    assert_eq!(
        (read.outcome().as_str(), read.text.as_str()),
        ("200", "hello")
    );
    assert_eq!(read.header("x-ms-properties"), "team=YmlsbGluZw==");
    assert_eq!(read.header("x-ms-resource-type"), "file");
    assert_eq!(read.header("x-ms-meta-team"), "");
    let list = ask("GET", "/devstoreaccount1/lake?restype=container&comp=list").await;
    assert_eq!(list.outcome(), "400 InvalidQueryParameterValue");
    let deleted = ask("DELETE", "/devstoreaccount1/lake/a").await;
    assert_eq!(deleted.outcome(), "409 DirectoryNotEmpty");
    let deleted = ask("DELETE", "/devstoreaccount1/lake/a/file").await;
    assert_eq!(deleted.outcome(), "200");
}
