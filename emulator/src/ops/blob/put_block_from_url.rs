//! Put Block From URL: a block of a range of another blob.
//!
//! Source: "Put Block From URL".
//!
//! ```http
//! PUT /devstoreaccount1/events/copy.json?comp=block&blockid=MQ%3D%3D
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/events/2026/11/21.json?sv=...&sig=...
//! x-ms-source-range: bytes=0-9
//!
//! 201 Created
//! x-ms-content-crc64: 8R2aIe9T07E=
//! ```

use smalt_protocol::limits::{MIB, put_block_bytes_max};
use smalt_protocol::{ByteRange, StorageError};

use super::block_id;
use super::guard::Guard;
use super::headers::{self, BodyHashes};
use super::source::{Request, Source, SourceBytes, SourceUrl, Wanted};
use super::uncommitted::{self, Slot};
use super::written::{BlockWritten, Hashes};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::BlobName;
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::encryption::Requested;
use crate::store::{Stamp, Transaction, View};

/// What a block from a URL could always have, whatever the version. "Put Block From URL".
const BYTES_MAX_LEAST: u64 = 100 * MIB;

/// Put Block From URL.
pub struct PutBlockFromUrl {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    id: Vec<u8>,
    url: SourceUrl,
    range: Option<ByteRange>,
    conditions: Conditions,
    hashes: BodyHashes,
    bytes_max: u64,
    bytes: Option<SourceBytes>,
}

impl Write for PutBlockFromUrl {
    type Checked = Slot;
    type Output = BlockWritten;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let range = call.header("x-ms-source-range")?;
        Ok(PutBlockFromUrl {
            id: block_id::of(call)?,
            name: BlobName::of_write(call)?,
            guard: Guard::of_lease(call)?,
            encryption: headers::encryption(call)?,
            url: SourceUrl::of(call)?,
            range: ByteRange::of_source(range.filter(|range| !range.is_empty()))?,
            conditions: Conditions::of_source(&call.headers)?,
            hashes: BodyHashes::of_source(call)?,
            bytes_max: put_block_bytes_max(call.version).max(BYTES_MAX_LEAST),
            bytes: None,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(Request {
            url: self.url.clone(),
            wanted: Wanted::Range {
                conditions: self.conditions.clone(),
                range: self.range,
                most: self.bytes_max,
            },
        })
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        if let Some(bytes) = &source.bytes {
            self.hashes.check_hashes(bytes.md5, bytes.crc64)?;
        }
        self.bytes = source.bytes;
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Slot, StorageError> {
        let (guard, encryption) = (&self.guard, &self.encryption);
        uncommitted::check(view, &self.name, guard, encryption, &self.id, stamp.now)
    }

    fn apply(
        self,
        slot: Slot,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlockWritten, StorageError> {
        let missing = || StorageError::internal("a block is put without its source");
        let bytes = self.bytes.ok_or_else(missing)?;
        let block = uncommitted::block(tx, bytes.staged.ok_or_else(missing)?)?;
        let encryption = slot.encryption().cloned();
        uncommitted::keep(tx, &self.name, &self.id, slot, block, stamp)?;
        let hashes = Hashes {
            md5: bytes.md5,
            crc64: bytes.crc64,
            by_md5: self.hashes.md5.is_some(),
        };
        Ok(BlockWritten { hashes, encryption })
    }

    fn render(written: BlockWritten, call: &Call) -> Result<Reply, StorageError> {
        Ok(written.reply(call.version))
    }
}
