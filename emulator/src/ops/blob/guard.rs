//! Checks the lease and the conditions of a request, in Azure's order.
//!
//! The lease comes first: recordings answer `If-None-Match: *` on a leased blob with 412
//! `LeaseIdMissing`, not with 409 `BlobAlreadyExists`.

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};
use uuid::Uuid;

use super::headers;
use crate::call::Call;
use crate::ops::lookup::{Found, Place};
use crate::ops::tree;
use crate::records::BlobRecord;
use crate::rules::conditions::{Conditions, Current};
use crate::rules::encryption::Requested;
use crate::rules::immutability::{self, Change};
use crate::rules::lease::{self, Leased};
use crate::rules::pending_copy;
use crate::rules::tier::ARCHIVE;

/// Since this version, a lease id for a missing blob is an error. "Version 2013-08-15".
const LEASE_NEEDS_BLOB: ApiVersion = ApiVersion::V2013_08_15;

/// Lease id and conditions of a request on a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    lease: Option<Uuid>,
    conditions: Conditions,
    version: ApiVersion,
    /// Whether the account keeps versions, so that an overwritten blob is not lost.
    keeps_versions: bool,
}

impl Guard {
    /// Parses the guard of a write.
    ///
    /// # Errors
    /// As [`Conditions::of_write`] and [`headers::lease_id`].
    pub fn of_write(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::of_write(&call.headers)?)
    }

    /// Parses the guard of a read.
    ///
    /// # Errors
    /// As [`Conditions::of_read`] and [`headers::lease_id`].
    pub fn of_read(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::of_read(&call.headers, call.version)?)
    }

    /// Parses the guard of Get and Set Blob Tags.
    ///
    /// # Errors
    /// As [`Conditions::of_tags`] and [`headers::lease_id`].
    pub fn of_tags(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::of_tags(&call.headers)?)
    }

    /// Parses the guard of a write without conditions.
    ///
    /// # Errors
    /// As [`headers::lease_id`].
    pub fn of_lease(call: &Call) -> Result<Self, StorageError> {
        Self::new(call, Conditions::default())
    }

    fn new(call: &Call, conditions: Conditions) -> Result<Self, StorageError> {
        // A condition on tags reads them: "Manage and find Azure Blob data with blob index tags".
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

    /// Checks a write that creates or replaces the blob.
    ///
    /// # Errors
    /// 412 for an unmet lease or condition, 409 `BlobAlreadyExists`, `PendingCopyOperation`.
    /// Archived blobs and those being rehydrated may be replaced, as recorded.
    pub fn check_create(&self, place: &Place) -> Result<(), StorageError> {
        self.check_lease(place)?;
        let blob = place.blob.as_ref();
        self.unless_leased(self.conditions.check_create(blob.map(Current::from)))?;
        blob.map_or(Ok(()), |blob| self.check_replaceable(blob))
    }

    /// Checks a Data Lake request that creates or replaces a path of any kind.
    ///
    /// # Errors
    /// As [`Guard::check_create`], but 409 also for a leased path.
    pub fn check_path(&self, place: &Place) -> Result<(), StorageError> {
        let blob = place.blob.as_ref();
        // Recorded: conditions hold for the holder of the lease, too.
        let judged = self.conditions.check_create(blob.map(Current::from));
        if let Err(error) = &judged
            && error.code() == ErrorCode::BlobAlreadyExists
        {
            return judged;
        }
        lease::check_create(blob.map(|blob| blob.lease), self.lease)?;
        judged?;
        blob.map_or(Ok(()), |blob| self.check_replaceable(blob))
    }

    /// Checks a copy onto a name; errors of unmet conditions name the target.
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

    /// A protected blob may be replaced only if it is kept as a previous version, and only if its
    /// container does not protect it.
    fn check_replaceable(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        check_whole(blob)?;
        check_not_retained(blob)?;
        if self.keeps_versions || blob.version_id.is_some() {
            return Ok(());
        }
        check_removable(blob)
    }

    /// Recorded: the holder of a blob's lease replaces it even under `If-None-Match: *`.
    fn unless_leased(&self, judged: Result<(), StorageError>) -> Result<(), StorageError> {
        match judged {
            Err(error) if error.code() == ErrorCode::BlobAlreadyExists && self.lease.is_some() => {
                Ok(())
            }
            judged => judged,
        }
    }

    /// Checks only the lease of a write that may create the blob.
    ///
    /// # Errors
    /// 412 for a missing or wrong lease id; those of [`tree::check_file`].
    pub fn check_lease(&self, place: &Place) -> Result<(), StorageError> {
        let blob = place.blob.as_ref();
        tree::check_file(place.container.generation, blob)?;
        if blob.is_none() && self.version < LEASE_NEEDS_BLOB {
            return Ok(());
        }
        lease::check_create(blob.map(|blob| blob.lease), self.lease)
    }

    /// Checks a write to an existing blob.
    ///
    /// # Errors
    /// 412 for an unmet lease or condition.
    pub fn check_write(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        lease::check_write(Leased::Blob, blob.lease, self.lease)?;
        self.conditions.check_write(blob.into())
    }

    /// Checks an operation that does not change the blob but has the conditions of a write: a lease
    /// id is optional.
    ///
    /// # Errors
    /// 412 for an unmet lease or condition.
    pub fn check_use(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        lease::check_read(Leased::Blob, blob.lease, self.lease)?;
        self.conditions.check_write(blob.into())
    }

    /// Checks a read of a blob. If `is_base` is false, it is a snapshot, which has no lease.
    ///
    /// # Errors
    /// 412 for an unmet lease or condition, 304 `ConditionNotMet`.
    pub fn check_read(&self, blob: &BlobRecord, is_base: bool) -> Result<(), StorageError> {
        if is_base {
            lease::check_read(Leased::Blob, blob.lease, self.lease)?;
        }
        self.conditions.check_read(blob.into())
    }

    /// Checks a write to a blob. If `is_base` is false, it is a snapshot or version, which has no
    /// lease.
    ///
    /// # Errors
    /// 412 for an unmet lease or condition.
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

    /// Checks only the conditions of a write, for a snapshot, which has no lease.
    ///
    /// # Errors
    /// 412 `ConditionNotMet`.
    pub fn check_conditions(&self, blob: &BlobRecord) -> Result<(), StorageError> {
        self.conditions.check_write(blob.into())
    }
}

/// Rejects a change of a blob that a pending copy is writing, that is archived, or that only
/// incremental copies may change.
///
/// # Errors
/// 409 `PendingCopyOperation`, 409 `BlobArchived`, 409 `OperationNotAllowedOnIncrementalCopyBlob`.
pub fn check_changeable(blob: &BlobRecord) -> Result<(), StorageError> {
    check_whole(blob)?;
    check_online(blob)
}

/// Rejects blobs that only incremental copies may change.
fn check_whole(blob: &BlobRecord) -> Result<(), StorageError> {
    if blob.incremental.is_some() {
        return Err(ErrorCode::OperationNotAllowedOnIncrementalCopyBlob.into());
    }
    check_settled(blob)
}

/// Rejects blobs that a pending copy is writing.
///
/// # Errors
/// 409 `PendingCopyOperation`.
pub fn check_settled(blob: &BlobRecord) -> Result<(), StorageError> {
    if pending_copy::is_pending(blob) {
        return Err(ErrorCode::PendingCopyOperation.into());
    }
    Ok(())
}

/// Checks as [`check_changeable`] does, for changes of bytes or metadata in place.
///
/// # Errors
/// As [`check_changeable`]; 409 `BlobImmutableDueToLegalHold`, `BlobImmutableDueToPolicy`.
pub fn check_rewritable(blob: &BlobRecord) -> Result<(), StorageError> {
    check_changeable(blob)?;
    immutability::judge(blob.protection, Change::InPlace)
}

/// Rejects what only the policy or legal hold of a container prevents: a snapshot, new headers, a
/// replacement.
///
/// # Errors
/// 409 `BlobImmutableDueToLegalHold`, `BlobImmutableDueToPolicy`.
pub fn check_not_retained(blob: &BlobRecord) -> Result<(), StorageError> {
    immutability::judge(blob.worm, Change::InPlace)
}

/// Checks as [`check_rewritable`] does, for appends, which policy and holds of the container may
/// allow.
///
/// # Errors
/// As [`check_rewritable`].
pub fn check_appendable(found: &Found) -> Result<(), StorageError> {
    let blob = &found.blob;
    if blob.worm == blob.protection && found.container.worm.allows_appends(blob.kind) {
        return check_changeable(blob);
    }
    check_rewritable(blob)
}

/// Rejects a write with a key or scope that differs from the blob's, or that its container does not
/// allow.
///
/// # Errors
/// As [`Requested::check_write`].
pub fn check_encryption(requested: &Requested, found: &Found) -> Result<(), StorageError> {
    let stored = found.blob.encryption.as_ref();
    requested.check_write(stored, &found.container.encryption_scope)
}

/// Rejects the removal of a blob with a legal hold or an immutability policy.
///
/// # Errors
/// 409 `BlobImmutableDueToLegalHold`, `BlobImmutableDueToPolicy`.
pub fn check_removable(blob: &BlobRecord) -> Result<(), StorageError> {
    immutability::judge(blob.protection, Change::Removal)
}

/// Rejects access to the bytes of an archived blob.
///
/// # Errors
/// 409 `BlobArchived`; 409 `BlobBeingRehydrated` during rehydration.
pub fn check_online(blob: &BlobRecord) -> Result<(), StorageError> {
    if blob.access.rehydration.is_some() {
        return Err(ErrorCode::BlobBeingRehydrated.into());
    }
    match blob.access.tier.as_deref() {
        Some(ARCHIVE) => Err(ErrorCode::BlobArchived.into()),
        _ => Ok(()),
    }
}
