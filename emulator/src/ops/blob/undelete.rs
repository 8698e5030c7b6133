//! Undelete Blob: restores the soft-deleted data of a name.
//!
//! Sources: "Undelete Blob", "Soft delete for blobs". The base blob, every deleted snapshot and
//! every deleted previous version are restored as they were, without leases. A blob that has only
//! previous versions stays without a current one. If there is nothing to restore, the operation
//! succeeds as long as there is a blob. In a hierarchical container, `x-ms-undelete-source` names
//! one deletion of the path by its id; without it, the last one is undone.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=undelete
//!
//! 200 OK
//! ```

use smalt_protocol::{ErrorCode, StorageError, Timestamp, uri};

use super::tag_index::Owner;
use super::{removal, retention};
use crate::call::Call;
use crate::keys::tree::is_hierarchical;
use crate::keys::{self, Generation};
use crate::operation::Write;
use crate::ops::dfs;
use crate::ops::lookup::BlobName;
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, StoreResult, Transaction, View};

/// The Undelete Blob operation.
pub struct UndeleteBlob {
    name: BlobName,
    /// Time of the deletion to undo.
    deletion: Option<Timestamp>,
}

/// The current blob, and the soft-deleted data of the name.
pub struct Checked {
    generation: Generation,
    base: Option<BlobRecord>,
    waiting: Option<Part>,
    snapshots: Vec<Part>,
    versions: Vec<Part>,
}

/// The key and record of a deleted snapshot or version.
type Part = (Vec<u8>, BlobRecord);

impl Write for UndeleteBlob {
    type Checked = Checked;
    /// The restored blob, if there was one.
    type Output = Option<BlobRecord>;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(UndeleteBlob {
            name: BlobName::of_write(call)?,
            deletion: deletion(call)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        let (generation, name) = (place.container.generation, &self.name.blob);
        let waiting = self.waiting(view, generation)?;
        let is_over = |(_, blob): &Part| blob.deleted.is_some_and(|it| it.is_over(stamp.now));
        let checked = Checked {
            generation,
            base: place.blob,
            waiting: waiting.filter(|part| !is_over(part)),
            snapshots: deleted(view, keys::snapshots(generation, name), stamp.now)?,
            versions: deleted(view, keys::versions(generation, name), stamp.now)?,
        };
        if is_hierarchical(generation) && checked.base.is_some() && checked.waiting.is_some() {
            return Err(ErrorCode::BlobAlreadyExists.into());
        }
        if checked.base.is_none() && checked.waiting.is_none() && checked.snapshots.is_empty() {
            return Err(ErrorCode::BlobNotFound.into());
        }
        Ok(checked)
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<Option<BlobRecord>, StorageError> {
        let generation = checked.generation;
        let restored = checked.snapshots.len() as u64;
        for (key, part) in checked.snapshots.into_iter().chain(checked.versions) {
            retention::unmark(tx, key, part)?;
        }
        let counted = |blob: BlobRecord| BlobRecord {
            snapshots: blob.snapshots + restored,
            ..blob
        };
        let mut back = checked.base.clone();
        match (checked.base, checked.waiting) {
            (Some(base), _) if restored > 0 => {
                counted(base).save(tx, self.name.key(generation))?;
            }
            (None, Some((waiting, mut blob))) => match blob.deleted.take() {
                Some(deleted) => {
                    tx.delete(keys::expiring(deleted.until(), &waiting));
                    tx.delete(waiting);
                    Owner::base(generation, &self.name.blob).change(tx, &[], &blob.tags);
                    let blob = counted(blob);
                    blob.save(tx, self.name.key(generation))?;
                    back = Some(blob);
                }
                None => counted(blob).save(tx, waiting)?,
            },
            _ => {}
        }
        Ok(back)
    }

    fn render(back: Option<BlobRecord>, _: &Call) -> Result<Reply, StorageError> {
        let shown = back.filter(|blob| blob.posix.is_some());
        let kind = |blob: &BlobRecord| dfs::resource_type(blob.directory);
        Ok(Reply::new(200)
            .maybe("x-ms-resource-type", shown.as_ref().map(kind))
            .maybe(
                "x-ms-creation-time",
                shown.map(|blob| blob.created.rfc1123()),
            ))
    }
}

impl UndeleteBlob {
    /// Returns the deleted base blob of the name.
    fn waiting(&self, view: &dyn View, generation: Generation) -> StoreResult<Option<Part>> {
        let name = &self.name.blob;
        let key = match self.deletion {
            _ if !is_hierarchical(generation) => Some(keys::deleted_blob(generation, name)),
            Some(tick) => Some(keys::deleted_path(generation, name, tick)),
            None => removal::keys_from(view, keys::deleted_paths(generation, name))?.pop(),
        };
        let Some(key) = key else {
            return Ok(None);
        };
        Ok(BlobRecord::load(view, &key)?.map(|blob| (key, blob)))
    }
}

/// Parses the id of a deletion from `x-ms-undelete-source: path?deletionid=133226937956541409`.
fn deletion(call: &Call) -> Result<Option<Timestamp>, StorageError> {
    const SOURCE: &str = "x-ms-undelete-source";
    let Some(text) = call.header(SOURCE)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let (_, query) = text.split_once('?').unwrap_or_default();
    let query = uri::parse_query(query)?;
    let id = uri::lookup(&query, "deletionid").and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| StorageError::invalid_header(SOURCE, text))?;
    Ok(Some(Timestamp::WINDOWS_EPOCH.plus_ticks(id)))
}

/// Returns the soft-deleted records with this key prefix that can still be restored.
fn deleted(view: &dyn View, prefix: Vec<u8>, now: Timestamp) -> StoreResult<Vec<Part>> {
    let mut found = Vec::new();
    for key in removal::keys_from(view, prefix)? {
        if let Some(part) = BlobRecord::load(view, &key)?
            && part.deleted.is_some_and(|deleted| !deleted.is_over(now))
        {
            found.push((key, part));
        }
    }
    Ok(found)
}
