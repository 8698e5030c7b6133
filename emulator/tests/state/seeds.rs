//! Seeds.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use bytes::Bytes;
use smalt::{Emulator, SeedError, Seeded, Service};

use super::world::send;
use crate::support::Client;

const SEED: &str = r#"
[[container]]
name = "photos"
access = "blob"
metadata = { owner = "me" }
folder = "photos"

[[container.blob]]
name = "hello.txt"
text = "hello"
content_encoding = "identity"
metadata = { kind = "greeting" }
tags = { colour = "red blue" }
tier = "Cool"

[[container.blob]]
name = "log"
type = "append"
base64 = "b25lLHR3bw=="

[[container.blob]]
name = "disk.vhd"
type = "page"
file = "pages.bin"

[[queue]]
name = "orders"
metadata = { team = "a" }
messages = ["one", "<two>"]

[[queue.message]]
text = "later"
visibility_timeout_s = 60
time_to_live_s = 600

[[table]]
name = "People"

[[table.entity]]
PartitionKey = "p"
RowKey = "o'neil"
age = 7
big = 9007199254740993

[[service]]
name = "blob"
delete_retention_days = 7
cors = [{ origins = ["https://a.example"], methods = ["GET", "PUT"], max_age_s = 60 }]
"#;

fn folder(seed: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs(&path, bytes);
    };
    write("seed.toml", seed.as_bytes());
    write("pages.bin", &[7; 1024]);
    write("photos/a/cat.png", b"png");
    write("photos/hello.txt", b"described in the seed");
    write("photos/.hidden", b"");
    dir
}

#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
fn fs(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

async fn get(emulator: &Emulator, service: Service, path: &str) -> String {
    let answer = send(emulator, service, ("GET", path), &[], b"").await;
    format!("{} {}", answer.status, answer.text())
}

async fn body(client: &Client, path: &str) -> Bytes {
    client.get(path).await.body
}

#[tokio::test]
async fn seed_creates_its_resources() {
    let dir = folder(SEED);
    let client = Client::new();
    let emulator = client.emulator();
    let seeded = emulator.plant(dir.path()).await.unwrap();
    assert_eq!(seeded, Seeded { made: 9, left: 0 });
    let answer = client.head("/photos/hello.txt").await;
    for (header, value) in [
        ("content-type", "text/plain"),
        ("content-encoding", "identity"),
        ("x-ms-meta-kind", "greeting"),
        ("x-ms-access-tier", "Cool"),
        ("x-ms-tag-count", "1"),
    ] {
        assert_eq!(answer.header(header), value, "{header}");
    }
    let cat = client.head("/photos/a/cat.png").await;
    assert_eq!(cat.header("content-type"), "image/png");
    for (path, bytes) in [
        ("/photos/hello.txt", &b"hello"[..]),
        ("/photos/a/cat.png", b"png"),
        ("/photos/log", b"one,two"),
        ("/photos/disk.vhd", &[7; 1024]),
    ] {
        assert_eq!(body(&client, path).await, bytes, "{path}");
    }
    let queue = "/orders/messages?peekonly=true&numofmessages=32";
    let entity = "/People(PartitionKey='p',RowKey='o%27%27neil')";
    let properties = "/?restype=service&comp=properties";
    for (service, path, part) in [
        (Service::Queue, queue, ">one<"),
        (Service::Queue, queue, "&lt;two&gt;"),
        (Service::Table, entity, "\"big\":\"9007199254740993\""),
        (Service::Blob, properties, "https://a.example"),
    ] {
        let answer = get(emulator, service, path).await;
        assert!(answer.contains(part), "{answer}");
    }
}

/// A second start changes no existing resource and creates missing ones.
#[tokio::test]
async fn seed_does_not_change_existing_resources() {
    let dir = folder(SEED);
    let store = tempfile::tempdir().unwrap();
    let on_disk = Client::of(|builder| builder.durable(store.path()));
    for client in [Client::new(), on_disk] {
        let emulator = client.emulator();
        emulator.plant(dir.path()).await.unwrap();
        client.put("/photos/hello.txt", "mine").await;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        emulator.export(&mut before).unwrap();
        let seeded = emulator.plant(dir.path()).await.unwrap();
        assert_eq!(seeded, Seeded { made: 0, left: 9 });
        emulator.export(&mut after).unwrap();
        assert!(before == after, "a second start changes the state");
        assert_eq!(client.try_("DELETE", "/photos/log", &[]).await, "202");
        let seeded = emulator.plant(&dir.path().join("seed.toml")).await;
        assert_eq!(seeded.unwrap(), Seeded { made: 1, left: 8 });
        assert_eq!(body(&client, "/photos/log").await, "one,two");
        assert_eq!(body(&client, "/photos/hello.txt").await, "mine");
    }
}

#[tokio::test]
async fn folder_without_a_seed_has_one_container_per_subfolder() {
    let dir = tempfile::tempdir().unwrap();
    fs(&dir.path().join("one/a/b.json"), b"{}");
    fs(&dir.path().join("two/.gitkeep"), b"");
    let client = Client::new();
    let seeded = client.emulator().plant(dir.path()).await.unwrap();
    assert_eq!(seeded, Seeded { made: 3, left: 0 });
    let answer = client.get("/one/a/b.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(client.get("/two?restype=container").await.status, 200);
    fs(&dir.path().join("loose.txt"), b"");
    let error = client
        .emulator()
        .plant(dir.path())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("loose.txt"), "{error}");
}

/// Text after a valid container, the line of its error, and a part of the message.
const BROKEN: &[(&str, usize, &str)] = &[
    ("[[container]]\nname = 7", 5, "name"),
    ("[[container]]\nnmae = \"x\"", 5, "nmae"),
    ("[[container]]\nmetadata = {}", 4, "name"),
    ("[[container]\n", 4, ""),
    (
        "[[container]]\nname = \"x\"\naccess = \"public\"",
        6,
        "access",
    ),
    (
        "[[container]]\nname = \"x\"\naccount = \"nobody\"",
        4,
        "nobody",
    ),
    (
        "[[container.blob]]\nname = \"b\"\nfile = \"missing\"",
        4,
        "missing",
    ),
    (
        "[[container.blob]]\nname = \"b\"\ntext = \"\"\nbase64 = \"\"",
        4,
        "one of",
    ),
    (
        "[[container.blob]]\nname = \"b\"\nbase64 = \"*\"",
        4,
        "base64",
    ),
    (
        "[[table]]\nname = \"t1x\"\n[[table.entity]]\nRowKey = \"r\"",
        6,
        "PartitionKey",
    ),
    ("[[queue]]\nname = \"q\"\nmessages = [1]", 6, "messages"),
    // Errors that only the service detects.
    ("[[container]]\nname = \"Photos\"", 4, "InvalidResourceName"),
    ("[[queue]]\nname = \"q\"", 4, "queue \"q\""),
    (
        "[[container.blob]]\nname = \"b\"\ntier = \"Tepid\"",
        4,
        "InvalidHeaderValue",
    ),
    (
        "[[container.blob]]\nname = \"b\"\nmetadata = { \"a b\" = \"c\" }",
        4,
        "header name",
    ),
    (
        "[[container.blob]]\nname = \"p\"\ntype = \"page\"\ntext = \"odd\"",
        4,
        "blob \"p\"",
    ),
    ("[[table]]\nname = \"1t\"", 4, "table \"1t\""),
    (
        "[[service]]\nname = \"queue\"\ndelete_retention_days = 7",
        4,
        "service queue",
    ),
];

/// The error names file, line and field, and nothing of the seed is created.
#[tokio::test]
async fn invalid_seed_names_line_and_field_and_changes_nothing() {
    let good = "[[container]]\nname = \"good\"\n\n";
    for (broken, line, named) in BROKEN {
        let dir = folder(&format!("{good}{broken}\n"));
        let client = Client::new();
        let error = client.emulator().plant(dir.path()).await.unwrap_err();
        let is_expected = matches!(error, SeedError::Invalid { .. } | SeedError::Refused { .. });
        let text = error.to_string();
        assert!(is_expected, "{broken}: {text}");
        let place = format!("seed.toml:{line}: ");
        assert!(
            text.contains(&place) && text.contains(named),
            "{broken}: {text}"
        );
        let gone = client.get("/good?restype=container").await;
        assert_eq!(gone.status, 404, "{broken}");
    }
    let missing = Client::new()
        .emulator()
        .plant(Path::new("no/such/seed.toml"))
        .await;
    assert!(matches!(missing, Err(SeedError::Io { .. })));
}
