//! Finding what a request addresses, with Azure's own refusal where it is not there.

use smalt_protocol::{ErrorCode, StorageError, Timestamp, names};

use crate::call::Call;
use crate::keys;
use crate::records::{ContainerRecord, Record};
use crate::store::View;

/// A container by account and name. Its name is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName {
    /// Account.
    pub account: String,
    /// Container.
    pub container: String,
}

impl ContainerName {
    /// The container that a call addresses, alone or through a blob.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        names::validate_container_name(call.container())?;
        Ok(ContainerName {
            account: call.account().to_owned(),
            container: call.container().to_owned(),
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
}
