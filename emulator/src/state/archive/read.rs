//! Import of an archive.

use std::collections::HashMap;
use std::io::Read;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use smalt_protocol::Timestamp;
use smalt_protocol::limits::GIB;

use super::{
    About, ArchiveError, BY_HASH, CHUNK_BYTES, END, End, FORMAT, Hash, Imported, MANIFEST,
    Manifest, PAYLOADS, RECORD_FILES, RECORDS, damaged, hash, hex,
};
use crate::core::Core;
use crate::store::{
    INLINE_BYTES_MAX, PayloadId, Staged, StoreError, Successor, VALUE_BYTES_MAX, payload_of_key,
};
use crate::{check, keys};

/// Maximum size of a payload; no request of any version is larger.
const PAYLOAD_BYTES_MAX: u64 = 8 * GIB;
/// Maximum size of a document, enough for the settings of some thousand accounts.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum size of a file of records, which may exceed the usual size by one record.
const RECORDS_BYTES_MAX: u64 = (2 * CHUNK_BYTES + VALUE_BYTES_MAX) as u64;

/// Replaces the current state by the one that [`export`](super::export) wrote. Blocks until done.
/// The current state stays in use until then and is discarded with all changes made meanwhile.
///
/// # Errors
/// Fails if the stream is invalid or the store cannot write; the state is then unchanged.
pub fn import(core: &Core, from: impl Read) -> Result<Imported, ArchiveError> {
    let mut archive = tar::Archive::new(from);
    let replaced = core.store.replace(|successor| {
        let mut import = Import {
            core,
            successor,
            payloads: HashMap::new(),
            chunks: 0,
            done: Imported::default(),
            sum: Sha256::new(),
        };
        let manifest = import.read(&mut archive)?;
        match check::first(import.successor)? {
            Some(finding) => Err(damaged(finding.what)),
            None => Ok((import.done, manifest)),
        }
    });
    let (imported, manifest) = replaced.map_err(|error| match error {
        ArchiveError::Store(StoreError::Corrupt(what)) => damaged(what),
        other => other,
    })?;
    manifest.about.restore(core);
    Ok(imported)
}

enum Held {
    /// No record has referred to it yet.
    Fresh(Staged),
    /// It is stored under this id.
    Taken(PayloadId),
}

struct Import<'a, 'b> {
    core: &'a Core,
    successor: &'a mut Successor<'b>,
    payloads: HashMap<Hash, Held>,
    chunks: u64,
    done: Imported,
    sum: Sha256,
}

impl Import<'_, '_> {
    fn read<R: Read>(&mut self, archive: &mut tar::Archive<R>) -> Result<Manifest, ArchiveError> {
        let mut manifest: Option<Manifest> = None;
        // Exports use neither long names nor sparse files; only with these could a short stream
        // expand to a large one.
        for entry in archive.entries().map_err(damaged)?.raw(true) {
            let entry = entry.map_err(damaged)?;
            let path = entry.path().map_err(damaged)?;
            let name = path
                .to_str()
                .ok_or_else(|| damaged("a file name is not Unicode"))?
                .to_owned();
            drop(path);
            match (&manifest, name.as_str()) {
                (None, MANIFEST) => manifest = Some(check(entry)?),
                (None, _) => return Err(damaged(format!("the first file is not {MANIFEST}"))),
                (Some(_), END) => {
                    self.end(&document(entry, END)?)?;
                    return manifest.ok_or_else(|| damaged("the manifest is missing"));
                }
                (Some(_), name) => match name.strip_prefix(PAYLOADS) {
                    Some(hash) => self.payload(entry, hash)?,
                    None => self.records(entry, name)?,
                },
            }
        }
        Err(damaged(format!("{END} is missing")))
    }

    fn payload<R: Read>(
        &mut self,
        mut entry: tar::Entry<'_, R>,
        name: &str,
    ) -> Result<(), ArchiveError> {
        let size = entry.size();
        if size > PAYLOAD_BYTES_MAX {
            return Err(damaged(format!(
                "payload {name} is too large: {size} bytes"
            )));
        }
        let mut writer = self.successor.stage(size)?;
        let mut sum = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = entry.read(&mut buffer).map_err(damaged)?;
            if read == 0 {
                break;
            }
            sum.update(&buffer[..read]);
            writer.write(&buffer[..read])?;
        }
        let found: Hash = sum.finalize().into();
        if hex(&found) != name {
            return Err(damaged(format!("payload {name} has hash {}", hex(&found))));
        }
        let staged = writer.end().map_err(damaged)?;
        if self.payloads.insert(found, Held::Fresh(staged)).is_some() {
            return Err(damaged(format!("duplicate payload {name}")));
        }
        self.done.payloads += 1;
        Ok(())
    }

    fn records<R: Read>(
        &mut self,
        entry: tar::Entry<'_, R>,
        name: &str,
    ) -> Result<(), ArchiveError> {
        let unknown = || damaged(format!("unknown file {name}"));
        let (number, named) = name
            .strip_prefix(RECORD_FILES)
            .and_then(|rest| rest.split_once('-'))
            .ok_or_else(unknown)?;
        self.chunks += 1;
        if number.parse() != Ok(self.chunks) {
            return Err(damaged(format!("{name} is not the next file of records")));
        }
        let bytes = Bytes::from(whole(entry, RECORDS_BYTES_MAX, name)?);
        let found = hash(&bytes);
        if hex(&found) != named {
            return Err(damaged(format!("{name} has hash {}", hex(&found))));
        }
        self.sum.update(found);
        let mut rest = bytes;
        while !rest.is_empty() {
            let lengths = take(&mut rest, 8)?;
            let (key, value) = lengths.split_at(4);
            let (key, value) = (length(key), length(value));
            let key = take(&mut rest, key)?;
            let value = take(&mut rest, value)?;
            self.record(&key, value)?;
            self.done.records += 1;
        }
        Ok(())
    }

    fn record(&mut self, key: &[u8], value: Bytes) -> Result<(), ArchiveError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(damaged(format!(
                "a record is too large: {} bytes",
                value.len()
            )));
        }
        if let Some(account) = keys::account(key)
            && self.core.config.account(&account).is_none()
        {
            return Err(ArchiveError::Account(account.into_owned()));
        }
        let Some(id) = payload_of_key(key) else {
            return Ok(self.successor.record(key, value)?);
        };
        match value.split_first() {
            Some((0, bytes)) if bytes.len() <= INLINE_BYTES_MAX => {
                let staged = Staged::inline(value.slice_ref(bytes))?;
                Ok(self.successor.staged(id, staged)?)
            }
            Some((&BY_HASH, named)) => self.named(id, named),
            _ => Err(damaged("invalid location of a payload")),
        }
    }

    fn named(&mut self, id: PayloadId, named: &[u8]) -> Result<(), ArchiveError> {
        let (hash, len) = named
            .split_first_chunk::<32>()
            .ok_or_else(|| damaged("invalid hash of a payload"))?;
        let len = <[u8; 8]>::try_from(len).map(u64::from_be_bytes);
        let missing = || damaged(format!("payload {} is missing", hex(hash)));
        let held = self.payloads.get_mut(hash).ok_or_else(missing)?;
        match std::mem::replace(held, Held::Taken(id)) {
            Held::Fresh(staged) => {
                if len.ok() != Some(staged.len()) {
                    return Err(damaged(format!(
                        "payload {} has the wrong length",
                        hex(hash)
                    )));
                }
                self.successor.staged(id, staged)?;
            }
            Held::Taken(first) => self.successor.duplicate(id, first)?,
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), ArchiveError> {
        let found = End {
            payloads: self.done.payloads,
            records: self.done.records,
            sha256: hex(&self.sum.clone().finalize().into()),
        };
        match found == *end {
            true => Ok(()),
            false => Err(damaged("the contents do not match end.json")),
        }
    }
}

fn check<R: Read>(entry: tar::Entry<'_, R>) -> Result<Manifest, ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Versions {
        format: u32,
        records: u32,
    }
    let bytes = whole(entry, DOCUMENT_BYTES_MAX, MANIFEST)?;
    let Versions { format, records } = parse(&bytes, MANIFEST)?;
    if (format, records) != (FORMAT, RECORDS) {
        return Err(ArchiveError::Version { format, records });
    }
    let manifest: Manifest = parse(&bytes, MANIFEST)?;
    let About { accounts, now, .. } = &manifest.about;
    if Timestamp::parse_iso(now).is_none() {
        return Err(damaged(format!("{MANIFEST}: now: {now:?} is not a time")));
    }
    for settings in accounts.values() {
        settings.validate().map_err(damaged)?;
    }
    Ok(manifest)
}

fn document<T: DeserializeOwned, R: Read>(
    entry: tar::Entry<'_, R>,
    name: &str,
) -> Result<T, ArchiveError> {
    parse(&whole(entry, DOCUMENT_BYTES_MAX, name)?, name)
}

fn parse<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T, ArchiveError> {
    serde_json::from_slice(bytes).map_err(|error| damaged(format!("{name}: {error}")))
}

fn whole<R: Read>(
    mut entry: tar::Entry<'_, R>,
    most: u64,
    name: &str,
) -> Result<Vec<u8>, ArchiveError> {
    let size = entry.size();
    if size > most {
        return Err(damaged(format!("{name} is too large: {size} bytes")));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    entry.read_to_end(&mut bytes).map_err(damaged)?;
    match bytes.len() as u64 == size {
        true => Ok(bytes),
        false => Err(damaged(format!("{name} is truncated"))),
    }
}

fn take(rest: &mut Bytes, len: usize) -> Result<Bytes, ArchiveError> {
    match rest.len() < len {
        true => Err(damaged("a record is truncated")),
        false => Ok(rest.split_to(len)),
    }
}

fn length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte))
}
