//! Path - Delete: deletes a file, or a directory with all that it holds.
//!
//! Source: "Path - Delete". A directory goes in one commit, whatever it holds: no path leads to its
//! contents any more, and `reap` removes them.
//!
//! ```http
//! DELETE /devstoreaccount1/lake/2026?recursive=true
//!
//! 200 OK
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use super::{check_removable, flag};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::guard::{self, Guard};
use crate::ops::blob::pending;
use crate::ops::blob::retention::Spot;
use crate::ops::container::list_blobs::marker::Position;
use crate::ops::lookup::{BlobName, Found};
use crate::ops::tree;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Since this version, the response says whether the deletion can be undone, as recorded.
const SAYS_PERMANENT: ApiVersion = ApiVersion::V2020_06_12;

/// The Path - Delete operation.
pub struct DeletePath {
    name: BlobName,
    guard: Guard,
    is_recursive: bool,
}

/// Whether the deletion is permanent, and its id otherwise.
pub struct Deleted {
    is_permanent: bool,
    id: u64,
}

impl Write for DeletePath {
    type Checked = Found;
    type Output = Deleted;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        // One commit deletes everything, so that the first response has no continuation. One that a
        // client sends again finds nothing.
        flag(call, "paginated")?;
        let continuation = call.query("continuation").filter(|text| !text.is_empty());
        continuation.map(Position::parse).transpose()?;
        Ok(DeletePath {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            is_recursive: flag(call, "recursive")?.unwrap_or(false),
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_write(&found.blob)?;
        guard::check_settled(&found.blob)?;
        check_removable(view, &found, stamp.now)?;
        if let (Some(id), false) = (found.blob.directory, self.is_recursive)
            && !tree::is_empty(view, id, stamp.now)?
        {
            return Err(ErrorCode::DirectoryNotEmpty.into());
        }
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Deleted, StorageError> {
        let Found { container, blob } = found;
        let spot = Spot {
            name: &self.name,
            generation: container.generation,
        };
        pending::fail_readers(tx, &blob.copied_to, stamp)?;
        if blob.snapshots > 0 {
            spot.delete_snapshots(tx, stamp)?;
        }
        Ok(Deleted {
            is_permanent: spot.delete_base(tx, &blob, stamp)?,
            id: stamp.tick.filetime(),
        })
    }

    fn render(deleted: Deleted, call: &Call) -> Result<Reply, StorageError> {
        let told = (call.version >= SAYS_PERMANENT).then(|| deleted.is_permanent.to_string());
        let id = (!deleted.is_permanent).then(|| deleted.id.to_string());
        Ok(Reply::new(200)
            .maybe("x-ms-delete-type-permanent", told)
            .maybe("x-ms-deletion-id", id))
    }
}
