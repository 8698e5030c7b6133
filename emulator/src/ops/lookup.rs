//! Finds the resource that a request addresses, or fails with Azure's error.
//!
//! [`ContainerName`] and [`BlobName`] are valid names, [`Place`] is a container with the blob of a
//! name, if there is one, [`Found`] an existing blob. [`BlobAddress`] may name a snapshot or a
//! version instead. Everything that depends on time (leases, tiers, pending copies, expiry) is
//! updated here, so that no operation sees an outdated state.

use std::sync::Arc;

use smalt_protocol::{ErrorCode, StorageError, Timestamp, names};

use crate::call::Call;
use crate::config::AccountSettings;
use crate::keys;
use crate::keys::Generation;
use crate::keys::tree::{TOO_DEEP, is_hierarchical};
use crate::ops::tree;
use crate::records::{BlobRecord, ContainerRecord, Record};
use crate::rules::{immutability, pending_copy, tier};
use crate::store::{StoreResult, View};

const SNAPSHOT: &str = "snapshot";
const VERSION: &str = "versionid";

/// The valid name of a container, with its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName {
    /// The account's name.
    pub account: String,
    /// The container's name.
    pub container: String,
    /// The account's settings when the request arrived.
    pub settings: Arc<AccountSettings>,
    /// Whether the request uses the Data Lake interface, which a flat container does not have.
    pub data_lake: bool,
    /// Object id of the user who owns what the request creates; `None` for the usual owner.
    pub creator: Option<String>,
}

impl ContainerName {
    /// Returns the container that a call addresses, directly or through a blob.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        names::validate_container_name(call.container())?;
        Ok(ContainerName {
            account: call.account().to_owned(),
            container: call.container().to_owned(),
            settings: call.settings.clone(),
            data_lake: call.target.data_lake,
            creator: call.subject().map(|subject| subject.id),
        })
    }

    /// Returns the key of the container's record.
    pub fn key(&self) -> Vec<u8> {
        keys::container(&self.account, &self.container)
    }

    /// Loads the record, even of a deleted container.
    pub fn load(&self, view: &dyn View) -> Result<Option<ContainerRecord>, StorageError> {
        Ok(ContainerRecord::load(view, &self.key())?)
    }

    /// Loads the container, or fails with 404 `ContainerNotFound`. Through the Data Lake interface,
    /// a container that is older than the hierarchical namespace of its account is refused with
    /// 400 `HierarchicalNamespaceNotEnabled`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<ContainerRecord, StorageError> {
        let mut found = self
            .load(view)?
            .filter(|container| container.deleted_at.is_none())
            .ok_or(ErrorCode::ContainerNotFound)?;
        if self.data_lake && !is_hierarchical(found.generation) {
            return Err(ErrorCode::HierarchicalNamespaceNotEnabled.into());
        }
        found.lease = found.lease.at(now);
        Ok(found)
    }
}

/// The valid name of a blob, with account and container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobName {
    /// Account and container.
    pub container: ContainerName,
    /// The blob's name.
    pub blob: String,
}

impl BlobName {
    /// Returns the blob that a call addresses.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let container = ContainerName::of(call)?;
        names::validate_blob_name(call.blob())?;
        Ok(BlobName {
            container,
            blob: call.blob().to_owned(),
        })
    }

    /// Returns the base blob that a call writes to: snapshots and versions are read-only.
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` for a snapshot or version.
    pub fn of_write(call: &Call) -> Result<Self, StorageError> {
        let named = |part| call.query(part).filter(|value| !value.is_empty());
        if let Some(snapshot) = named(SNAPSHOT) {
            return Err(StorageError::invalid_query(SNAPSHOT, snapshot, ""));
        }
        if let Some(version) = named(VERSION) {
            return Err(refused_version(version, "A version cannot be written."));
        }
        Self::of(call)
    }

    /// Returns the key of the base blob in a container.
    pub fn key(&self, generation: Generation) -> Vec<u8> {
        keys::blob(generation, &self.blob)
    }

    /// Loads the base blob as of `now`; `None` for a blob with only uncommitted blocks.
    pub fn load(
        &self,
        view: &dyn View,
        generation: Generation,
        now: Timestamp,
    ) -> Result<Option<BlobRecord>, StorageError> {
        Ok(load(view, &self.key(generation), now)?)
    }

    /// Loads the container with the generation that keys the blob: in a hierarchical account, the
    /// id of its directory.
    fn find_container(
        &self,
        view: &dyn View,
        now: Timestamp,
    ) -> Result<ContainerRecord, StorageError> {
        let mut container = self.container.find(view, now)?;
        container.generation = tree::folder(view, container.generation, &self.blob, now)?;
        Ok(container)
    }

    /// Loads the container and its base blob, if there is one, or fails with 404
    /// `ContainerNotFound`. A path that is too deep to be created has the directory [`TOO_DEEP`].
    pub fn find_place(&self, view: &dyn View, now: Timestamp) -> Result<Place, StorageError> {
        let mut container = self.find_container(view, now)?;
        let blob = self.load(view, container.generation, now)?;
        let blob = blob.map(|blob| protected(&container, blob, now));
        if blob.is_none() && tree::is_too_deep(container.generation, &self.blob) {
            container.generation = TOO_DEEP;
        }
        Ok(Place { container, blob })
    }

    /// Loads the container and its base blob, or fails with 404 `ContainerNotFound` or
    /// `BlobNotFound`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let Place { container, blob } = self.find_place(view, now)?;
        let blob = blob.ok_or(ErrorCode::BlobNotFound)?;
        Ok(Found { container, blob })
    }
}

/// A container, with the base blob of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The container's record, with the generation that keys the blob.
    pub container: ContainerRecord,
    /// The base blob, if there is one.
    pub blob: Option<BlobRecord>,
}

/// A blob or snapshot with its container. Leases and tiers are as of the look-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The container's record, with the generation that keys the blob.
    pub container: ContainerRecord,
    /// The record of the base blob, snapshot or version.
    pub blob: BlobRecord,
}

/// The address of a base blob, snapshot or version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobAddress {
    /// Account, container and blob.
    pub name: BlobName,
    /// The part of the blob.
    pub part: BlobPart,
}

/// The part of a blob that a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobPart {
    /// The base blob.
    Base,
    /// The snapshot of this time.
    Snapshot(Timestamp),
    /// The version with this id: a previous one or the current one.
    Version(Timestamp),
}

impl BlobAddress {
    /// Returns the part that a call addresses by path, `snapshot` and `versionid`.
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` for a malformed time, 400
    /// `MutuallyExclusiveQueryParameters` for both.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let name = BlobName::of(call)?;
        let part = match (call.query("snapshot"), call.query("versionid")) {
            (Some(_), Some(_)) => return Err(ErrorCode::MutuallyExclusiveQueryParameters.into()),
            (Some(snapshot), None) if !snapshot.is_empty() => {
                let refused = || StorageError::invalid_query(SNAPSHOT, snapshot, "");
                BlobPart::Snapshot(Timestamp::parse_whole(snapshot).ok_or_else(refused)?)
            }
            (None, Some(version)) if !version.is_empty() => {
                let refused = || refused_version(version, "Not a valid version ID.");
                BlobPart::Version(Timestamp::parse_whole(version).ok_or_else(refused)?)
            }
            _ => BlobPart::Base,
        };
        Ok(BlobAddress { name, part })
    }

    /// Returns the key of the record that was found.
    pub fn key(&self, generation: Generation, found: &BlobRecord) -> Vec<u8> {
        match self.part {
            BlobPart::Snapshot(tick) => keys::snapshot(generation, &self.name.blob, tick),
            BlobPart::Version(id) if found.is_previous => {
                keys::version(generation, &self.name.blob, id)
            }
            BlobPart::Base | BlobPart::Version(_) => self.name.key(generation),
        }
    }

    /// Whether it addresses the base blob without a version id.
    pub fn is_base(&self) -> bool {
        self.part == BlobPart::Base
    }

    /// Loads the container and the addressed part, or fails with 404 `ContainerNotFound` or
    /// `BlobNotFound`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let container = self.name.find_container(view, now)?;
        let generation = container.generation;
        let blob = self.load(view, generation, now)?;
        let blob = blob.ok_or(ErrorCode::BlobNotFound)?;
        match blob.deleted {
            None => {
                let blob = protected(&container, blob, now);
                Ok(Found { container, blob })
            }
            Some(deleted) if deleted.is_over(now) => Err(ErrorCode::BlobNotFound.into()),
            // Recorded of deleted snapshots and versions.
            Some(_) => Err(StorageError::new(ErrorCode::BlobNotFound)
                .with_header("x-ms-is-soft-deleted", "true")),
        }
    }

    /// Loads the addressed part, even if it is soft-deleted.
    pub fn load(
        &self,
        view: &dyn View,
        generation: Generation,
        now: Timestamp,
    ) -> Result<Option<BlobRecord>, StorageError> {
        let key = match self.part {
            BlobPart::Base => return self.name.load(view, generation, now),
            BlobPart::Snapshot(tick) => keys::snapshot(generation, &self.name.blob, tick),
            BlobPart::Version(id) => {
                let current = self.name.load(view, generation, now)?;
                if current.as_ref().and_then(|blob| blob.version_id) == Some(id) {
                    return Ok(current);
                }
                keys::version(generation, &self.name.blob, id)
            }
        };
        Ok(at(BlobRecord::load(view, &key)?, now))
    }
}

/// Adds the protection that a container gives all of its blobs.
fn protected(container: &ContainerRecord, mut blob: BlobRecord, now: Timestamp) -> BlobRecord {
    blob.worm = container.worm.protection(blob.created, now);
    blob.protection = blob.protection.max(blob.worm);
    blob
}

/// Returns the error for a version that the request may not name. Recorded: it has a reason, unlike
/// that of a snapshot.
pub fn refused_version(version: &str, reason: &str) -> StorageError {
    StorageError::invalid_query(VERSION, version, reason)
}

/// Loads the blob with this key as of `now`; `None` if there is none.
///
/// # Errors
/// When the store fails.
pub fn load(view: &dyn View, key: &[u8], now: Timestamp) -> StoreResult<Option<BlobRecord>> {
    Ok(at(BlobRecord::load(view, key)?, now))
}

/// Returns a blob as of `now`; `None` if it has expired.
fn at(blob: Option<BlobRecord>, now: Timestamp) -> Option<BlobRecord> {
    let mut blob = blob.filter(|blob| blob.is_there(now))?;
    blob.lease = blob.lease.at(now);
    blob.access = tier::settled(blob.access, now);
    blob.protection = immutability::protection(blob.immutability, blob.legal_hold, now);
    pending_copy::settle(&mut blob, now);
    Some(blob)
}
