//! A state with a resource of every kind, and what a client reads of it.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use smalt::{AccountSettings, Emulator, Service};
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

use crate::support::{exchange, signature};

/// Returns more bytes than fit in a record.
pub(crate) fn large() -> Vec<u8> {
    (0..150_000_u32).map(|n| (n % 251) as u8).collect()
}

/// Sends a request signed by the owner of Azurite's account. Returns status, ETag and body.
pub(crate) async fn send(
    emulator: &Emulator,
    service: Service,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String, Vec<u8>) {
    let port = match service {
        Service::Blob => 10000,
        Service::Queue => 10001,
        Service::Table => 10002,
    };
    let target = format!("/{EMULATOR_ACCOUNT_NAME}{path}");
    let date = emulator.now().rfc1123();
    let (version, length) = (ApiVersion::LATEST.to_string(), body.len().to_string());
    let mut all = vec![
        ("x-ms-date", date.as_str()),
        ("x-ms-version", version.as_str()),
        ("content-length", length.as_str()),
        ("accept", "application/json;odata=nometadata"),
    ];
    if service == Service::Table && !body.is_empty() {
        all.push(("content-type", "application/json"));
    }
    all.extend_from_slice(headers);
    let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap();
    let by = (EMULATOR_ACCOUNT_NAME, key);
    let signed = signature(service, ApiVersion::LATEST, by, method, &target, &all);
    all.push(("authorization", &signed));
    let body = body.to_vec().into();
    let (head, body) = exchange(emulator, port, (method, &target), &all, body).await;
    let etag = head
        .headers
        .get("etag")
        .map_or("", |etag| etag.to_str().unwrap());
    (head.status.as_u16(), etag.to_owned(), body.to_vec())
}

async fn made(
    emulator: &Emulator,
    service: Service,
    call: (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) {
    let (status, _, answer) = send(emulator, service, call, headers, body).await;
    let text = String::from_utf8_lossy(&answer);
    assert!((200..300).contains(&status), "{call:?}: {status} {text}");
}

/// Creates a resource of every kind.
pub(crate) async fn fill(emulator: &Emulator) {
    let settings = AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    };
    assert!(emulator.change_settings(EMULATOR_ACCOUNT_NAME, settings));
    let blob = |call, headers, body| made(emulator, Service::Blob, call, headers, body);
    let block = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "a=1")];
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
pub(crate) async fn seen(emulator: &Emulator) -> Vec<(String, u16, String, Vec<u8>)> {
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
        let (status, etag, body) = send(emulator, service, ("GET", path), &[], b"").await;
        all.push((path.to_owned(), status, etag, body));
    }
    all
}
