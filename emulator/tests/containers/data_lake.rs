//! Requests of the Data Lake interface to an account with a flat namespace.

use smalt::AccountSettings;
use smalt_protocol::ApiVersion;

use super::client::Client;

const REFUSED: &str = "400 HierarchicalNamespaceNotEnabled";

/// Method, path and query after the account, headers.
type Asked = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Every shape of a request of the interface, with a header that it needs.
const REQUESTS: &[Asked] = &[
    ("GET", "?resource=account", &[]),
    ("PUT", "lake?resource=filesystem", &[]),
    ("HEAD", "lake?resource=filesystem", &[]),
    (
        "PATCH",
        "lake?resource=filesystem",
        &[("x-ms-properties", "")],
    ),
    ("DELETE", "lake?resource=filesystem", &[]),
    (
        "GET",
        "lake?resource=filesystem&recursive=true&upn=true",
        &[],
    ),
    (
        "PUT",
        "lake/dir?resource=directory",
        &[("x-ms-umask", "0022")],
    ),
    ("PUT", "lake/file?resource=file", &[]),
    (
        "PUT",
        "lake/new?mode=legacy",
        &[("x-ms-rename-source", "/lake/file")],
    ),
    ("PATCH", "lake/file?action=append&position=0", &[]),
    ("PATCH", "lake/file?action=flush&position=0", &[]),
    (
        "PUT",
        "lake/file?action=append&position=0",
        &[("x-http-method-override", "PATCH")],
    ),
    ("PATCH", "lake/file?action=setProperties", &[]),
    (
        "PATCH",
        "lake/file?action=setAccessControl",
        &[("x-ms-permissions", "0777")],
    ),
    (
        "PATCH",
        "lake/dir?action=setAccessControlRecursive&mode=set",
        &[("x-ms-acl", "user::rwx")],
    ),
    ("HEAD", "lake/?action=getAccessControl&upn=false", &[]),
    ("HEAD", "lake/file?action=getStatus", &[]),
    ("HEAD", "lake/file?action=checkAccess&fsAction=r--", &[]),
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

#[tokio::test]
async fn every_shape_is_refused_and_changes_nothing() {
    let client = flat().await;
    for (method, target, headers) in REQUESTS {
        assert_eq!(
            client.try_(method, target, headers).await,
            REFUSED,
            "{method} {target}"
        );
    }
    assert_eq!(blobs(&client).await, ["file"]);
}

/// Arrow's file system takes a missing container for one with a flat namespace, too.
#[tokio::test]
async fn namespace_is_checked_before_the_file_system() {
    let client = Client::new();
    let ask = "missing/?action=getAccessControl";
    assert_eq!(client.try_("HEAD", ask, &[]).await, REFUSED);
    assert_eq!(
        client.try_("PUT", "missing?resource=filesystem", &[]).await,
        REFUSED
    );
    assert_eq!(
        client.try_("HEAD", "missing?restype=container", &[]).await,
        "404 ContainerNotFound"
    );
}

#[tokio::test]
async fn refusal_is_json_with_the_interfaces_server_header() {
    let client = flat().await;
    let answer = client.ask("PATCH", "lake/file?action=flush", &[], "").await;
    assert_eq!(
        answer.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert!(
        answer
            .header("server")
            .starts_with("Windows-Azure-HDFS/1.0")
    );
    let id = answer.header("x-ms-request-id").to_owned();
    let body: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(body["error"]["code"], "HierarchicalNamespaceNotEnabled");
    let expected = format!(
        "This operation is only supported on a hierarchical namespace account.\n\
         RequestId:{id}\nTime:2023-11-14T22:13:20.0000000Z"
    );
    assert_eq!(body["error"]["message"], expected.as_str());
    let answer = client
        .ask("HEAD", "lake/?action=getAccessControl", &[], "")
        .await;
    assert_eq!(
        (answer.outcome().as_str(), answer.text.as_str()),
        (REFUSED, "")
    );
    assert_eq!(answer.header("content-type"), "");
}

/// Reported with Azure/azure-sdk-for-python, issue 22775.
#[tokio::test]
async fn interface_is_refused_with_soft_delete() {
    let client = flat().await;
    let retention = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
                     <Days>5</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    let set = client.ask("PUT", "?restype=service&comp=properties", &[], retention);
    assert_eq!(set.await.outcome(), "202");
    let refused = "409 EndpointUnsupportedAccountFeatures";
    for (method, target, headers) in REQUESTS {
        assert_eq!(
            client.try_(method, target, headers).await,
            refused,
            "{method} {target}"
        );
    }
}

#[tokio::test]
async fn unknown_caller_is_refused_first() {
    let client = flat().await;
    let request = http::Request::head(
        "http://127.0.0.1:10000/devstoreaccount1/lake/?action=getAccessControl",
    )
    .header("x-ms-version", ApiVersion::LATEST.to_string())
    .body(smalt::body::empty())
    .unwrap();
    let answer = client.emulator.call(request).await.unwrap();
    assert_eq!(answer.status(), 401);
    assert_eq!(
        answer.headers()["x-ms-error-code"],
        "NoAuthenticationInformation"
    );
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
    let hierarchical = AccountSettings {
        hierarchical_namespace: true,
        ..AccountSettings::default()
    };
    let settings = client
        .emulator
        .change_settings("devstoreaccount1", hierarchical);
    assert!(settings);
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
