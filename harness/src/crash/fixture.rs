//! Stores of released versions: how one is written, and how it is read.
//!
//! `harness store-fixture write` makes `fixtures/stores/v<format>`, once for each format of the
//! store; `dump` reads one through the service. The dump contains what a client sees, so that it
//! stays the same when records or keys in the store change. docs/crash.md says when to make the
//! next one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::Method;
use smalt::{AccountSettings, Clock, Emulator, Timestamp};
use smalt_protocol::xml::{Element, read_document};
use smalt_protocol::{ApiVersion, Service};

use super::child::SEGMENT_BYTES;
use super::content::Content;
use super::files;
use super::transport::Transport;
use crate::servers::ServerError;
use crate::traces::body::sha256_hex;
use crate::wire::Answer;
use crate::wire::access::{ACCOUNT, Access};

const BLOB: Service = Service::Blob;
const QUEUE: Service = Service::Queue;
/// Time at which the store is written; it is read an hour later.
const WRITTEN_UNIX_S: u64 = 1_800_000_000;
const READ_AFTER_S: u64 = 3_600;
/// Most elements of a listing: about thirty for each of a handful of blobs.
const ELEMENTS_MAX: usize = 10_000;
/// Elements of each blob in a listing that matter to a client.
const SHOWN: &[&str] = &[
    "Name",
    "Snapshot",
    "VersionId",
    "IsCurrentVersion",
    "Etag",
    "Last-Modified",
    "Content-Length",
    "Content-Type",
    "Content-MD5",
    "BlobType",
    "LeaseState",
    "mark",
    "TagCount",
    "InsertionTime",
    "ExpirationTime",
    "MessageId",
    "DequeueCount",
    "MessageText",
];

/// Options of `harness store-fixture`.
#[derive(Clone, Debug, clap::Args)]
pub struct FixtureOptions {
    /// `write` makes a store in DIR, which must not exist; `dump` prints the contents of one.
    #[arg(value_enum)]
    pub action: Action,
    /// Directory of the store.
    pub dir: PathBuf,
}

/// Action of `harness store-fixture`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Make a store.
    Write,
    /// Print the contents of a store without changing it.
    Dump,
}

/// Body of a request.
#[derive(Clone, Copy)]
enum Sent {
    Nothing,
    /// Random bytes: seed, length.
    Random(u64, usize),
    Text(&'static str),
    /// A message with this text.
    Message(&'static str),
    /// A message of random letters: seed, length.
    LongMessage(u64, usize),
}

use Sent::{LongMessage, Message, Nothing, Random, Text};

/// A header of a request.
type Header = (&'static str, &'static str);

/// A request: method, service, path and query, headers, content.
type Step = (Method, Service, &'static str, &'static [Header], Sent);

const BLOCK: Header = ("x-ms-blob-type", "BlockBlob");
const APPEND: Header = ("x-ms-blob-type", "AppendBlob");
const MARK: Header = ("x-ms-meta-mark", "fixture");
const PAGES: &[Header] = &[
    ("x-ms-blob-type", "PageBlob"),
    ("x-ms-blob-content-length", "1048576"),
];
const PAGE: &[Header] = &[
    ("x-ms-page-write", "update"),
    ("x-ms-range", "bytes=512-1535"),
];
const ACQUIRE: &[Header] = &[
    ("x-ms-lease-action", "acquire"),
    ("x-ms-lease-duration", "-1"),
    (
        "x-ms-proposed-lease-id",
        "aaaaaaaa-0000-4000-8000-aaaaaaaaaaaa",
    ),
];
const LIST: &str = "<BlockList><Latest>MDE=</Latest><Latest>MDI=</Latest></BlockList>";
const TAGS: &str = "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";

const fn put(path: &'static str, headers: &'static [Header], sent: Sent) -> Step {
    (Method::PUT, BLOB, path, headers, sent)
}

const fn get(service: Service, path: &'static str) -> Step {
    (Method::GET, service, path, &[], Nothing)
}

const fn post(path: &'static str, sent: Sent) -> Step {
    (Method::POST, QUEUE, path, &[], sent)
}

/// The requests that write something of everything that the store keeps.
const WRITTEN: &[Step] = &[
    put("one?restype=container", &[MARK], Nothing),
    put("two?restype=container", &[], Nothing),
    put("gone?restype=container", &[], Nothing),
    put("one/empty", &[BLOCK], Nothing),
    put("one/small", &[BLOCK, MARK], Random(1, 1_000)),
    put("one/large", &[BLOCK], Random(2, 70_000)),
    put("one/large", &[BLOCK, MARK], Random(3, 30_000)),
    put("one/small?comp=snapshot", &[], Nothing),
    put("one/small?comp=tags", &[], Text(TAGS)),
    put(
        "one/blocks?comp=block&blockid=MDE%3D",
        &[],
        Random(4, 20_000),
    ),
    put("one/blocks?comp=block&blockid=MDI%3D", &[], Random(5, 500)),
    put("one/blocks?comp=blocklist", &[MARK], Text(LIST)),
    put(
        "one/waiting?comp=block&blockid=MDE%3D",
        &[],
        Random(6, 2_000),
    ),
    put("two/log", &[APPEND], Nothing),
    put("two/log?comp=appendblock", &[], Random(7, 3_000)),
    put("two/log?comp=appendblock", &[], Random(8, 17_000)),
    put("two/pages", PAGES, Nothing),
    put("two/pages?comp=page", PAGE, Random(10, 1_024)),
    put("two/r%C3%A9sum%C3%A9%20%26.txt", &[BLOCK], Text("name")),
    put("gone/lost", &[BLOCK], Random(11, 20_000)),
    (Method::DELETE, BLOB, "gone?restype=container", &[], Nothing),
    put("two?restype=container&comp=lease", ACQUIRE, Nothing),
    (Method::PUT, QUEUE, "queue", &[MARK], Nothing),
    post("queue/messages", Message("first")),
    post("queue/messages", LongMessage(9, 40_000)),
    get(QUEUE, "queue/messages?visibilitytimeout=60"),
    post("queue/messages?messagettl=-1", Message("third")),
];

/// The listings in a dump.
const LISTED: &[(Service, &str)] = &[
    (BLOB, "?comp=list&include=metadata"),
    (
        BLOB,
        "one?restype=container&comp=list&include=metadata,snapshots,versions,tags,uncommittedblobs",
    ),
    (
        BLOB,
        "two?restype=container&comp=list&include=metadata,snapshots,versions,tags,uncommittedblobs",
    ),
    (QUEUE, "?comp=list&include=metadata"),
    (QUEUE, "queue/messages?peekonly=true&numofmessages=32"),
];

/// Blobs whose content is read.
const READ: &[&str] = &[
    "one/empty",
    "one/small",
    "one/large",
    "one/blocks",
    "two/log",
    "two/pages",
    "two/r%C3%A9sum%C3%A9%20%26.txt",
    "gone/lost",
];

/// Documents that a dump contains completely.
const DOCUMENTS: &[&str] = &[
    "one/blocks?comp=blocklist&blocklisttype=all",
    "one/waiting?comp=blocklist&blocklisttype=all",
    "two/pages?comp=pagelist",
    "one/small?comp=tags",
];

/// Runs `harness store-fixture`.
pub async fn run_fixture(options: &FixtureOptions) -> anyhow::Result<ExitCode> {
    match options.action {
        Action::Write if options.dir.exists() => {
            anyhow::bail!(
                "{} already exists: remove it or choose another directory",
                options.dir.display()
            );
        }
        Action::Write => write(&options.dir).await?,
        Action::Dump => print!("{}", dump(&options.dir).await?),
    }
    Ok(ExitCode::SUCCESS)
}

fn open(dir: &Path, at: u64) -> Result<Emulator, ServerError> {
    let opened = Emulator::builder()
        .clock(Clock::manual(Timestamp::from_unix_s(at)))
        .seed(1)
        .segment_bytes(SEGMENT_BYTES)
        .durable(dir)
        .open();
    opened.map_err(ServerError::call)
}

async fn send(emulator: &Emulator, step: &Step) -> Result<Answer, ServerError> {
    let (method, service, path, headers, sent) = step.clone();
    let path = Access::full(ApiVersion::V2021_12_02).path(path);
    let mut way = Transport::InProcess(emulator.clone(), service);
    way.send(method, &path, headers, sent.bytes()).await
}

impl Sent {
    fn bytes(self) -> Vec<u8> {
        let message = |text: String| {
            format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>").into_bytes()
        };
        match self {
            Sent::Nothing => Vec::new(),
            Sent::Random(seed, length) => Content { seed, length }.bytes(),
            Sent::Text(text) => text.as_bytes().to_vec(),
            Sent::Message(text) => message(text.to_owned()),
            Sent::LongMessage(seed, length) => message(Content { seed, length }.text()),
        }
    }
}

async fn write(dir: &Path) -> anyhow::Result<()> {
    let emulator = open(dir, WRITTEN_UNIX_S)?;
    let versioning = AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    };
    emulator.change_settings(ACCOUNT, versioning);
    for step in WRITTEN {
        emulator.clock().advance(std::time::Duration::from_secs(1));
        let answer = send(&emulator, step).await?;
        if answer.status >= 300 {
            anyhow::bail!("{} {}: {}", step.0, step.2, answer.status);
        }
    }
    while emulator.maintain(100)?.more {}
    emulator.close()?;
    Ok(())
}

/// Returns what a client sees of a store; reads a copy of it.
pub async fn dump(dir: &Path) -> anyhow::Result<String> {
    let kept = tempfile::tempdir()?;
    let copy = kept.path().join("store");
    files::copy_dir(dir, &copy)?;
    let emulator = open(&copy, WRITTEN_UNIX_S + READ_AFTER_S)?;
    let mut told = String::new();
    for (service, path) in LISTED {
        told.push_str(&format!("{path}\n"));
        let answer = send(&emulator, &get(*service, path)).await?.expect(200)?;
        let root = read_document(&answer.body, ELEMENTS_MAX).map_err(ServerError::call)?;
        show(&root, &mut told);
    }
    for path in READ {
        let answer = send(&emulator, &get(BLOB, path)).await?;
        let (status, body) = (answer.status, &answer.body);
        let what = match status {
            200 => sum(body),
            _ => status.to_string(),
        };
        told.push_str(&format!("{path}: {what}\n"));
    }
    for path in DOCUMENTS {
        let answer = send(&emulator, &get(BLOB, path)).await?.expect(200)?;
        let body = String::from_utf8_lossy(&answer.body);
        told.push_str(&format!(
            "{path}: {}\n",
            body.trim_start_matches('\u{feff}')
        ));
    }
    emulator.close()?;
    Ok(told)
}

fn sum(bytes: &[u8]) -> String {
    format!("{} bytes, sha256 {}", bytes.len(), sha256_hex(bytes))
}

/// Appends the elements that matter to a client, in the order of the document.
fn show(element: &Element<'_>, told: &mut String) {
    for child in &element.children {
        if SHOWN.contains(&child.name) {
            let text = child.text.as_ref();
            let text = match text.len() {
                ..=200 => text.to_owned(),
                _ => sum(text.as_bytes()),
            };
            told.push_str(&format!("  {}: {text}\n", child.name));
        }
        show(child, told);
    }
}
