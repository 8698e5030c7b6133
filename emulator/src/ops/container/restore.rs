//! Restore Container: restores a deleted container, under its own name or another one.
//!
//! Source: "Restore Container". The contents are unchanged: they are keyed by the container's
//! generation, which `maintain` keeps until the retention ends.
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container&comp=undelete
//! x-ms-deleted-container-name: events
//! x-ms-deleted-container-version: 01D934E8B074DD9C
//!
//! 201 Created
//! ```

use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use super::create;
use super::deleted;
use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Restore Container operation.
pub struct RestoreContainer {
    name: ContainerName,
    deleted_name: String,
    deleted_at: Timestamp,
    being_deleted_s: u64,
}

impl Write for RestoreContainer {
    type Checked = ContainerRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const VERSION: &str = "x-ms-deleted-container-version";
        let deleted_name = given(call, "x-ms-deleted-container-name")?;
        let version = given(call, VERSION)?;
        Ok(RestoreContainer {
            name: ContainerName::of(call)?,
            deleted_name: deleted_name.to_owned(),
            deleted_at: deleted::parse_version(version)
                .ok_or_else(|| StorageError::invalid_header(VERSION, version))?,
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        create::check_free(view, &self.name, self.being_deleted_s, stamp.now)?;
        let found = ContainerRecord::load(view, &self.deleted_key())?;
        let is_over = |found: &ContainerRecord| {
            found
                .kept()
                .is_none_or(|deleted| deleted.is_over(stamp.now))
        };
        found
            .filter(|found| !is_over(found))
            .ok_or_else(|| ErrorCode::ContainerNotFound.into())
    }

    fn apply(
        self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        let key = self.deleted_key();
        if let Some(deleted) = container.kept() {
            tx.delete(keys::expiring(deleted.until(), &key));
        }
        tx.delete(key);
        container.deleted_at = None;
        container.retention_days = None;
        container.touch(stamp);
        container.save(tx, self.name.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(201))
    }
}

impl RestoreContainer {
    fn deleted_key(&self) -> Vec<u8> {
        keys::deleted_container(&self.name.account, &self.deleted_name, self.deleted_at)
    }
}

/// Returns a header, which must not be empty.
fn given<'a>(call: &'a Call, name: &'static str) -> Result<&'a str, StorageError> {
    let text = call.required_header(name)?;
    if text.is_empty() {
        return Err(StorageError::missing_header(name));
    }
    Ok(text)
}
