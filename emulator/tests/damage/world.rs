//! A small store with a resource of every kind, and all responses that a client can read from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected};
use smalt::check::{self, Report};
use smalt::disk::{Disk, SystemDisk, files_below, read_small};
use smalt::store::OpenError;
use smalt::{Clock, Emulator, Service};

use crate::support::{BLOCK, Client, START};

/// Small, so that a small store has several segments.
const SEGMENT_BYTES: u64 = 256 * 1024;
/// Blob names that are unsafe as file names.
pub(crate) const NAMES: [&str; 6] = [
    "plain.txt",
    "../../outside.txt",
    "a/b/c",
    "CON",
    "%2e%2e",
    "z\u{fc}-\u{1f980}",
];

/// Status and body; `None` when the body broke off.
pub(crate) type Answer = (u16, Option<Bytes>);

/// Returns bytes that differ from place to place.
pub(crate) fn pattern(seed: usize, length: usize) -> Vec<u8> {
    let byte = |n: usize| {
        let mixed = (n as u64 ^ ((seed as u64) << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    };
    (0..length).map(byte).collect()
}

/// Returns the length of a blob: one that fits in a record, in one frame, or in several.
pub(crate) fn length(n: usize) -> usize {
    [100, 3_000, 40_000, 150_000][n % 4]
}

pub(crate) fn open(dir: &Path) -> Result<Emulator, OpenError> {
    let clock = Clock::manual(START);
    let builder = Emulator::builder().clock(clock).seed(1);
    builder.segment_bytes(SEGMENT_BYTES).durable(dir).open()
}

pub(crate) fn report(dir: &Path) -> Result<Report, OpenError> {
    let scratch = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
    check::check(dir, scratch.path(), &disk)
}

/// Sends a request signed by the owner.
pub(crate) async fn send(
    emulator: &Emulator,
    service: Service,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    sent: Vec<u8>,
) -> Answer {
    let client = Client::to(emulator).at(service);
    let request = client.signed(method, path, headers, sent);
    let (head, body) = emulator.call(request).await.unwrap().into_parts();
    let body = body.collect().await.ok().map(Collected::to_bytes);
    (head.status.as_u16(), body)
}

const ACCEPT: (&str, &str) = ("accept", "application/json;odata=nometadata");

pub(crate) fn blob(name: &str) -> String {
    format!("/box/{}", smalt_protocol::uri::encode_query(name))
}

/// A request that fills the store.
type Step = (
    Service,
    &'static str,
    String,
    Vec<(&'static str, &'static str)>,
    Vec<u8>,
);

/// Creates a filled and closed store.
pub(crate) async fn filled(dir: &Path) {
    let emulator = open(dir).unwrap();
    for (service, method, path, headers, sent) in blobs().into_iter().chain(others()) {
        let answer = send(&emulator, service, (method, &path), &headers, sent).await;
        assert!((200..300).contains(&answer.0), "{path}: {answer:?}");
    }
    emulator.close().unwrap();
}

fn blobs() -> Vec<Step> {
    let step = |path: &str, headers: &[_], sent| -> Step {
        (
            Service::Blob,
            "PUT",
            path.to_owned(),
            headers.to_vec(),
            sent,
        )
    };
    let mut steps = vec![step("/box?restype=container", &[], Vec::new())];
    for (n, name) in NAMES.iter().enumerate() {
        let headers = [BLOCK, ("x-ms-meta-n", "1"), ("x-ms-tags", "k=v")];
        steps.push(step(&blob(name), &headers, pattern(n, length(n))));
    }
    let snapshot = blob("a/b/c") + "?comp=snapshot";
    let page = [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-content-length", "1048576"),
    ];
    let range = [
        ("x-ms-page-write", "update"),
        ("x-ms-range", "bytes=512-20991"),
    ];
    let list = "<BlockList><Latest>MQ==</Latest></BlockList>";
    steps.extend([
        step(&snapshot, &[], Vec::new()),
        step("/box/page", &page, Vec::new()),
        step("/box/page?comp=page", &range, pattern(9, 20_480)),
        step("/box/list?comp=block&blockid=MQ==", &[], pattern(7, 50_000)),
        step("/box/list?comp=blocklist", &[], list.into()),
        step("/box/list?comp=block&blockid=Mg==", &[], pattern(8, 30_000)),
    ]);
    steps
}

fn others() -> Vec<Step> {
    let headers = vec![ACCEPT];
    let table = br#"{"TableName":"tab"}"#.to_vec();
    let mut steps: Vec<Step> = vec![
        (Service::Queue, "PUT", "/que".to_owned(), vec![], vec![]),
        (
            Service::Table,
            "POST",
            "/Tables".to_owned(),
            headers.clone(),
            table,
        ),
    ];
    for n in 0..5 {
        let (message, entity) = ("m".repeat(n * 9_000 + 1), "e".repeat(n * 8_000));
        let message = format!("<QueueMessage><MessageText>{message}</MessageText></QueueMessage>");
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{n}","text":"{entity}","n":{n}}}"#);
        let path = "/que/messages".to_owned();
        steps.push((Service::Queue, "POST", path, vec![], message.into()));
        let path = "/tab".to_owned();
        steps.push((Service::Table, "POST", path, headers.clone(), entity.into()));
    }
    steps
}

/// Returns all responses that a client can read, by request.
pub(crate) async fn read(emulator: &Emulator) -> BTreeMap<String, Answer> {
    let mut paths: Vec<_> = NAMES
        .iter()
        .map(|name| (Service::Blob, blob(name)))
        .collect();
    for path in [
        "/box/page",
        "/box/list",
        "/box/list?comp=blocklist&blocklisttype=all",
        "/box?restype=container&comp=list&include=metadata,tags,snapshots,uncommittedblobs",
        "/?comp=list",
    ] {
        paths.push((Service::Blob, path.to_owned()));
    }
    let query = "/que/messages?peekonly=true&numofmessages=32";
    paths.push((Service::Queue, query.to_owned()));
    paths.push((Service::Table, "/tab()".to_owned()));
    let mut all = BTreeMap::new();
    for (service, path) in paths {
        let headers: &[_] = if service == Service::Table {
            &[ACCEPT]
        } else {
            &[]
        };
        let answer = send(emulator, service, ("GET", &path), headers, Vec::new()).await;
        all.insert(path, answer);
    }
    all
}

pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let content = |path: PathBuf| {
        let bytes = read_small(&SystemDisk, &dir.join(&path)).unwrap().unwrap();
        (path, bytes)
    };
    files_below(dir).unwrap().into_iter().map(content).collect()
}

pub(crate) fn write(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, bytes) in files {
        let path = dir.join(path);
        SystemDisk.create_dir(path.parent().unwrap()).unwrap();
        SystemDisk
            .open(&path, true)
            .unwrap()
            .write_at(bytes, 0)
            .unwrap();
    }
}
