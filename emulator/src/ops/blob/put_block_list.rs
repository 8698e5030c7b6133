//! Put Block List: makes a block blob of existing blocks, committed or not.
//!
//! Source: "Put Block List". It is one commit, however long the list. Snapshots and an active lease
//! stay; uncommitted blocks that are not in the list are dropped; headers, metadata and tags that
//! are not in the request are cleared. The MD5 of the blob is stored as given, never calculated.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=blocklist
//!
//! <BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! x-ms-content-crc64: GFi/o1BSQtU=
//! ```

mod references;

use bytes::Bytes;
use md5::{Digest, Md5};
use smalt_protocol::limits::BLOCK_LIST_BODY_BYTES_MAX;
use smalt_protocol::xml::read_block_list;
use smalt_protocol::{Metadata, StorageError};

use super::content::blocks;
use super::creation::{self, Creation};
use super::headers::{self, BodyHashes};
use super::replace::NewBlob;
use super::{block_id, properties, retention, uncommitted, written};
use crate::call::Call;
use crate::keys;
use crate::operation::{Takes, Write};
use crate::ops::lookup::Place;
use crate::records::{Access, BlobKind, BlobRecord, CommittedBlock, ContentHeaders};
use crate::reply::Reply;
use crate::rules::block_list::{self, Chosen, Entry};
use crate::rules::encryption::Encryption;
use crate::store::{Stamp, Transaction, View};

/// The Put Block List operation.
pub struct PutBlockList {
    creation: Creation,
    headers: ContentHeaders,
    metadata: Metadata,
    tags: Vec<(String, String)>,
    tier: Option<String>,
    given: BodyHashes,
    entries: Vec<Entry>,
    hashes: Option<written::Hashes>,
}

/// The current blob, and the blocks of the new list.
pub struct Checked {
    place: Place,
    encryption: Option<Encryption>,
    chosen: Vec<Chosen>,
}

/// The new blob, and the hashes of the request's body.
pub struct Committed {
    blob: BlobRecord,
    hashes: Option<written::Hashes>,
}

impl Write for PutBlockList {
    type Checked = Checked;
    type Output = Committed;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let mut headers = headers::content_of_set(call)?.unwrap_or_default();
        headers
            .content_type
            .get_or_insert_with(|| headers::CONTENT_TYPE_DEFAULT.to_owned());
        Ok(PutBlockList {
            creation: Creation::of(call)?,
            headers,
            metadata: call.metadata()?,
            tags: headers::tags(call)?,
            tier: headers::block_blob_tier(call)?,
            given: BodyHashes::of(call)?,
            entries: Vec::new(),
            hashes: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(BLOCK_LIST_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        let md5: [u8; 16] = Md5::digest(&document).into();
        let crc64 = headers::crc64(&document);
        self.given.check_hashes(Some(md5), crc64)?;
        self.hashes = Some(written::Hashes {
            md5: Some(md5),
            crc64,
            // Recorded: an MD5 of the list is checked, but the response still has the CRC64.
            by_md5: false,
        });
        self.entries = read_block_list(&document)?
            .into_iter()
            .map(|entry| Ok((entry.source, block_id::of_entry(&entry.id)?)))
            .collect::<Result<_, StorageError>>()?;
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let place = self.creation.check_place(view, stamp)?;
        uncommitted::check_block_blob(&place)?;
        let generation = place.container.generation;
        let blob = &self.creation.name.blob;
        let new = uncommitted::read(view, generation, blob, stamp.now)?;
        let old = match &place.blob {
            Some(blob) => blocks::read(view, blob.content)?,
            None => Vec::new(),
        };
        let chosen = block_list::choose(&self.entries, &new, &old)?;
        let encryption = self.check_encryption(view, &place, stamp)?;
        Ok(Checked {
            place,
            encryption,
            chosen,
        })
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Committed, StorageError> {
        let Checked {
            mut place,
            encryption,
            chosen,
        } = checked;
        let generation = place.container.generation;
        let name = &self.creation.name;
        let dissolved = match &mut place.blob {
            Some(old) if !retention::keeps_replaced(tx, &name.container, old)? => {
                references::dissolve(tx, old)?
            }
            _ => Vec::new(),
        };
        let key = |id: &[u8]| keys::block(generation, &name.blob, id);
        references::take(tx, &chosen, &dissolved, key)?;
        let list: Vec<CommittedBlock> = chosen.into_iter().map(|chosen| chosen.block).collect();
        let new = NewBlob {
            kind: BlobKind::Block,
            length: list.iter().map(|block| block.length).sum(),
            content: blocks::write(tx, stamp.tick.ticks(), &list)?,
            headers: self.headers,
            metadata: self.metadata,
            tags: self.tags,
            access: Access::given(self.tier, stamp.now),
            copy: None,
            encryption,
            sequence_number: 0,
            marks: self.creation.marks,
        };
        let blob = creation::make(tx, name, &place, new, stamp)?;
        Ok(Committed {
            blob,
            hashes: self.hashes,
        })
    }

    fn render(committed: Committed, call: &Call) -> Result<Reply, StorageError> {
        let reply = Reply::new(201).version(committed.blob.etag, committed.blob.last_modified);
        let reply = match committed.hashes {
            Some(hashes) => hashes.answer(reply, call.version),
            None => reply,
        };
        Ok(properties::written(reply, &committed.blob, call.version))
    }
}

impl PutBlockList {
    /// Checks that the blocks, uncommitted or otherwise committed, have the encryption of the
    /// request.
    fn check_encryption(
        &self,
        view: &dyn View,
        place: &Place,
        stamp: &Stamp,
    ) -> Result<Option<Encryption>, StorageError> {
        let policy = &place.container.encryption_scope;
        let generation = place.container.generation;
        let (encryption, blob) = (&self.creation.encryption, &self.creation.name.blob);
        let blocks = uncommitted::record(view, generation, blob, stamp.now)?;
        let stored = match (&blocks, &place.blob) {
            (Some(blocks), _) => Some(blocks.encryption.as_ref()),
            (None, Some(blob)) => Some(blob.encryption.as_ref()),
            (None, None) => None,
        };
        if let Some(stored) = stored {
            encryption.check_write(stored, policy)?;
        }
        encryption.of_new(policy)
    }
}

#[cfg(test)]
mod tests;
