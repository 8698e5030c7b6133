//! Saves blobs, snapshots and versions: their bytes as files, everything else as JSON lines.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use serde_json::{Value, json};
use smalt_protocol::Timestamp;

use super::Salvaged;
use super::out::{File, Out};
use crate::keys::{self, Generation, Kind};
use crate::ops::blob::content::locate;
use crate::records::{BlobContent, BlobRecord, ContainerRecord, Record};
use crate::store::{Store, StoreResult};

/// Bytes that are read at once; a damaged byte loses all of them.
const STEP_BYTES: u64 = 64 * 1024;
/// The same for page blobs, which may be long and mostly empty.
const PAGES_STEP_BYTES: u64 = 4 * 1024 * 1024;
const KINDS: [(Kind, &str); 4] = [
    (Kind::Blob, "blob"),
    (Kind::Snapshot, "snapshot"),
    (Kind::Version, "version"),
    (Kind::DeletedBlob, "deleted"),
];

/// Account and container of each generation.
type Owners = BTreeMap<Generation, (String, String)>;

pub(super) type Entry = (Vec<u8>, Bytes);

pub(super) fn all_of(store: &Store, kind: Kind) -> StoreResult<Vec<Entry>> {
    let from = keys::all_of(kind);
    let mut found = Vec::new();
    store.read(|view| {
        view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
            found.push((key.to_vec(), value.clone()));
            ControlFlow::Continue(())
        })
    })?;
    Ok(found)
}

/// Returns the generations that wait for removal; their contents need not be saved.
pub(super) fn garbage(store: &Store) -> StoreResult<BTreeSet<Generation>> {
    let all = all_of(store, Kind::Garbage)?;
    Ok(all.iter().map(|(key, _)| keys::generation(key)).collect())
}

/// Returns account and name to use for a generation whose owner is unknown.
pub(super) fn unknown(generation: Generation) -> (String, String) {
    ("unknown".to_owned(), generation.to_string())
}

/// Returns all records of a kind. If they cannot be read, reports the loss and returns none.
pub(super) fn entries(store: &Store, kind: Kind, salvaged: &mut Salvaged) -> Vec<Entry> {
    match all_of(store, kind) {
        Ok(found) => found,
        Err(error) => {
            salvaged.lose(format!("records of the kind {kind:?}"), &error);
            Vec::new()
        }
    }
}

pub(super) fn save(store: &Store, out: &mut Out, salvaged: &mut Salvaged) -> io::Result<()> {
    let owners = containers(store, salvaged);
    let garbage = garbage(store).unwrap_or_default();
    let (_, mut lines) = out.file(&[], "blobs.jsonl")?;
    for (kind, kind_name) in KINDS {
        for (key, value) in entries(store, kind, salvaged) {
            let generation = keys::generation(&key);
            if garbage.contains(&generation) {
                continue;
            }
            let owner = owners.get(&generation).cloned();
            let (account, container) = owner.unwrap_or_else(|| unknown(generation));
            let (name, at) = match kind {
                Kind::Snapshot | Kind::Version => {
                    let (name, at) = keys::snapshot_name(&key);
                    (name, Some(at))
                }
                Kind::DeletedBlob => keys::deleted_name(&key),
                _ => (keys::blob_name(&key), None),
            };
            let what = format!("{kind_name} {account}/{container}/{name}");
            let blob = match BlobRecord::decode(&value) {
                Ok(blob) => blob,
                Err(error) => {
                    salvaged.lose(what, &error);
                    continue;
                }
            };
            let folders = ["blobs", &account, &container];
            let told = at.map_or(name.clone(), |at| format!("{name}@{}", at.iso_ticks()));
            let (path, file) = out.file(&folders, &told)?;
            let damaged = bytes(store, &blob, file)?;
            if let Some((_, why)) = damaged.first() {
                salvaged.lose(format!("some bytes of {what}"), why);
            }
            let ranges = damaged
                .iter()
                .map(|(range, _)| json!([range.start, range.end]));
            let mut line = properties(&blob);
            let places = json!({
                "account": account, "container": container, "name": name, "kind": kind_name,
                "at": at.map(Timestamp::iso_ticks), "file": path,
                "damaged": ranges.collect::<Vec<_>>(),
            });
            if let (Value::Object(line), Value::Object(places)) = (&mut line, places) {
                line.extend(places);
            }
            lines.line(&line)?;
            salvaged.blobs += 1;
        }
    }
    lines.end(&[])
}

fn containers(store: &Store, salvaged: &mut Salvaged) -> Owners {
    let mut owners = Owners::new();
    for kind in [Kind::Container, Kind::DeletedContainer] {
        for (key, value) in entries(store, kind, salvaged) {
            let (account, name) = keys::owner(&key);
            match ContainerRecord::decode(&value) {
                Ok(container) => {
                    salvaged.containers.push(json!({
                        "account": account, "name": name,
                        "deleted": container.deleted_at.is_some(),
                        "metadata": container.metadata.iter().collect::<BTreeMap<_, _>>(),
                    }));
                    owners.insert(container.generation, (account, name));
                }
                Err(error) => salvaged.lose(format!("container {account}/{name}"), &error),
            }
        }
    }
    owners
}

/// Writes the bytes of a blob, with zeros where they cannot be read. Returns the damaged ranges
/// with the errors.
fn bytes(
    store: &Store,
    blob: &BlobRecord,
    mut file: File,
) -> io::Result<Vec<(Range<u64>, String)>> {
    let mut damaged: Vec<(Range<u64>, String)> = Vec::new();
    let step = match blob.content {
        BlobContent::Pages { .. } | BlobContent::Empty => PAGES_STEP_BYTES,
        _ => STEP_BYTES,
    };
    let mut at = 0;
    while at < blob.length {
        let range = at..blob.length.min(at + step);
        let found = store.read(|view| locate(view, blob.content, range.clone()));
        match found.and_then(|found| found.read_all(store)) {
            Ok(bytes) => file.write(&bytes)?,
            Err(error) => {
                file.write(&vec![0; (range.end - range.start) as usize])?;
                match damaged.last_mut() {
                    Some((last, _)) if last.end == range.start => last.end = range.end,
                    _ => damaged.push((range.clone(), error.to_string())),
                }
            }
        }
        at = range.end;
    }
    file.end(&[])?;
    Ok(damaged)
}

fn properties(blob: &BlobRecord) -> Value {
    let headers = &blob.headers;
    json!({
        "type": blob.kind.as_str(),
        "length": blob.length,
        "etag": blob.etag.to_string(),
        "created": blob.created.iso_ticks(),
        "last_modified": blob.last_modified.iso_ticks(),
        "content_type": headers.content_type,
        "content_encoding": headers.content_encoding,
        "content_language": headers.content_language,
        "content_md5": headers.content_md5,
        "cache_control": headers.cache_control,
        "content_disposition": headers.content_disposition,
        "tier": blob.access.tier,
        "metadata": blob.metadata.iter().collect::<BTreeMap<_, _>>(),
        "tags": blob.tags.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}
