//! Delete Blob: deletes a base blob, its snapshots, one snapshot or a previous version.
//!
//! Source: "Delete Blob". [`retention`] decides what is kept and whether it can be undeleted.
//!
//! ```http
//! DELETE /devstoreaccount1/events/2026/11/21.json
//! x-ms-delete-snapshots: include
//!
//! 202 Accepted
//! x-ms-delete-type-permanent: true
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::retention::{self, Spot};
use super::{pending, removal, uncommitted};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{self, BlobAddress, BlobPart, Place};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Since this version, the response says whether the deletion can be undone. "Version 2017-07-29".
const SAYS_PERMANENT: ApiVersion = ApiVersion::V2017_07_29;
/// Since this version, a blob that has only uncommitted blocks can be deleted. "Version
/// 2013-08-15".
const DELETES_UNCOMMITTED: ApiVersion = ApiVersion::V2013_08_15;

const DELETE_TYPE: &str = "deletetype";

/// The Delete Blob operation.
pub struct DeleteBlob {
    address: BlobAddress,
    guard: Guard,
    snapshots: Snapshots,
    is_permanent: bool,
    version: ApiVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Snapshots {
    /// Absent: fails if there are snapshots.
    Refuse,
    /// `include`: deletes the base blob and all snapshots.
    Include,
    /// `only`: deletes all snapshots, not the base blob.
    Only,
}

/// The part of a blob to delete.
pub struct Doomed {
    place: Place,
    part: Part,
}

enum Part {
    Base,
    Snapshots,
    Snapshot(Box<BlobRecord>),
    Version(Box<BlobRecord>),
    /// A soft-deleted snapshot or version, to be deleted permanently.
    Deleted(Box<BlobRecord>),
    /// Uncommitted blocks without a base blob.
    Uncommitted,
}

impl Write for DeleteBlob {
    type Checked = Doomed;
    /// Whether the deletion is permanent.
    type Output = bool;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let address = BlobAddress::of(call)?;
        let snapshots = parse_snapshots(call)?;
        if !address.is_base() && snapshots != Snapshots::Refuse {
            return Err(has_no_snapshots(call));
        }
        Ok(DeleteBlob {
            address,
            guard: Guard::of_write(call)?,
            snapshots,
            is_permanent: parse_permanent(call)?,
            version: call.version,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Doomed, StorageError> {
        let place = self.address.name.find_place(view, stamp.now)?;
        if self.is_permanent {
            return self.check_permanent(view, place, stamp);
        }
        let part = match self.address.part {
            BlobPart::Base => self.check_base(view, &place, stamp.now)?,
            BlobPart::Snapshot(_) => {
                let snapshot = self.address.find(view, stamp.now)?.blob;
                self.guard.check_conditions(&snapshot)?;
                guard::check_removable(&snapshot)?;
                Part::Snapshot(Box::new(snapshot))
            }
            BlobPart::Version(_) => {
                let version = self.address.find(view, stamp.now)?.blob;
                if !version.is_previous {
                    return Err(ErrorCode::OperationNotAllowedOnRootBlob.into());
                }
                self.guard.check_conditions(&version)?;
                guard::check_removable(&version)?;
                Part::Version(Box::new(version))
            }
        };
        Ok(Doomed { place, part })
    }

    fn apply(
        self,
        Doomed { place, part }: Doomed,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<bool, StorageError> {
        let (name, generation) = (&self.address.name, place.container.generation);
        let spot = Spot { name, generation };
        match part {
            Part::Base => {
                let Some(blob) = &place.blob else {
                    return Ok(true);
                };
                pending::fail_readers(tx, &blob.copied_to, stamp)?;
                if blob.snapshots > 0 {
                    spot.delete_snapshots(tx, stamp)?;
                }
                spot.delete_base(tx, blob, stamp)
            }
            Part::Snapshots => {
                let is_permanent = spot.delete_snapshots(tx, stamp)?;
                self.recount(tx, place, |_| 0)?;
                Ok(is_permanent)
            }
            Part::Snapshot(snapshot) => {
                let key = self.address.key(generation, &snapshot);
                let is_permanent = spot.delete_part(tx, key, *snapshot, stamp)?;
                self.recount(tx, place, |snapshots| snapshots.saturating_sub(1))?;
                Ok(is_permanent)
            }
            Part::Version(version) => {
                let key = self.address.key(generation, &version);
                Ok(spot.delete_part(tx, key, *version, stamp)?)
            }
            Part::Deleted(part) => {
                let key = self.address.key(generation, &part);
                removal::remove(tx, key, &part)?;
                spot.forget(tx)?;
                Ok(true)
            }
            Part::Uncommitted => {
                removal::drop_uncommitted(tx, generation, &name.blob)?;
                Ok(true)
            }
        }
    }

    fn render(is_permanent: bool, call: &Call) -> Result<Reply, StorageError> {
        let told = if is_permanent { "true" } else { "false" };
        let told = (call.version >= SAYS_PERMANENT).then_some(told);
        Ok(Reply::new(202).maybe("x-ms-delete-type-permanent", told))
    }
}

impl DeleteBlob {
    fn check_base(
        &self,
        view: &dyn View,
        place: &Place,
        now: Timestamp,
    ) -> Result<Part, StorageError> {
        let Some(blob) = &place.blob else {
            let (generation, name) = (place.container.generation, &self.address.name.blob);
            let blocks = uncommitted::record(view, generation, name, now)?;
            if self.version >= DELETES_UNCOMMITTED && blocks.is_some() {
                // `only` keeps the blob, and so its uncommitted blocks. There are no snapshots.
                return Ok(match self.snapshots {
                    Snapshots::Only => Part::Snapshots,
                    Snapshots::Refuse | Snapshots::Include => Part::Uncommitted,
                });
            }
            return Err(ErrorCode::BlobNotFound.into());
        };
        self.guard.check_write(blob)?;
        if let Some(id) = blob.directory
            && !tree::is_empty(view, id, now)?
        {
            return Err(ErrorCode::DirectoryIsNotEmpty.into());
        }
        guard::check_settled(blob)?;
        match self.snapshots {
            Snapshots::Only => Ok(Part::Snapshots),
            Snapshots::Refuse if blob.snapshots > 0 => Err(ErrorCode::SnapshotsPresent.into()),
            Snapshots::Refuse | Snapshots::Include => {
                // Recorded: applies even if the blob would be kept as a previous version.
                guard::check_removable(blob)?;
                Ok(Part::Base)
            }
        }
    }

    /// Checks `deletetype=permanent`, which deletes a soft-deleted snapshot or version if the
    /// service's properties allow it. Recorded: the error that they do not comes first, whatever
    /// the request names.
    fn check_permanent(
        &self,
        view: &dyn View,
        place: Place,
        stamp: &Stamp,
    ) -> Result<Doomed, StorageError> {
        let policy = retention::policy(view, &self.address.name.container)?;
        if !policy.allow_permanent_delete {
            return Err(ErrorCode::PermanentDeleteIsOff.into());
        }
        if self.address.is_base() {
            return Err(ErrorCode::OperationNotAllowedOnRootBlob.into());
        }
        let generation = place.container.generation;
        let found = self.address.load(view, generation, stamp.now)?;
        let found = found.ok_or(ErrorCode::BlobNotFound)?;
        match found.deleted {
            Some(deleted) if deleted.is_over(stamp.now) => Err(ErrorCode::BlobNotFound.into()),
            Some(_) => {
                guard::check_removable(&found)?;
                Ok(Doomed {
                    place,
                    part: Part::Deleted(Box::new(found)),
                })
            }
            None => Err(StorageError::invalid_query(DELETE_TYPE, "permanent", "")),
        }
    }

    /// Updates the number of remaining snapshots in the base blob.
    fn recount(
        &self,
        tx: &mut Transaction<'_>,
        place: Place,
        left: impl Fn(u64) -> u64,
    ) -> Result<(), StorageError> {
        if let Some(mut blob) = place.blob {
            blob.snapshots = left(blob.snapshots);
            blob.save(tx, self.address.name.key(place.container.generation))?;
        }
        Ok(())
    }
}

/// Returns the error for `x-ms-delete-snapshots` on anything but a base blob.
fn has_no_snapshots(call: &Call) -> StorageError {
    match call.query("versionid") {
        Some(version) => lookup::refused_version(version, "A version has no snapshots."),
        None => {
            let snapshot = call.query("snapshot").unwrap_or_default();
            StorageError::invalid_query("snapshot", snapshot, "A snapshot has no snapshots.")
        }
    }
}

fn parse_snapshots(call: &Call) -> Result<Snapshots, StorageError> {
    const NAME: &str = "x-ms-delete-snapshots";
    match call.header(NAME)? {
        None => Ok(Snapshots::Refuse),
        Some(text) if text.eq_ignore_ascii_case("include") => Ok(Snapshots::Include),
        Some(text) if text.eq_ignore_ascii_case("only") => Ok(Snapshots::Only),
        Some(text) => Err(StorageError::invalid_header(NAME, text)),
    }
}

fn parse_permanent(call: &Call) -> Result<bool, StorageError> {
    match call.query(DELETE_TYPE) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("permanent") => Ok(true),
        Some(text) => Err(StorageError::invalid_query(DELETE_TYPE, text, "")),
    }
}
