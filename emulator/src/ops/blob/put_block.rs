//! Put Block: a piece of a block blob that counts once a list commits it.
//!
//! Source: "Put Block". It changes neither the blob nor its tag; without a blob of that name it
//! makes an uncommitted one, which no read sees.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=block&blockid=MQ%3D%3D
//! Content-Length: 14
//!
//! 201 Created
//! x-ms-content-crc64: YeJLfssylmU=
//! ```

use smalt_protocol::StorageError;
use smalt_protocol::limits::put_block_bytes_max;

use super::block_id;
use super::guard::Guard;
use super::headers::{self, BodyHashes};
use super::uncommitted::{self, Slot};
use super::written::{BlockWritten, Hashes};
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::lookup::BlobName;
use crate::reply::Reply;
use crate::rules::encryption::Requested;
use crate::store::{Stamp, Transaction, View};

/// Put Block.
pub struct PutBlock {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    id: Vec<u8>,
    hashes: BodyHashes,
    bytes_max: u64,
    received: Option<Received>,
}

impl Write for PutBlock {
    type Checked = Slot;
    type Output = BlockWritten;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let id = block_id::of(call)?;
        if call.body_length == Some(0) {
            return Err(StorageError::invalid_header("Content-Length", "0"));
        }
        Ok(PutBlock {
            name: BlobName::of_write(call)?,
            guard: Guard::of_lease(call)?,
            encryption: headers::encryption(call)?,
            id,
            hashes: BodyHashes::of(call)?,
            bytes_max: put_block_bytes_max(call.version),
            received: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Payload {
            most: self.bytes_max,
        }
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.hashes.check(&received)?;
        self.received = Some(received);
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
        let received = self
            .received
            .ok_or_else(|| StorageError::internal("a block is put without its body"))?;
        let block = uncommitted::block(tx, received.staged)?;
        let encryption = slot.encryption().cloned();
        uncommitted::keep(tx, &self.name, &self.id, slot, block, stamp)?;
        let hashes = Hashes {
            md5: received.md5,
            crc64: received.crc64,
            by_md5: self.hashes.md5.is_some(),
        };
        Ok(BlockWritten { hashes, encryption })
    }

    fn render(written: BlockWritten, call: &Call) -> Result<Reply, StorageError> {
        Ok(written.reply(call.version))
    }
}
