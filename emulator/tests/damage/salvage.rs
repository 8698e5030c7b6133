//! Which data is saved from which damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use smalt::disk::{Disk, SystemDisk};
use smalt::salvage::{Salvaged, salvage};

use super::world::{NAMES, files, filled, length, pattern, write};
use crate::support::ACCOUNT;

fn saved(dir: &Path, above: &Path) -> (Salvaged, BTreeMap<PathBuf, Vec<u8>>) {
    let scratch = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
    let salvaged = salvage(dir, &above.join("out"), scratch.path(), &disk).unwrap();
    let all = files(above);
    // No file is written outside the directory.
    assert!(
        all.keys().all(|path| path.starts_with("out")),
        "{:?}",
        all.keys()
    );
    let inside =
        |(path, bytes): (PathBuf, Vec<u8>)| (path.strip_prefix("out").unwrap().to_owned(), bytes);
    (salvaged, all.into_iter().map(inside).collect())
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the manifest line of a blob, and its bytes.
fn blob(out: &BTreeMap<PathBuf, Vec<u8>>, name: &str) -> (Value, Vec<u8>) {
    let mut all = lines(&out[Path::new("blobs.jsonl")]).into_iter();
    let line = all.find(|line| line["name"] == name && line["kind"] == "blob");
    let line = line.unwrap();
    let bytes = out[Path::new(line["file"].as_str().unwrap())].clone();
    (line, bytes)
}

fn assert_all(salvaged: &Salvaged, out: &BTreeMap<PathBuf, Vec<u8>>) {
    assert!(salvaged.lost.is_empty(), "{salvaged}");
    assert_eq!(
        (salvaged.blobs, salvaged.messages, salvaged.entities),
        (9, 5, 5)
    );
    for (n, name) in NAMES.iter().enumerate() {
        let (line, bytes) = blob(out, name);
        assert!(bytes == pattern(n, length(n)), "{name}");
        assert_eq!(line["metadata"]["n"], "1");
        assert_eq!(
            (&line["tags"]["k"], &line["container"]),
            (&"v".into(), &"box".into())
        );
    }
    let mut page = vec![0; 1 << 20];
    page[512..20_992].copy_from_slice(&pattern(9, 20_480));
    assert!(blob(out, "page").1 == page);
    assert!(blob(out, "list").1 == pattern(7, 50_000));
    let messages = lines(&out[&PathBuf::from(format!("queues/{ACCOUNT}/que.jsonl"))]);
    let texts: Vec<_> = messages
        .iter()
        .map(|m| m["text"].as_str().unwrap().len())
        .collect();
    assert_eq!(texts, [1, 9_001, 18_001, 27_001, 36_001]);
    let entities = lines(&out[&PathBuf::from(format!("tables/{ACCOUNT}/tab.jsonl"))]);
    let texts: Vec<_> = entities
        .iter()
        .map(|e| e["text"].as_str().unwrap().len())
        .collect();
    assert_eq!(texts, [0, 8_000, 16_000, 24_000, 32_000]);
    assert_eq!(entities[3]["RowKey"], "3");
}

/// An intact store and one without `format` are saved completely, whatever the blobs' names.
#[tokio::test]
async fn readable_stores_are_saved_completely() {
    for lost in [None, Some("format"), Some("lock")] {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path()).await;
        if let Some(lost) = lost {
            SystemDisk.remove(&dir.path().join(lost)).unwrap();
        }
        let before = files(dir.path());
        let above = tempfile::tempdir().unwrap();
        let (salvaged, out) = saved(dir.path(), above.path());
        assert_all(&salvaged, &out);
        assert_eq!(salvaged.findings.len(), usize::from(lost == Some("format")));
        assert!(files(dir.path()) == before);
        let again: Value = serde_json::from_slice(&out[Path::new("manifest.json")]).unwrap();
        assert_eq!(again["blobs"], 9);
    }
}

/// A damaged frame loses its own bytes, which the manifest names, and affects no other blob.
#[tokio::test]
async fn damage_is_reported_and_the_rest_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let mut damaged = files(dir.path());
    // "CON" has 150,000 bytes; one in its middle is changed.
    let part = &pattern(3, length(3))[70_000..70_100];
    let (_, bytes) = damaged
        .iter_mut()
        .find(|(_, bytes)| bytes.windows(part.len()).any(|window| window == part))
        .unwrap();
    let at = bytes
        .windows(part.len())
        .position(|window| window == part)
        .unwrap();
    bytes[at] ^= 1;
    let copy = tempfile::tempdir().unwrap();
    write(copy.path(), &damaged);
    let above = tempfile::tempdir().unwrap();
    let (salvaged, out) = saved(copy.path(), above.path());
    assert_eq!(salvaged.lost.len(), 1, "{salvaged}");
    assert!(salvaged.lost[0].what.contains("box/CON"), "{salvaged}");
    let (line, bytes) = blob(&out, "CON");
    assert_eq!(line["damaged"], serde_json::json!([[65_536, 131_072]]));
    let mut expected = pattern(3, length(3));
    expected[65_536..131_072].fill(0);
    assert!(bytes == expected);
    assert!(blob(&out, "a/b/c").1 == pattern(2, length(2)));
}

/// Without metadata there are no names; payloads are recognised by their checksums.
#[tokio::test]
async fn payloads_without_metadata_are_saved_without_names() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    SystemDisk.remove_dir(&dir.path().join("sled-1")).unwrap();
    let above = tempfile::tempdir().unwrap();
    let (salvaged, out) = saved(dir.path(), above.path());
    assert!(salvaged.lost[0].what.contains("names"), "{salvaged}");
    for (n, _) in NAMES
        .iter()
        .enumerate()
        .filter(|(n, _)| length(*n) > 16 * 1024)
    {
        let is_there = out.values().any(|bytes| *bytes == pattern(n, length(n)));
        assert!(is_there, "{n} of {:?}", out.keys());
    }
}

/// Existing files are never overwritten.
#[tokio::test]
async fn salvage_writes_to_an_empty_directory_only() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
    let scratch = tempfile::tempdir().unwrap();
    let refused = salvage(dir.path(), dir.path(), scratch.path(), &disk).unwrap_err();
    assert!(refused.to_string().contains("not empty"), "{refused}");
}
