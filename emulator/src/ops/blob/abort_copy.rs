//! Abort Copy Blob: aborts a pending copy and leaves an empty destination with its metadata.
//!
//! Source: "Abort Copy Blob".
//!
//! ```http
//! PUT /devstoreaccount1/events/copy.json?comp=copy&copyid=4ffa938b-b8bc-4c1a-89f5-3fa04737bcbc
//! x-ms-copy-action: abort
//!
//! 204 No Content
//! ```

use smalt_protocol::{ErrorCode, StorageError};
use uuid::Uuid;

use super::guard::Guard;
use super::{content, replace};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{BlobName, Found};
use crate::records::CopyStatus;
use crate::reply::Reply;
use crate::rules::pending_copy;
use crate::store::{Stamp, Transaction, View};

/// The Abort Copy Blob operation.
pub struct AbortCopy {
    name: BlobName,
    guard: Guard,
    copy_id: Uuid,
}

impl Write for AbortCopy {
    type Checked = Found;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const ACTION: &str = "x-ms-copy-action";
        let action = call.required_header(ACTION)?;
        if !action.eq_ignore_ascii_case("abort") {
            return Err(StorageError::invalid_header(ACTION, action));
        }
        let id = call
            .query("copyid")
            .ok_or_else(|| StorageError::missing_query("copyid"))?;
        Ok(AbortCopy {
            name: BlobName::of_write(call)?,
            guard: Guard::of_lease(call)?,
            copy_id: Uuid::parse_str(id)
                .map_err(|_| StorageError::invalid_query("copyid", id, "Not a valid copy ID."))?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_write(&found.blob)?;
        let copy = found.blob.copy.as_ref();
        let copy = copy
            .filter(|copy| copy.status == CopyStatus::Pending)
            .ok_or(ErrorCode::NoPendingCopyOperation)?;
        if Uuid::parse_str(&copy.id) != Ok(self.copy_id) {
            return Err(ErrorCode::CopyIdMismatch.into());
        }
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        let mut blob = found.blob;
        let kept = pending_copy::stop(
            &mut blob,
            CopyStatus::Aborted,
            None,
            (stamp.etag(), stamp.now),
        );
        content::release(tx, kept)?;
        replace::touch(tx, &self.name, found.container.generation, blob, stamp)?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}

#[cfg(test)]
mod tests;
