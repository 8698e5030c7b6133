//! A new uncommitted block: shared code of Put Block and Put Block From URL.
//!
//! Sources: "Put Block", "Put Block From URL". They accept a lease id but no conditions.

use smalt_protocol::{ApiVersion, StorageError};

use super::guard::Guard;
use super::uncommitted::{self, Slot};
use super::written::Hashes;
use super::{headers, properties};
use crate::call::Call;
use crate::ops::lookup::BlobName;
use crate::reply::Reply;
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{Staged, Stamp, Transaction, View};

/// Blob, id and conditions of a new block.
pub struct NewBlock {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    id: Vec<u8>,
}

/// A stored block.
pub struct WrittenBlock {
    hashes: Hashes,
    encryption: Option<Encryption>,
}

impl NewBlock {
    /// Parses a request to put a block with this id.
    ///
    /// # Errors
    /// 400 for a malformed name or header.
    pub fn of(call: &Call, id: Vec<u8>) -> Result<Self, StorageError> {
        Ok(NewBlock {
            name: BlobName::of_write(call)?,
            guard: Guard::of_lease(call)?,
            encryption: headers::encryption(call)?,
            id,
        })
    }

    /// Checks whether the block may be put, and returns its slot.
    ///
    /// # Errors
    /// As [`uncommitted::check`].
    pub fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Slot, StorageError> {
        let (guard, encryption) = (&self.guard, &self.encryption);
        uncommitted::check(view, &self.name, guard, encryption, &self.id, stamp.now)
    }

    /// Stores the block.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(
        &self,
        slot: Slot,
        (staged, hashes): (Staged, Hashes),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<WrittenBlock, StorageError> {
        let block = uncommitted::block(tx, staged)?;
        let encryption = slot.encryption().cloned();
        uncommitted::keep(tx, &self.name, &self.id, slot, block, stamp)?;
        Ok(WrittenBlock { hashes, encryption })
    }
}

impl WrittenBlock {
    /// Returns the response of both operations.
    pub fn reply(&self, version: ApiVersion) -> Reply {
        let reply = self.hashes.answer(Reply::new(201), version);
        properties::encrypted(reply, self.encryption.as_ref(), version)
    }
}
