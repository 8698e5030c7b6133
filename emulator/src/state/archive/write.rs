//! Export to an archive.

use std::collections::HashSet;
use std::io::Write;

use sha2::{Digest as _, Sha256};

use super::{
    About, ArchiveError, BY_HASH, CHUNK_BYTES, END, End, FORMAT, Hash, MANIFEST, Manifest,
    PAYLOADS, RECORD_FILES, RECORDS, damaged, hash, hex,
};
use crate::core::Core;
use crate::store::{Entry, Payload, StoreResult, payload_key};

/// Writes a consistent state. Blocks until done, while other threads can read and write.
///
/// # Errors
/// Fails if the state cannot be read or the stream cannot be written.
pub fn export(core: &Core, to: impl Write) -> Result<(), ArchiveError> {
    let image = core.store.image()?;
    let mut archive = Archive {
        tar: tar::Builder::new(to),
        seen: HashSet::new(),
        chunk: Vec::with_capacity(CHUNK_BYTES),
        chunks: 0,
        records: 0,
        sum: Sha256::new(),
    };
    let manifest = Manifest {
        format: FORMAT,
        records: RECORDS,
        smalt: env!("CARGO_PKG_VERSION").to_owned(),
        about: About::of(core),
    };
    archive.file(MANIFEST, &json(&manifest)?)?;
    image.scan(|entry| match entry {
        Entry::Payload(id, payload) => {
            let mut value = vec![BY_HASH];
            match payload.inline() {
                // Encoded like the store's own value.
                Some(bytes) => value = [&[0], bytes.as_ref()].concat(),
                None => {
                    value.extend(archive.payload(&payload)?);
                    value.extend(payload.len().to_be_bytes());
                }
            }
            archive.record(&payload_key(id), &value)
        }
        Entry::Record(key, value) => archive.record(key, value),
    })?;
    archive.finish()
}

struct Archive<W: Write> {
    tar: tar::Builder<W>,
    seen: HashSet<Hash>,
    chunk: Vec<u8>,
    chunks: u64,
    records: u64,
    sum: Sha256,
}

impl<W: Write> Archive<W> {
    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let mut header = header(bytes.len() as u64);
        Ok(self.tar.append_data(&mut header, name, bytes)?)
    }

    /// Writes a payload unless the archive already contains it, and returns its hash.
    fn payload(&mut self, payload: &Payload) -> Result<Hash, ArchiveError> {
        let hash = hash_of(payload)?;
        if self.seen.insert(hash) {
            let name = format!("{PAYLOADS}{}", hex(&hash));
            let reader = Reader {
                reader: payload.reader(0..payload.len()),
                chunk: bytes::Bytes::new(),
            };
            let mut header = header(payload.len());
            self.tar.append_data(&mut header, name, reader)?;
        }
        Ok(hash)
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), ArchiveError> {
        for part in [key, value] {
            let length = u32::try_from(part.len()).map_err(damaged)?;
            self.chunk.extend(length.to_be_bytes());
        }
        self.chunk.extend_from_slice(key);
        self.chunk.extend_from_slice(value);
        self.records += 1;
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        let chunk = std::mem::take(&mut self.chunk);
        let hash = hash(&chunk);
        self.sum.update(hash);
        self.chunks += 1;
        self.file(
            &format!("{RECORD_FILES}{:08}-{}", self.chunks, hex(&hash)),
            &chunk,
        )
    }

    fn finish(mut self) -> Result<(), ArchiveError> {
        if !self.chunk.is_empty() {
            self.flush()?;
        }
        let end = End {
            payloads: self.seen.len() as u64,
            records: self.records,
            sha256: hex(&self.sum.clone().finalize().into()),
        };
        self.file(END, &json(&end)?)?;
        Ok(self.tar.into_inner()?.flush()?)
    }
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header
}

fn hash_of(payload: &Payload) -> StoreResult<Hash> {
    let mut sum = Sha256::new();
    let mut reader = payload.reader(0..payload.len());
    while let Some(chunk) = reader.next_chunk()? {
        sum.update(&chunk);
    }
    Ok(sum.finalize().into())
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, ArchiveError> {
    serde_json::to_vec_pretty(value).map_err(damaged)
}

/// Adapts a payload to [`std::io::Read`].
struct Reader {
    reader: crate::store::PayloadReader,
    chunk: bytes::Bytes,
}

impl std::io::Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.chunk.is_empty() {
            let next = self.reader.next_chunk().map_err(std::io::Error::other)?;
            self.chunk = next.unwrap_or_default();
        }
        let len = buffer.len().min(self.chunk.len());
        buffer[..len].copy_from_slice(&self.chunk.split_to(len));
        Ok(len)
    }
}
