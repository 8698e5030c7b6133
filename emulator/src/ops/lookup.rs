//! Finding what a request addresses, with Azure's own refusal where it is not there.
//!
//! A name becomes a place, a place a blob: [`ContainerName`] and [`BlobName`] are valid names,
//! [`Place`] is a container and what stands in it under a name, [`Found`] a blob that is there.
//! [`BlobAddress`] may name a snapshot or a version instead. Whatever depends on time (leases,
//! tiers, pending copies, expiry) is settled here, so that no operation sees what is over.

use std::sync::Arc;

use smalt_protocol::{ErrorCode, StorageError, Timestamp, names};

use crate::call::Call;
use crate::config::AccountSettings;
use crate::keys;
use crate::keys::Generation;
use crate::records::{BlobRecord, ContainerRecord, Record};
use crate::rules::{immutability, pending_copy, tier};
use crate::store::View;

/// Query parameter of a snapshot.
const SNAPSHOT: &str = "snapshot";
/// Query parameter of a version.
const VERSION: &str = "versionid";

/// A container by account and name. Its name is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName {
    /// Account.
    pub account: String,
    /// Container.
    pub container: String,
    /// What the account was set to when the request came.
    pub settings: Arc<AccountSettings>,
}

impl ContainerName {
    /// The container that a call addresses, alone or through a blob.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        names::validate_container_name(call.container())?;
        Ok(ContainerName {
            account: call.account().to_owned(),
            container: call.container().to_owned(),
            settings: call.settings.clone(),
        })
    }

    /// Its key.
    pub fn key(&self) -> Vec<u8> {
        keys::container(&self.account, &self.container)
    }

    /// The container as it stands, deleted ones included.
    pub fn load(&self, view: &dyn View) -> Result<Option<ContainerRecord>, StorageError> {
        Ok(ContainerRecord::load(view, &self.key())?)
    }

    /// The container, or 404 `ContainerNotFound`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<ContainerRecord, StorageError> {
        let mut found = self
            .load(view)?
            .filter(|container| container.deleted_at.is_none())
            .ok_or(ErrorCode::ContainerNotFound)?;
        found.lease = found.lease.at(now);
        Ok(found)
    }
}

/// A blob by account, container and name. The names are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobName {
    /// Account and container.
    pub container: ContainerName,
    /// Blob.
    pub blob: String,
}

impl BlobName {
    /// The blob that a call addresses.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let container = ContainerName::of(call)?;
        names::validate_blob_name(call.blob())?;
        Ok(BlobName {
            container,
            blob: call.blob().to_owned(),
        })
    }

    /// The base blob that a call addresses to write to it: no snapshot and no version can be
    /// written.
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` where the call names one.
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

    /// Key of the base blob in a container.
    pub fn key(&self, generation: Generation) -> Vec<u8> {
        keys::blob(generation, &self.blob)
    }

    /// The base blob as it stands at this time; `None` for a blob that has uncommitted blocks only.
    pub fn load(
        &self,
        view: &dyn View,
        generation: Generation,
        now: Timestamp,
    ) -> Result<Option<BlobRecord>, StorageError> {
        Ok(at(BlobRecord::load(view, &self.key(generation))?, now))
    }

    /// The container and, where there is one, its base blob; or 404 `ContainerNotFound`.
    pub fn find_place(&self, view: &dyn View, now: Timestamp) -> Result<Place, StorageError> {
        let container = self.container.find(view, now)?;
        let blob = self.load(view, container.generation, now)?;
        Ok(Place { container, blob })
    }

    /// The container and its base blob, or 404 `ContainerNotFound` or `BlobNotFound`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let Place { container, blob } = self.find_place(view, now)?;
        let blob = blob.ok_or(ErrorCode::BlobNotFound)?;
        Ok(Found { container, blob })
    }
}

/// A container and what stands in it under a blob's name.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Container.
    pub container: ContainerRecord,
    /// Base blob, where there is one.
    pub blob: Option<BlobRecord>,
}

/// A blob or snapshot with its container. Leases and tiers are as they stand at the time of the
/// look-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Container.
    pub container: ContainerRecord,
    /// Base blob or snapshot.
    pub blob: BlobRecord,
}

/// A base blob or one of its snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobAddress {
    /// Names.
    pub name: BlobName,
    /// Which part of the blob.
    pub part: BlobPart,
}

/// Which part of a blob a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobPart {
    /// The base blob.
    Base,
    /// The snapshot of this time.
    Snapshot(Timestamp),
    /// The version of this id: a previous one or the current one.
    Version(Timestamp),
}

impl BlobAddress {
    /// What a call addresses by path, `snapshot` and `versionid`.
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

    /// Key of the record that was found there.
    pub fn key(&self, generation: Generation, found: &BlobRecord) -> Vec<u8> {
        match self.part {
            BlobPart::Snapshot(tick) => keys::snapshot(generation, &self.name.blob, tick),
            BlobPart::Version(id) if found.is_previous => {
                keys::version(generation, &self.name.blob, id)
            }
            BlobPart::Base | BlobPart::Version(_) => self.name.key(generation),
        }
    }

    /// Whether it is the base blob, and not by the id of its version.
    pub fn is_base(&self) -> bool {
        self.part == BlobPart::Base
    }

    /// The container and the part addressed, or 404 `ContainerNotFound` or `BlobNotFound`.
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let container = self.name.container.find(view, now)?;
        let generation = container.generation;
        let blob = self.load(view, generation, now)?;
        let blob = blob.ok_or(ErrorCode::BlobNotFound)?;
        match blob.deleted {
            None => Ok(Found { container, blob }),
            Some(deleted) if deleted.is_over(now) => Err(ErrorCode::BlobNotFound.into()),
            // Recorded of deleted snapshots and versions.
            Some(_) => Err(StorageError::new(ErrorCode::BlobNotFound)
                .with_header("x-ms-is-soft-deleted", "true")),
        }
    }

    /// The part addressed, deleted softly or not.
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

/// A version that a request may not name. Recorded: it comes with a reason, a snapshot without.
pub fn refused_version(version: &str, reason: &str) -> StorageError {
    StorageError::invalid_query(VERSION, version, reason)
}

/// A blob as it stands at this time; none when it has expired.
fn at(blob: Option<BlobRecord>, now: Timestamp) -> Option<BlobRecord> {
    let mut blob = blob.filter(|blob| blob.is_there(now))?;
    blob.lease = blob.lease.at(now);
    blob.access = tier::settled(blob.access, now);
    blob.protection = immutability::protection(blob.immutability, blob.legal_hold, now);
    pending_copy::settle(&mut blob, now);
    Some(blob)
}
