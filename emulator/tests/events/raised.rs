//! Which operation raises which event, and what the event says.

use serde_json::json;

use super::world::with_boxes;
use crate::support::{BLOCK, Client};

async fn world() -> Client {
    let world = with_boxes(Client::new()).await;
    world.subscribe("all", json!({})).await;
    world
}

/// Method, path, headers, body, status, and the events that the request raises.
type Step<'a> = (
    &'a str,
    &'a str,
    &'a [(&'a str, &'a str)],
    &'a str,
    u16,
    &'a str,
);

async fn take(world: &Client, steps: &[Step<'_>]) {
    for (method, path, headers, body, status, expected) in steps {
        let found = world.send(method, path, headers, (*body).to_owned()).await;
        assert_eq!(found.status, *status, "{method} {path}");
        world.deliver().await;
        let events = world.short_events("all").await;
        assert_eq!(events.join(", "), *expected, "{method} {path}");
    }
}

#[tokio::test]
async fn creation_raises_an_event_with_its_api() {
    let world = world().await;
    let list = "<BlockList><Latest>MQ==</Latest></BlockList>";
    let page = [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-content-length", "512"),
    ];
    let append = [("x-ms-blob-type", "AppendBlob")];
    let absent = [BLOCK, ("if-none-match", "*")];
    let put = "BlobCreated PutBlob";
    let steps: &[Step<'_>] = &[
        ("PUT", "/box/a", &[BLOCK], "text", 201, &format!("{put} a")),
        ("PUT", "/box/a", &[BLOCK], "more", 201, &format!("{put} a")),
        ("PUT", "/box/a", &absent, "more", 409, ""),
        ("PUT", "/box/b?comp=block&blockid=MQ==", &[], "x", 201, ""),
        (
            "PUT",
            "/box/b?comp=blocklist",
            &[],
            list,
            201,
            "BlobCreated PutBlockList b",
        ),
        ("PUT", "/box/p", &page, "", 201, &format!("{put} p")),
        ("PUT", "/box/l", &append, "", 201, &format!("{put} l")),
        ("PUT", "/box/l?comp=appendblock", &[], "x", 201, ""),
        ("PUT", "/dead/a", &[BLOCK], "elsewhere", 201, ""),
    ];
    take(&world, steps).await;
    let source = world.url("/box/a");
    let copied = [("x-ms-copy-source", source.as_str())];
    let synchronous = [copied[0], ("x-ms-requires-sync", "true")];
    let url = world.signed_url("box", "a", "r");
    let from_url = [("x-ms-copy-source", url.as_str()), BLOCK];
    let steps: &[Step<'_>] = &[
        ("PUT", "/box/c", &copied, "", 202, "BlobCreated CopyBlob c"),
        (
            "PUT",
            "/box/d",
            &synchronous,
            "",
            202,
            "BlobCreated CopyBlob d",
        ),
        ("PUT", "/box/e", &from_url, "", 201, &format!("{put} e")),
    ];
    take(&world, steps).await;
}

/// A directory raises one event, whatever it holds, and a file that stays open none.
#[tokio::test]
async fn paths_raise_the_events_of_a_hierarchical_account() {
    let world = with_boxes(Client::hierarchical()).await;
    world.subscribe("all", json!({})).await;
    let rename = |source| [("x-ms-rename-source", source)];
    let (file, directory) = (rename("/box/d/a"), rename("/box/d"));
    for (request, headers, body, status, expected) in [
        (
            "PUT /box/d?resource=directory",
            &[][..],
            "",
            201,
            "DirectoryCreated CreateDirectory d",
        ),
        (
            "PUT /box/d/a?resource=file",
            &[],
            "",
            201,
            "BlobCreated CreateFile d/a",
        ),
        ("PATCH /box/d/a?action=append&position=0", &[], "x", 202, ""),
        ("PATCH /box/d/a?action=flush&position=1", &[], "", 200, ""),
        (
            "PATCH /box/d/a?action=flush&position=1&close=true",
            &[],
            "",
            200,
            "BlobCreated FlushWithClose d/a",
        ),
        ("PUT /box/d/b", &file, "", 201, "BlobRenamed RenameFile d/b"),
        (
            "PUT /box/e",
            &directory,
            "",
            201,
            "DirectoryRenamed RenameDirectory e",
        ),
        (
            "PUT /box/n/c",
            &[BLOCK],
            "x",
            201,
            "BlobCreated PutBlob n/c",
        ),
        (
            "DELETE /box/e?recursive=true",
            &[],
            "",
            200,
            "DirectoryDeleted DeleteDirectory e",
        ),
    ] {
        let (method, path) = request.split_once(' ').unwrap();
        take(&world, &[(method, path, headers, body, status, expected)]).await;
    }
    let back = rename("/box/n/c");
    assert_eq!(world.send("PUT", "/box/", &back, "").await.status, 201);
    world.deliver().await;
    let data = &world.events("all").await[0]["data"];
    let shown = |field: &str| data[field].as_str().map(str::to_owned);
    let is = |field, end| shown(field).is_some_and(|url| url.ends_with(end));
    assert!(is("sourceUrl", "/devstoreaccount1/box/n/c"), "{data}");
    assert!(is("destinationUrl", "/devstoreaccount1/box/c"), "{data}");
    assert_eq!(shown("url"), None);
}

#[tokio::test]
async fn tier_and_deletion_raise_events_when_they_change_the_base_blob() {
    let world = world().await;
    world.put_blob("a").await;
    world.deliver().await;
    world.events("all").await;
    let tier = |name| [("x-ms-access-tier", name)];
    let tier_path = "/box/a?comp=tier";
    let snapshots = [("x-ms-delete-snapshots", "only")];
    let (tiered, started) = ("BlobTierChanged", "AsyncOperationInitiated");
    let changed = format!("{tiered} SetBlobTier a");
    let steps: &[Step<'_>] = &[
        (
            "PUT",
            "/box/a?comp=metadata",
            &[("x-ms-meta-a", "b")],
            "",
            200,
            "",
        ),
        ("PUT", tier_path, &tier("Hot"), "", 200, ""),
        ("PUT", tier_path, &tier("Cool"), "", 200, &changed),
        ("PUT", tier_path, &tier("Cool"), "", 200, ""),
        ("PUT", "/box/a?comp=snapshot", &[], "", 201, ""),
        ("PUT", tier_path, &tier("Archive"), "", 200, &changed),
        (
            "PUT",
            tier_path,
            &tier("Hot"),
            "",
            202,
            &format!("{started} SetBlobTier a"),
        ),
        ("DELETE", "/box/a", &snapshots, "", 202, ""),
        ("DELETE", "/box/a", &[], "", 202, "BlobDeleted DeleteBlob a"),
        ("DELETE", "/box/a", &[], "", 404, ""),
    ];
    take(&world, steps).await;
}

#[tokio::test]
async fn event_describes_blob_and_request() {
    let world = world().await;
    let headers = [
        BLOCK,
        ("x-ms-client-request-id", "mine"),
        ("content-type", "text/plain"),
    ];
    let put = world.send("PUT", "/box/a%20b/c", &headers, "text").await;
    world.deliver().await;
    let event = world.events("all").await.pop().unwrap();
    let sequencer = event["data"]["sequencer"].as_str().unwrap();
    assert_eq!(sequencer.len(), 48);
    let expected = json!({
        "topic": "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/smalt\
            /providers/Microsoft.Storage/storageAccounts/devstoreaccount1",
        "subject": "/blobServices/default/containers/box/blobs/a b/c",
        "eventType": "Microsoft.Storage.BlobCreated",
        "eventTime": "2023-11-14T22:13:20.0000000Z",
        "id": event["id"],
        "data": {
            "api": "PutBlob",
            "clientRequestId": "mine",
            "requestId": put.header("x-ms-request-id"),
            "eTag": put.header("etag").trim_matches('"'),
            "contentType": "text/plain",
            "contentLength": 4,
            "blobType": "BlockBlob",
            "accessTier": "Default",
            "url": "http://127.0.0.1:10000/devstoreaccount1/box/a%20b/c",
            "sequencer": sequencer,
            "storageDiagnostics": { "batchId": put.header("x-ms-request-id") },
        },
        "dataVersion": "",
        "metadataVersion": "1",
    });
    assert_eq!(event, expected);
}

#[tokio::test]
async fn filters_and_schema_are_per_subscription() {
    let world = world().await;
    let filter = json!({
        "event_types": ["Microsoft.Storage.BlobDeleted"],
        "advanced": [{ "operator": "StringEndsWith", "key": "subject", "values": [".txt"] }],
    });
    let settings = json!({ "schema": "CloudEventSchemaV1_0", "filter": filter });
    world.subscribe("deleted", settings).await;
    world
        .subscribe("other", json!({ "account": "other" }))
        .await;
    for blob in ["a.txt", "b.bin"] {
        world.put_blob(blob).await;
        world.send("DELETE", &format!("/box/{blob}"), &[], "").await;
    }
    world.deliver().await;
    assert_eq!(world.events("all").await.len(), 4);
    assert_eq!(world.events("other").await.len(), 0);
    let deleted = world.events("deleted").await;
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0]["specversion"], "1.0");
    assert_eq!(deleted[0]["type"], "Microsoft.Storage.BlobDeleted");
    assert!(deleted[0]["source"].is_string() && deleted[0]["data"]["eTag"].is_null());
}

#[tokio::test]
async fn requests_of_a_batch_raise_events() {
    let world = world().await;
    world.put_blob("a").await;
    let body = "--batch\r\nContent-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\n\
        DELETE /devstoreaccount1/box/a HTTP/1.1\r\n";
    let target = "/devstoreaccount1/box/a";
    let date = world.now().rfc1123();
    let mut headers = vec![("x-ms-date", date.as_str())];
    let signed = world.signature("DELETE", target, &headers);
    headers.push(("authorization", &signed));
    let lines = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let body = format!("{body}{}\r\n--batch--\r\n", lines.collect::<String>());
    let multipart = [("content-type", "multipart/mixed; boundary=batch")];
    let answer = world.send("POST", "/?comp=batch", &multipart, body).await;
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    world.deliver().await;
    let events = world.short_events("all").await;
    assert_eq!(
        events,
        ["BlobCreated PutBlob a", "BlobDeleted DeleteBlob a"]
    );
}
