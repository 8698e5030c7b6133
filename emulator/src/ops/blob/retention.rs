//! Decides what is kept of a blob that is overwritten or deleted: a previous version, soft-deleted
//! data, or nothing. All code that replaces, deletes or restores blobs goes through here.
//!
//! Sources: "Blob versioning", "Soft delete for blobs", remarks of "Delete Blob"; recordings.
//! Versioning is a setting of the account, soft delete one of the service's properties. Versioning
//! comes first: a blob that is kept as a version is not soft-deleted.
//!
//! - Previous versions, deleted or not, are stored beside the snapshots, under their own keys.
//! - A soft-deleted base blob has its own key, so that other code does not see it; in a
//!   hierarchical container, every deletion of a path has one. Under that of a blob, a
//!   *placeholder* stands for a blob that has only previous versions.
//! - A reminder at the end of each retention leads `maintain` to the data to remove.

use smalt_protocol::StorageError;
use smalt_protocol::xml::{DeleteRetention, ServiceProperties};

use super::tag_index::Owner;
use super::{content, removal, replace};
use crate::keys::tree::is_hierarchical;
use crate::keys::{self, Generation};
use crate::ops::lookup::{BlobName, ContainerName};
use crate::ops::tree;
use crate::records::{BlobContent, BlobKind, BlobRecord, Deleted, Record};
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, StoreResult, Transaction, View};

/// Returns the current `DeleteRetentionPolicy`.
///
/// # Errors
/// When the store fails.
pub fn policy(view: &dyn View, container: &ContainerName) -> StoreResult<DeleteRetention> {
    let key = keys::service(&container.account, "blob");
    let properties = ServiceProperties::load(view, &key)?;
    Ok(properties.map_or_else(DeleteRetention::default, |p| p.delete_retention))
}

/// Whether an overwritten or deleted blob becomes a previous version. "After versioning is
/// disabled, existing versions persist": the current one as well.
pub fn keeps_version(container: &ContainerName, old: &BlobRecord) -> bool {
    container.settings.versioning || old.version_id.is_some()
}

/// Whether the content of an overwritten blob is kept.
///
/// # Errors
/// When the store fails.
pub fn keeps_replaced(
    view: &dyn View,
    container: &ContainerName,
    old: &BlobRecord,
) -> StoreResult<bool> {
    Ok(keeps_version(container, old) || policy(view, container)?.retention.0.is_some())
}

/// Name and container generation of a base blob.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// The name of the blob.
    pub name: &'a BlobName,
    /// Generation of its container.
    pub generation: Generation,
}

impl Spot<'_> {
    /// Keeps or releases the blob that a write replaces; takes over its reference to its content.
    ///
    /// # Errors
    /// When the store fails.
    pub fn set_aside(
        self,
        tx: &mut Transaction<'_>,
        old: &BlobRecord,
        stamp: &Stamp,
    ) -> StoreResult<()> {
        if keeps_version(&self.name.container, old) {
            return self.keep_version(tx, old, stamp);
        }
        match policy(tx, &self.name.container)?.retention.0 {
            Some(retention_days) => {
                let deleted = Deleted {
                    at: stamp.now,
                    retention_days,
                };
                self.keep_snapshot(tx, old, deleted, stamp)
            }
            None => content::release(tx, old.content),
        }
    }

    /// Keeps `old` as a previous version. Assigns an id to a blob from before versioning was
    /// enabled.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep_version(
        self,
        tx: &mut Transaction<'_>,
        old: &BlobRecord,
        stamp: &Stamp,
    ) -> StoreResult<()> {
        let id = old.version_id.unwrap_or(stamp.tick);
        let version = BlobRecord {
            version_id: Some(id),
            is_previous: true,
            lease: LeaseState::Available,
            snapshots: 0,
            expires: None,
            ..old.clone()
        };
        Owner::of(self.generation, &self.name.blob, &version).change(tx, &[], &version.tags);
        version.save(tx, keys::version(self.generation, &self.name.blob, id))
    }

    /// Keeps `old` as a soft-deleted snapshot.
    fn keep_snapshot(
        self,
        tx: &mut Transaction<'_>,
        old: &BlobRecord,
        deleted: Deleted,
        stamp: &Stamp,
    ) -> StoreResult<()> {
        let snapshot = BlobRecord {
            version_id: None,
            lease: LeaseState::Available,
            snapshots: 0,
            expires: None,
            ..old.clone()
        };
        let key = keys::snapshot(self.generation, &self.name.blob, stamp.tick);
        mark(tx, key, snapshot, deleted)
    }

    /// Handles the soft-deleted data of a name when a blob is created: a deleted blob of the same
    /// kind becomes a deleted snapshot; one of another kind is removed with all data that could be
    /// undeleted. Returns the number of snapshots.
    ///
    /// # Errors
    /// When the store fails.
    pub fn succeed(
        self,
        tx: &mut Transaction<'_>,
        kind: BlobKind,
        stamp: &Stamp,
    ) -> StoreResult<u64> {
        let key = keys::deleted_blob(self.generation, &self.name.blob);
        let Some(old) = BlobRecord::load(tx, &key)? else {
            return self.orphans(tx);
        };
        tx.delete(key.clone());
        let Some(deleted) = old.deleted else {
            return Ok(old.snapshots);
        };
        tx.delete(keys::expiring(deleted.until(), &key));
        if old.kind == kind && !deleted.is_over(stamp.now) {
            self.keep_snapshot(tx, &old, deleted, stamp)?;
        } else {
            content::release(tx, old.content)?;
            if old.kind != kind {
                self.purge(tx)?;
            }
        }
        Ok(0)
    }

    /// Returns the number of snapshots without a blob: it was deleted when soft delete was off, and
    /// they were restored.
    fn orphans(self, view: &dyn View) -> StoreResult<u64> {
        let mut count = 0;
        for key in removal::keys_from(view, keys::snapshots(self.generation, &self.name.blob))? {
            let snapshot = BlobRecord::load(view, &key)?;
            count += u64::from(snapshot.is_some_and(|snapshot| snapshot.deleted.is_none()));
        }
        Ok(count)
    }

    /// Removes every soft-deleted snapshot.
    fn purge(self, tx: &mut Transaction<'_>) -> StoreResult<()> {
        for key in removal::keys_from(tx, keys::snapshots(self.generation, &self.name.blob))? {
            let snapshot = BlobRecord::load(tx, &key)?;
            if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.deleted.is_some()) {
                removal::remove(tx, key, &snapshot)?;
            }
        }
        Ok(())
    }

    /// Deletes the base blob and its uncommitted blocks. Returns whether that is permanent.
    ///
    /// # Errors
    /// When the store fails.
    pub fn delete_base(
        self,
        tx: &mut Transaction<'_>,
        blob: &BlobRecord,
        stamp: &Stamp,
    ) -> Result<bool, StorageError> {
        let generation = self.generation;
        tx.delete(self.name.key(generation));
        removal::forget(tx, self.name.key(generation), blob);
        Owner::base(generation, &self.name.blob).change(tx, &blob.tags, &[]);
        removal::drop_uncommitted(tx, generation, &self.name.blob)?;
        if keeps_version(&self.name.container, blob) {
            self.keep_version(tx, blob, stamp)?;
            let key = keys::deleted_blob(generation, &self.name.blob);
            placeholder(blob, stamp).save(tx, key)?;
            return Ok(false);
        }
        match policy(tx, &self.name.container)?.retention.0 {
            Some(retention_days) => {
                let deleted = Deleted {
                    at: stamp.now,
                    retention_days,
                };
                let blob = BlobRecord {
                    lease: LeaseState::Available,
                    snapshots: 0,
                    expires: None,
                    ..blob.clone()
                };
                let key = match is_hierarchical(generation) {
                    true => keys::deleted_path(generation, &self.name.blob, stamp.tick),
                    false => keys::deleted_blob(generation, &self.name.blob),
                };
                mark(tx, key, blob, deleted)?;
                Ok(false)
            }
            None => {
                content::release(tx, blob.content)?;
                if let Some(id) = blob.directory {
                    tree::drop_directory(tx, id);
                }
                Ok(true)
            }
        }
    }

    /// Deletes a snapshot or previous version. Returns whether that is permanent.
    ///
    /// # Errors
    /// When the store fails.
    pub fn delete_part(
        self,
        tx: &mut Transaction<'_>,
        key: Vec<u8>,
        part: BlobRecord,
        stamp: &Stamp,
    ) -> StoreResult<bool> {
        match policy(tx, &self.name.container)?.retention.0 {
            Some(retention_days) => {
                let deleted = Deleted {
                    at: stamp.now,
                    retention_days,
                };
                mark(tx, key, part, deleted)?;
                Ok(false)
            }
            None => {
                removal::remove(tx, key, &part)?;
                self.forget(tx)?;
                Ok(true)
            }
        }
    }

    /// Deletes all snapshots. Returns whether that is permanent.
    ///
    /// # Errors
    /// When the store fails.
    pub fn delete_snapshots(self, tx: &mut Transaction<'_>, stamp: &Stamp) -> StoreResult<bool> {
        let mut is_permanent = true;
        for key in removal::keys_from(tx, keys::snapshots(self.generation, &self.name.blob))? {
            let snapshot = BlobRecord::load(tx, &key)?;
            if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.deleted.is_none()) {
                is_permanent = self.delete_part(tx, key, snapshot, stamp)?;
            }
        }
        Ok(is_permanent)
    }

    /// Removes the placeholder if the blob has no versions left.
    ///
    /// # Errors
    /// When the store fails.
    pub fn forget(self, tx: &mut Transaction<'_>) -> StoreResult<()> {
        forget_placeholder(tx, self.generation, &self.name.blob)
    }
}

/// Removes the placeholder of a blob if it has no versions left.
///
/// # Errors
/// When the store fails.
pub fn forget_placeholder(
    tx: &mut Transaction<'_>,
    generation: Generation,
    blob: &str,
) -> StoreResult<()> {
    let key = keys::deleted_blob(generation, blob);
    let is_placeholder = |found: &BlobRecord| found.deleted.is_none() && found.snapshots == 0;
    if BlobRecord::load(tx, &key)?
        .as_ref()
        .is_some_and(is_placeholder)
        && !replace::has_any(tx, keys::versions(generation, blob))?
    {
        tx.delete(key);
    }
    Ok(())
}

/// Returns the placeholder of a blob that has only previous versions. Recorded: its id is that of
/// the deletion.
fn placeholder(blob: &BlobRecord, stamp: &Stamp) -> BlobRecord {
    BlobRecord {
        content: BlobContent::Empty,
        version_id: Some(stamp.second_tick()),
        lease: LeaseState::Available,
        snapshots: 0,
        expires: None,
        ..blob.clone()
    }
}

/// Marks a record as soft-deleted and adds a reminder at the end of its retention.
fn mark(
    tx: &mut Transaction<'_>,
    key: Vec<u8>,
    mut part: BlobRecord,
    deleted: Deleted,
) -> StoreResult<()> {
    part.deleted = Some(deleted);
    tx.put(keys::expiring(deleted.until(), &key), Vec::new());
    part.save(tx, key)
}

/// Restores a soft-deleted record.
///
/// # Errors
/// When the store fails.
pub fn unmark(tx: &mut Transaction<'_>, key: Vec<u8>, mut part: BlobRecord) -> StoreResult<()> {
    if let Some(deleted) = part.deleted.take() {
        tx.delete(keys::expiring(deleted.until(), &key));
    }
    part.save(tx, key)
}
