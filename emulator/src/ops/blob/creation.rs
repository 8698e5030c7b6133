//! Creation of a blob: shared code of Put Blob of each kind and Put Block List.
//!
//! Sources: "Put Blob", "Put Block List". The order of checks is recorded.

use smalt_protocol::{ErrorCode, StorageError};

use super::guard::Guard;
use super::replace::{self, Marks, NewBlob};
use super::{headers, immutability, removal};
use crate::call::Call;
use crate::ops::lookup::{BlobName, Place};
use crate::records::BlobRecord;
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{Stamp, Transaction, View};

/// Name and conditions of the blob to create.
pub struct Creation {
    /// The name of the blob.
    pub name: BlobName,
    /// Immutability policy and legal hold of the new blob.
    pub marks: Marks,
    /// The encryption that the request asks for.
    pub encryption: Requested,
    guard: Guard,
    may_overwrite: bool,
}

impl Creation {
    /// Parses a request.
    ///
    /// # Errors
    /// 400 for a malformed name or header.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        Ok(Creation {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            may_overwrite: call.identity.may('w'),
            marks: immutability::marks(call)?,
        })
    }

    /// Returns the current blob of this name, if it may be replaced.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`; 403 `UnauthorizedBlobOverwrite` for callers that may only create;
    /// those of [`Guard::check_create`].
    pub fn check_place(&self, view: &dyn View, stamp: &Stamp) -> Result<Place, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        if place.blob.is_some() && !self.may_overwrite {
            return Err(ErrorCode::UnauthorizedBlobOverwrite.into());
        }
        self.guard.check_create(&place)?;
        Ok(place)
    }

    /// Checks as [`Creation::check_place`] does, and returns the encryption of the new blob as
    /// well.
    ///
    /// # Errors
    /// As [`Creation::check_place`]; 403 and 409 for a different encryption.
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

/// Writes the blob and drops uncommitted blocks of its name.
///
/// # Errors
/// When the store fails.
pub fn make(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    place: &Place,
    new: NewBlob,
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    let blob = replace::replace(tx, name, place, new, stamp)?;
    removal::drop_uncommitted(tx, place.container.generation, &name.blob)?;
    Ok(blob)
}
