//! Requests of the Data Lake interface to an account with a flat namespace.

use smalt::AccountSettings;

use crate::support::{BLOCK, Client};

const REFUSED: &str = "400 HierarchicalNamespaceNotEnabled";

/// Method, target, headers.
type Shape = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Some shapes of requests of the interface, with a header that they need.
const REQUESTS: &[Shape] = &[
    ("GET", "/?resource=account", &[]),
    ("PUT", "/lake?resource=filesystem", &[]),
    ("GET", "/lake?resource=filesystem&recursive=true", &[]),
    ("PUT", "/lake/dir?resource=directory", &[]),
    ("PATCH", "/lake/file?action=append&position=0", &[]),
    ("HEAD", "/lake/?action=getAccessControl&upn=false", &[]),
    (
        "POST",
        "/lake/file",
        &[
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", "-1"),
        ],
    ),
    ("DELETE", "/lake/file?recursive=true", &[]),
];

/// Creates the container of these tests, with one blob.
async fn flat() -> Client {
    let client = Client::new();
    client.create("lake").await;
    client.put("/lake/file", "").await;
    client
}

/// Returns the names of all blobs.
async fn blobs(client: &Client) -> Vec<String> {
    let target = "/lake?restype=container&comp=list";
    let listed = client.get(target).await;
    let names = listed.elements("Name").into_iter();
    names.map(str::to_owned).collect()
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
        let ask = async |host| {
            let request = client.signed_at(host, (method, target), &[], "");
            client.call(request).await.outcome()
        };
        let found = ask("http://devstoreaccount1.dfs.localhost:10000").await;
        assert_eq!(found, REFUSED, "{method} {target}");
        let found = ask("http://devstoreaccount1.blob.localhost:10000").await;
        assert_ne!(found, REFUSED, "{method} {target}");
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
            "/?resource=account" => "200",
            "/lake?resource=filesystem" if *method == "PUT" => "409 FilesystemAlreadyExists",
            _ => REFUSED,
        };
        let found = client.try_(method, target, headers).await;
        assert_eq!(found, expected, "{method} {target}");
    }
    assert_eq!(blobs(&client).await, ["file"]);
    client.put("/lake/a/b", "").await;
    assert_eq!(blobs(&client).await, ["a/b", "file"]);
    let found = client.head("/lake/a/b").await;
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
    client.change_settings(hierarchical);
}

/// A port of its own serves the interface alone, whatever the request's shape.
#[tokio::test]
async fn data_lake_port_serves_the_interface_alone() {
    let client = Client::new();
    become_hierarchical(&client);
    client.create("lake").await;
    let meta = [("x-ms-meta-team", "billing"), BLOCK];
    let put = client.send("PUT", "/lake/a/file", &meta, "hello").await;
    assert_eq!(put.outcome(), "201");
    let lake = client.as_data_lake();
    let read = lake.get("/lake/a/file").await;
    assert_eq!((read.status, read.text()), (200, "hello"));
    assert_eq!(read.header("x-ms-properties"), "team=YmlsbGluZw==");
    assert_eq!(read.header("x-ms-resource-type"), "file");
    assert_eq!(read.header("x-ms-meta-team"), "");
    let list = lake.get("/lake?restype=container&comp=list").await;
    assert_eq!(list.outcome(), "400 InvalidQueryParameterValue");
    let deleted = lake.try_("DELETE", "/lake/a", &[]).await;
    assert_eq!(deleted, "409 DirectoryNotEmpty");
    assert_eq!(lake.try_("DELETE", "/lake/a/file", &[]).await, "200");
}
