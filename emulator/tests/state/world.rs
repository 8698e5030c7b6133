//! A state with a resource of every kind, and what a client reads of it.

use bytes::Bytes;
use smalt::{AccountSettings, Emulator, Service};

use crate::support::{Answer, BLOCK, Client};

/// Returns more bytes than fit in a record.
pub(crate) fn large() -> Vec<u8> {
    (0..150_000_u32).map(|n| (n % 251) as u8).collect()
}

/// Sends a request that asks for no annotations of entities.
pub(crate) async fn send(
    emulator: &Emulator,
    service: Service,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let headers = [&[("accept", "application/json;odata=nometadata")], headers].concat();
    let client = Client::to(emulator).at(service);
    client.send(method, path, &headers, body.to_vec()).await
}

async fn made(
    emulator: &Emulator,
    service: Service,
    call: (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) {
    let answer = send(emulator, service, call, headers, body).await;
    assert!((200..300).contains(&answer.status), "{call:?}: {answer:?}");
}

/// Creates a resource of every kind.
pub(crate) async fn fill(emulator: &Emulator) {
    let settings = AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    };
    Client::to(emulator).change_settings(settings);
    let blob = |call, headers, body| made(emulator, Service::Blob, call, headers, body);
    let block = [BLOCK, ("x-ms-tags", "a=1")];
    let large = large();
    blob(
        ("PUT", "/ccc?restype=container"),
        &[("x-ms-meta-k", "v")],
        b"",
    )
    .await;
    blob(("PUT", "/ccc/small"), &block, b"small").await;
    blob(("PUT", "/ccc/small"), &block, b"a second version").await;
    blob(("PUT", "/ccc/large"), &block, &large).await;
    blob(("PUT", "/ccc/again"), &block, &large).await;
    blob(("PUT", "/ccc/large?comp=snapshot"), &[], b"").await;
    blob(("PUT", "/ccc/staged?comp=block&blockid=MDE="), &[], &large).await;
    blob(
        ("PUT", "/ccc/log"),
        &[("x-ms-blob-type", "AppendBlob")],
        b"",
    )
    .await;
    blob(("PUT", "/ccc/log?comp=appendblock"), &[], &large).await;
    let pages = [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-content-length", "4096"),
    ];
    blob(("PUT", "/ccc/pages"), &pages, b"").await;
    let write = [
        ("x-ms-page-write", "update"),
        ("x-ms-range", "bytes=512-1023"),
    ];
    blob(("PUT", "/ccc/pages?comp=page"), &write, &[7; 512]).await;
    let lease = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        (
            "x-ms-proposed-lease-id",
            "11111111-1111-1111-1111-111111111111",
        ),
    ];
    blob(("PUT", "/ccc/small?comp=lease"), &lease, b"").await;
    let queue = |call, body| made(emulator, Service::Queue, call, &[], body);
    queue(("PUT", "/qqq"), b"").await;
    let message = b"<QueueMessage><MessageText>now</MessageText></QueueMessage>";
    queue(("POST", "/qqq/messages"), message).await;
    queue(("POST", "/qqq/messages?visibilitytimeout=60"), message).await;
    let table = |call, body| made(emulator, Service::Table, call, &[], body);
    table(("POST", "/Tables"), br#"{"TableName":"ttt"}"#).await;
    let entity = br#"{"PartitionKey":"p","RowKey":"r","n":1.5}"#;
    table(("POST", "/ttt"), entity).await;
}

/// Returns everything that a client reads, with ETags.
pub(crate) async fn seen(emulator: &Emulator) -> Vec<(String, u16, String, Bytes)> {
    let mut all = Vec::new();
    for (service, path) in [
        (Service::Blob, "/?comp=list&include=metadata,deleted"),
        (
            Service::Blob,
            "/ccc?restype=container&comp=list\
             &include=snapshots,versions,uncommittedblobs,metadata,tags,copy,deleted",
        ),
        (Service::Blob, "/ccc/small"),
        (Service::Blob, "/ccc/large"),
        (Service::Blob, "/ccc/again"),
        (Service::Blob, "/ccc/log"),
        (Service::Blob, "/ccc/pages"),
        (Service::Blob, "/ccc/pages?comp=pagelist"),
        (
            Service::Blob,
            "/ccc/staged?comp=blocklist&blocklisttype=all",
        ),
        (Service::Blob, "/?comp=blobs&where=%22a%22%3D%271%27"),
        (
            Service::Queue,
            "/qqq/messages?peekonly=true&numofmessages=32",
        ),
        (Service::Queue, "/qqq?comp=metadata"),
        (Service::Table, "/ttt(PartitionKey='p',RowKey='r')"),
    ] {
        let answer = send(emulator, service, ("GET", path), &[], b"").await;
        let etag = answer.header("etag").to_owned();
        all.push((path.to_owned(), answer.status, etag, answer.body));
    }
    all
}
