//! Import.

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

/// Largest payload: no request of any version brings more.
const PAYLOAD_BYTES_MAX: u64 = 8 * GIB;
/// Largest document of the archive: settings of some thousand accounts.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Largest file of records: one record more than a file is closed at.
const RECORDS_BYTES_MAX: u64 = (2 * CHUNK_BYTES + VALUE_BYTES_MAX) as u64;

/// Goes on with the state that an [`export`](super::export) wrote, in place of the current one. It
/// blocks; others read and write the current state meanwhile, which goes with it.
///
/// # Errors
/// What is wrong with the stream, or that the store cannot write: then the state is as it was.
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

/// A payload of the archive.
enum Held {
    /// No record has named it yet.
    Fresh(Staged),
    /// It was taken under this id.
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
        // An export writes neither long names nor holes, and only with these do a few bytes of a
        // stream become many.
        for entry in archive.entries().map_err(damaged)?.raw(true) {
            let entry = entry.map_err(damaged)?;
            let path = entry.path().map_err(damaged)?;
            let name = path.to_str().ok_or_else(|| damaged("a name"))?.to_owned();
            drop(path);
            match (&manifest, name.as_str()) {
                (None, MANIFEST) => manifest = Some(check(entry)?),
                (None, _) => return Err(damaged(format!("it does not begin with {MANIFEST}"))),
                (Some(_), END) => {
                    self.end(&document(entry, END)?)?;
                    return manifest.ok_or_else(|| damaged("no manifest"));
                }
                (Some(_), name) => match name.strip_prefix(PAYLOADS) {
                    Some(hash) => self.payload(entry, hash)?,
                    None => self.records(entry, name)?,
                },
            }
        }
        Err(damaged(format!("it ends before {END}")))
    }

    fn payload<R: Read>(
        &mut self,
        mut entry: tar::Entry<'_, R>,
        name: &str,
    ) -> Result<(), ArchiveError> {
        let size = entry.size();
        if size > PAYLOAD_BYTES_MAX {
            return Err(damaged(format!("payload {name} has {size} bytes")));
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
            return Err(damaged(format!("payload {name} comes twice")));
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
            return Err(damaged(format!("a record of {} bytes", value.len())));
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
            _ => Err(damaged("a place of a payload")),
        }
    }

    fn named(&mut self, id: PayloadId, named: &[u8]) -> Result<(), ArchiveError> {
        let (hash, len) = named
            .split_first_chunk::<32>()
            .ok_or_else(|| damaged("a name of a payload"))?;
        let len = <[u8; 8]>::try_from(len).map(u64::from_be_bytes);
        let missing = || damaged(format!("payload {} is missing", hex(hash)));
        let held = self.payloads.get_mut(hash).ok_or_else(missing)?;
        match std::mem::replace(held, Held::Taken(id)) {
            Held::Fresh(staged) => {
                if len.ok() != Some(staged.len()) {
                    return Err(damaged(format!("payload {} has another length", hex(hash))));
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
            false => Err(damaged("its end tells of other records than it has")),
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
        return Err(damaged(format!("{name} has {size} bytes")));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    entry.read_to_end(&mut bytes).map_err(damaged)?;
    match bytes.len() as u64 == size {
        true => Ok(bytes),
        false => Err(damaged(format!("{name} ends early"))),
    }
}

fn take(rest: &mut Bytes, len: usize) -> Result<Bytes, ArchiveError> {
    match rest.len() < len {
        true => Err(damaged("a record is cut short")),
        false => Ok(rest.split_to(len)),
    }
}

fn length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |length, byte| length << 8 | usize::from(*byte))
}
