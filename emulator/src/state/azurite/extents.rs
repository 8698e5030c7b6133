//! Azurite's extent files, each of which contains many chunks.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::AzuriteError;
use crate::disk::{Disk, DiskFile};
use crate::store::{self, PayloadId, Successor};

/// Id of a chunk of zeros that no file contains.
const ZEROS: &str = "*ZERO*";
const BUFFER_BYTES: u64 = 64 * 1024;

/// A range of bytes in an extent file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Chunk {
    id: String,
    offset: u64,
    /// Length in bytes.
    pub(super) count: u64,
}

impl Chunk {
    /// Returns `true` for zeros that no file contains.
    pub(super) fn is_zeros(&self) -> bool {
        self.id == ZEROS
    }
}

/// The open extent files of a service.
pub(super) struct Extents {
    files: BTreeMap<String, (PathBuf, Arc<dyn DiskFile>)>,
    /// Payloads of chunks that were already imported; snapshots share those of their blobs.
    taken: HashMap<Chunk, PayloadId>,
}

impl Extents {
    /// Opens every file that the chunks refer to, and records those that are missing or too short.
    pub(super) fn open(
        disk: &dyn Disk,
        dir: &Path,
        chunks: &mut dyn Iterator<Item = &Chunk>,
        missing: &mut Vec<PathBuf>,
    ) -> Result<Self, AzuriteError> {
        let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
        for chunk in chunks.filter(|chunk| chunk.count > 0 && !chunk.is_zeros()) {
            let end = ends.entry(&chunk.id).or_default();
            *end = (*end).max(chunk.offset.saturating_add(chunk.count));
        }
        let mut files = BTreeMap::new();
        for (id, end) in ends {
            let path = dir.join(id);
            // Accepts plain names only, since a path could lead elsewhere, where even opening a
            // file may block forever.
            let is_name = path.parent() == Some(dir) && !id.contains(['/', '\\']);
            let opened = match is_name {
                true => disk.open_to_read(&path),
                false => Err(std::io::ErrorKind::NotFound.into()),
            };
            let opened = opened.and_then(|file| file.len().map(|len| (file, len)));
            match opened {
                Ok((file, len)) if len >= end => {
                    files.insert(id.to_owned(), (path, file));
                }
                Ok(_) => missing.push(path),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push(path),
                Err(error) => return Err(AzuriteError::Io { file: path, error }),
            }
        }
        Ok(Extents {
            files,
            taken: HashMap::new(),
        })
    }

    /// Imports a chunk and adds one reference to its payload; `None` if it is empty.
    pub(super) fn take(
        &mut self,
        chunk: &Chunk,
        to: &mut Successor<'_>,
    ) -> Result<Option<PayloadId>, AzuriteError> {
        if chunk.count == 0 {
            return Ok(None);
        }
        if let Some(id) = self.taken.get(chunk).copied() {
            to.transact(|tx| store::retain(tx, id))?;
            return Ok(Some(id));
        }
        // Check before space is reserved.
        self.file(chunk)?;
        let mut writer = to.stage(chunk.count)?;
        self.read(chunk, |bytes| Ok(writer.write(bytes)?))?;
        let staged = writer.end()?;
        let id = to.transact(|tx| store::adopt(tx, staged))?;
        self.taken.insert(chunk.clone(), id);
        Ok(Some(id))
    }

    /// Reads a chunk that is known to be small.
    pub(super) fn bytes(&self, chunk: &Chunk) -> Result<Vec<u8>, AzuriteError> {
        let mut all = Vec::new();
        self.read(chunk, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(all)
    }

    fn file(&self, chunk: &Chunk) -> Result<&(PathBuf, Arc<dyn DiskFile>), AzuriteError> {
        let file = self.files.get(&chunk.id);
        file.ok_or_else(|| AzuriteError::Missing(vec![PathBuf::from(&chunk.id)]))
    }

    fn read(
        &self,
        chunk: &Chunk,
        mut visit: impl FnMut(&[u8]) -> Result<(), AzuriteError>,
    ) -> Result<(), AzuriteError> {
        if chunk.count == 0 {
            return Ok(());
        }
        let (path, file) = self.file(chunk)?;
        let mut buffer = vec![0; chunk.count.min(BUFFER_BYTES) as usize];
        let (mut at, end) = (chunk.offset, chunk.offset + chunk.count);
        while at < end {
            let next = &mut buffer[..(end - at).min(BUFFER_BYTES) as usize];
            file.read_at(next, at).map_err(|error| AzuriteError::Io {
                file: path.clone(),
                error,
            })?;
            visit(next)?;
            at += next.len() as u64;
        }
        Ok(())
    }
}
