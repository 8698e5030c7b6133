//! Who may go on: lease and conditions of a request, judged in Azure's order.
//!
//! The lease goes first: recordings answer `If-None-Match: *` on a leased blob with 412
//! `LeaseIdMissing`, not with 409 `BlobAlreadyExists`.

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};
use uuid::Uuid;

use super::headers;
use crate::call::Call;
use crate::ops::lookup::{Found, Place};
use crate::records::BlobRecord;
use crate::rules::conditions::{Conditions, Current};
use crate::rules::encryption::Requested;
use crate::rules::immutability::{self, Change};
use crate::rules::lease::{self, Leased};
use crate::rules::pending_copy;
use crate::rules::tier::ARCHIVE;

/// Since this version a lease id where there is no blob is refused. "Version 2013-08-15".
const LEASE_NEEDS_BLOB: ApiVersion = ApiVersion::V2013_08_15;

/// What a request demands of the blob that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    lease: Option<Uuid>,
    conditions: Conditions,
    version: ApiVersion,
    /// What is written over stays as a previous version.
    keeps_versions: bool,
}

impl Guard {
    /// Of a write.
    ///
    /// # Errors
    /// As [`Conditions::of_write`] and [`headers::lease_id`].
    pub fn of_write(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::of_write(&call.headers)?)
    }

    /// Of a read.
    ///
    /// # Errors
    /// As [`Conditions::of_read`] and [`headers::lease_id`].
    pub fn of_read(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::of_read(&call.headers, call.version)?)
    }

    /// Of Get and Set Blob Tags.
    ///
    /// # Errors
    /// As [`Conditions::of_tags`] and [`headers::lease_id`].
    pub fn of_tags(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::of_tags(&call.headers)?)
    }

    /// Of a write that takes no conditions.
    ///
    /// # Errors
    /// As [`headers::lease_id`].
    pub fn of_lease(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::default())
    }

    fn new(call: &Call, conditions: Conditions) -> Result<Self, StorageError> {
        // To ask about tags is to read them: "Manage and find Azure Blob data with blob index
        // tags".
        if conditions.asks_for_tags() && !call.identity.may('t') {
            return Err(ErrorCode::AuthorizationPermissionMismatch.into());
        }
        Ok(Guard {
            lease: headers::lease_id(call)?,
            conditions,
            version: call.version,
            keeps_versions: call.settings.versioning,
        })
    }

    /// Judges a write that makes the blob or replaces it.
    ///
    /// # Errors
    /// 412 of lease and conditions, 409 `BlobAlreadyExists`, `PendingCopyOperation`. What is
    /// archived, or on its way back, is replaced as recorded.
    pub fn check_create(&self, place: &Place) -> Result<(), StorageError> {
        self.check_lease(place)?;
        let blob = place.blob.as_ref();
        self.unless_leased(self.conditions.check_create(blob.map(Current::from)))?;
        blob.map_or(Ok(()), |blob| self.check_replaceable(blob))
    }

    /// Judges a copy onto what stands under a name: unmet conditions are the target's.
    ///
    /// # Errors
    /// As [`Guard::check_create`], but 412 `TargetConditionNotMet`; 409 `BlobArchived`.
    pub fn check_copy_target(&self, place: &Place) -> Result<(), StorageError> {
        self.check_lease(place)?;
        let blob = place.blob.as_ref();
        self.unless_leased(self.conditions.check_copy_target(blob.map(Current::from)))?;
        blob.map_or(Ok(()), check_online)?;
        blob.map_or(Ok(()), |blob| self.check_replaceable(blob))
    }

    /// A protected blob is replaced only where it stays as a previous version.
    fn check_replaceable(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        check_whole(blob)?;
        if self.keeps_versions || blob.version_id.is_some() {
            return Ok(());
        }
        check_removable(blob)
    }

    /// Recorded: who holds the lease of a blob replaces it under `If-None-Match: *` as well.
    fn unless_leased(&self, judged: Result<(), StorageError>) -> Result<(), StorageError> {
        match judged {
            Err(error) if error.code() == ErrorCode::BlobAlreadyExists && self.lease.is_some() => {
                Ok(())
            }
            judged => judged,
        }
    }

    /// Judges the lease of a write that may make the blob, and nothing else.
    ///
    /// # Errors
    /// 412 of the lease.
    pub fn check_lease(&self, place: &Place) -> Result<(), StorageError> {
        let blob = place.blob.as_ref();
        if blob.is_none() && self.version < LEASE_NEEDS_BLOB {
            return Ok(());
        }
        lease::check_create(blob.map(|blob| blob.lease), self.lease)
    }

    /// Judges a write to a blob that is there.
    ///
    /// # Errors
    /// 412 of lease and conditions.
    pub fn check_write(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        lease::check_write(Leased::Blob, blob.lease, self.lease)?;
        self.conditions.check_write(blob.into())
    }

    /// Judges an operation that leaves the blob as it is, but has the conditions of a write: a
    /// lease id need not be given.
    ///
    /// # Errors
    /// 412 of lease and conditions.
    pub fn check_use(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        lease::check_read(Leased::Blob, blob.lease, self.lease)?;
        self.conditions.check_write(blob.into())
    }

    /// Judges a read of a blob or, where `is_base` is not, of a snapshot: it has no lease.
    ///
    /// # Errors
    /// 412 of lease and conditions, 304 `ConditionNotMet`.
    pub fn check_read(&self, blob: &BlobRecord, is_base: bool) -> Result<(), StorageError> {
        if is_base {
            lease::check_read(Leased::Blob, blob.lease, self.lease)?;
        }
        self.conditions.check_read(blob.into())
    }

    /// Judges a write to a blob or, where `is_base` is not, to a snapshot or version: it has no
    /// lease.
    ///
    /// # Errors
    /// 412 of lease and conditions.
    pub fn check_write_to_part(
        &self,
        blob: &BlobRecord,
        is_base: bool,
    ) -> Result<(), StorageError> {
        if is_base {
            self.check_write(blob)
        } else {
            self.check_conditions(blob)
        }
    }

    /// Judges the conditions of a write only: of a snapshot, which has no lease.
    ///
    /// # Errors
    /// 412 `ConditionNotMet`.
    pub fn check_conditions(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        self.conditions.check_write(blob.into())
    }
}

/// Refuses to change what a pending copy is still writing, what is archived, and what incremental
/// copies alone may change.
///
/// # Errors
/// 409 `PendingCopyOperation`, 409 `BlobArchived`, 409 `OperationNotAllowedOnIncrementalCopyBlob`.
pub fn check_changeable(blob: &BlobRecord) -> Result<(), StorageError> {
    check_whole(blob)?;
    check_online(blob)
}

/// Refuses to touch what copies alone may change.
fn check_whole(blob: &BlobRecord) -> Result<(), StorageError> {
    if blob.incremental.is_some() {
        return Err(ErrorCode::OperationNotAllowedOnIncrementalCopyBlob.into());
    }
    check_settled(blob)
}

/// Refuses to touch what a pending copy is still writing.
///
/// # Errors
/// 409 `PendingCopyOperation`.
pub fn check_settled(blob: &BlobRecord) -> Result<(), StorageError> {
    if pending_copy::is_pending(blob) {
        return Err(ErrorCode::PendingCopyOperation.into());
    }
    Ok(())
}

/// As [`check_changeable`], for what changes bytes or metadata in place.
///
/// # Errors
/// As [`check_changeable`]; 409 `BlobImmutableDueToLegalHold`, `BlobImmutableDueToPolicy`.
pub fn check_rewritable(blob: &BlobRecord) -> Result<(), StorageError> {
    check_changeable(blob)?;
    immutability::judge(blob.protection, Change::InPlace)
}

/// Refuses to write with another key or scope than the blob is encrypted with, or than its
/// container allows.
///
/// # Errors
/// As [`Requested::check_write`].
pub fn check_encryption(requested: &Requested, found: &Found) -> Result<(), StorageError> {
    let stored = found.blob.encryption.as_ref();
    requested.check_write(stored, &found.container.encryption_scope)
}

/// Refuses to remove what a legal hold or a policy protects.
///
/// # Errors
/// 409 `BlobImmutableDueToLegalHold`, `BlobImmutableDueToPolicy`.
pub fn check_removable(blob: &BlobRecord) -> Result<(), StorageError> {
    immutability::judge(blob.protection, Change::Removal)
}

/// Refuses to touch the bytes of an archived blob.
///
/// # Errors
/// 409 `BlobArchived`; 409 `BlobBeingRehydrated` while it is on its way back.
pub fn check_online(blob: &BlobRecord) -> Result<(), StorageError> {
    if blob.access.rehydration.is_some() {
        return Err(ErrorCode::BlobBeingRehydrated.into());
    }
    match blob.access.tier.as_deref() {
        Some(ARCHIVE) => Err(ErrorCode::BlobArchived.into()),
        _ => Ok(()),
    }
}
