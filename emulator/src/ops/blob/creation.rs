//! A blob that a request makes: what Put Blob of each kind and Put Block List have in common.
//!
//! Sources: "Put Blob", "Put Block List". The order of checks is recorded.

use smalt_protocol::{ErrorCode, StorageError};

use super::guard::Guard;
use super::replace::{self, Marks, NewBlob};
use super::{headers, immutability};
use crate::call::Call;
use crate::ops::lookup::{BlobName, Place};
use crate::records::BlobRecord;
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{Stamp, Transaction, View};

/// The name that the blob is to have, and on what terms.
pub struct Creation {
    /// The name.
    pub name: BlobName,
    /// What protects the blob from its start.
    pub marks: Marks,
    /// What the blob is to be encrypted with.
    pub encryption: Requested,
    guard: Guard,
    may_overwrite: bool,
}

impl Creation {
    /// Reads a request.
    ///
    /// # Errors
    /// 400 for a name or headers that are not what they should be.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        Ok(Creation {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            may_overwrite: call.identity.may('w'),
            marks: immutability::marks(call)?,
        })
    }

    /// What stands under the name, if it may be replaced.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`; 403 `UnauthorizedBlobOverwrite` for who may only create; those of
    /// [`Guard::check_create`].
    pub fn check_place(&self, view: &dyn View, stamp: &Stamp) -> Result<Place, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        if place.blob.is_some() && !self.may_overwrite {
            return Err(ErrorCode::UnauthorizedBlobOverwrite.into());
        }
        self.guard.check_create(&place)?;
        Ok(place)
    }

    /// As [`Creation::check_place`], with what the blob will be encrypted with.
    ///
    /// # Errors
    /// As [`Creation::check_place`]; 403 and 409 of the encryption.
    pub fn check(
        &self,
        view: &dyn View,
        stamp: &Stamp,
    ) -> Result<(Place, Option<Encryption>), StorageError> {
        let place = self.check_place(view, stamp)?;
        let encryption = self.encryption.of_new(&place.container.encryption_scope)?;
        Ok((place, encryption))
    }
}

/// Puts the blob in its place; uncommitted blocks of the name go.
///
/// # Errors
/// The store's own.
pub fn make(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    place: &Place,
    new: NewBlob,
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    let blob = replace::replace(tx, name, place, new, stamp)?;
    replace::drop_uncommitted(tx, place.container.generation, &name.blob)?;
    Ok(blob)
}
