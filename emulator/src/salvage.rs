//! `smalt salvage`: saves the readable data of a store that does not open, as plain files.
//!
//! ```text
//! manifest.json             what is here, and what was lost
//! blobs.jsonl               a line for each blob: its names, properties, metadata, tags, and file
//! blobs/<account>/<container>/<name>
//! queues/<account>/<queue>.jsonl    a line for each message
//! tables/<account>/<table>.jsonl    a line for each entity, as the Table service writes it
//! unnamed/<segment>-<offset>        payloads, when the metadata are lost and with them all names
//! ```
//!
//! Names are escaped, so that no file is written outside of the directory or over another one.

mod blobs;
mod entities;
mod messages;
mod out;
mod report;

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use self::out::{File, Out};
use crate::clock::Clock;
use crate::disk::Disk;
use crate::store::{Carved, Inspected, OpenError, Store};

pub use report::{Lost, Salvaged};

/// Why nothing, or not everything readable, was saved.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// There is no store, it is in use, or its files cannot be read.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The output cannot be written.
    #[error("cannot write to {path}: {error}; use a new or empty directory with enough space")]
    Out {
        /// The output directory.
        path: String,
        /// The cause.
        error: io::Error,
    },
}

/// Saves the readable data of the store in `dir` to the directory `to`, which must be new or empty.
/// Copies the metadata to `scratch` first.
///
/// # Errors
/// When there is no store, it is in use, or nothing can be written.
pub fn salvage(
    dir: &Path,
    to: &Path,
    scratch: &Path,
    disk: &Arc<dyn Disk>,
) -> Result<Salvaged, SalvageError> {
    let inspected = Inspected::open(dir, scratch, disk, Clock::system())?;
    let mut salvaged = Salvaged {
        format: 1,
        from: dir.display().to_string(),
        findings: inspected.findings.clone(),
        ..Salvaged::default()
    };
    let cannot = |error: io::Error| SalvageError::Out {
        path: to.display().to_string(),
        error,
    };
    let mut out = Out::new(disk, to).map_err(cannot)?;
    let saved = match &inspected.store {
        Some(store) => named(store, &mut out, &mut salvaged),
        None => unnamed(&inspected, &mut out, &mut salvaged),
    };
    saved.map_err(cannot)?;
    let manifest = serde_json::to_vec_pretty(&salvaged).map_err(io::Error::other);
    let written = manifest.and_then(|manifest| out.file(&[], "manifest.json")?.1.end(&manifest));
    written.map_err(cannot)?;
    Ok(salvaged)
}

fn named(store: &Store, out: &mut Out, salvaged: &mut Salvaged) -> io::Result<()> {
    blobs::save(store, out, salvaged)?;
    messages::save(store, out, salvaged)?;
    entities::save(store, out, salvaged)
}

/// Saves payloads that only their checksums identify, because the metadata cannot be read.
fn unnamed(inspected: &Inspected, out: &mut Out, salvaged: &mut Salvaged) -> io::Result<()> {
    let why = "the metadata cannot be read";
    let what = "names, metadata, messages, entities and blobs of up to 16 KiB";
    salvaged.lose(what.to_owned(), &why);
    let mut open: Option<(u64, u64, u64, String, File)> = None;
    inspected.carve(&mut |carved| {
        match carved {
            Carved::Lost { segment, at } => {
                let what = format!("some bytes of segment {segment} from {at} on");
                salvaged.lose(what, &"no checksum matches");
            }
            Carved::Bytes {
                segment,
                start,
                bytes,
            } => {
                if open
                    .as_ref()
                    .is_none_or(|open| (open.0, open.1) != (segment, start))
                {
                    salvaged.unnamed.extend(open.take().map(told));
                    let name = format!("{segment:08}-{start:010}");
                    let (path, file) = out.file(&["unnamed"], &name)?;
                    open = Some((segment, start, 0, path, file));
                }
                if let Some((_, _, length, _, file)) = &mut open {
                    file.write(bytes)?;
                    *length += bytes.len() as u64;
                }
            }
        }
        Ok(())
    })?;
    salvaged.unnamed.extend(open.take().map(told));
    Ok(())
}

fn told((segment, offset, length, file, _): (u64, u64, u64, String, File)) -> Value {
    json!({ "segment": segment, "offset": offset, "length": length, "file": file })
}

impl std::fmt::Display for Salvaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for finding in &self.findings {
            writeln!(f, "found: {finding}")?;
        }
        for Lost { what, why } in &self.lost {
            writeln!(f, "lost: {} ({})", what.escape_debug(), why.escape_debug())?;
        }
        write!(
            f,
            "saved from {}: {} blobs, {} messages, {} entities, {} unnamed payloads; {} lost",
            self.from,
            self.blobs,
            self.messages,
            self.entities,
            self.unnamed.len(),
            self.lost.len()
        )
    }
}
