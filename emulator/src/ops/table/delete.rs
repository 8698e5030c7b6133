//! Delete Table: deletes a table with all entities in one write.
//!
//! Source: "Delete Table".
//!
//! ```http
//! DELETE /devstoreaccount1/Tables('Customers')
//!
//! 204 No Content
//! ```

use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;
use crate::operation::Write;
use crate::ops::deletion::{self, Freed};
use crate::ops::table::answer;
use crate::ops::table::name::TableRef;
use crate::records::TableRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Delete Table operation.
pub struct DeleteTable {
    table: TableRef,
    being_deleted_s: u64,
}

impl Write for DeleteTable {
    type Checked = TableRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        answer::format(call)?;
        Ok(DeleteTable {
            table: TableRef::of(call)?,
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<TableRecord, StorageError> {
        // Recorded, also for a table that is being deleted.
        self.table.find_or(view, ErrorCode::ResourceNotFound)
    }

    fn apply(
        self,
        mut table: TableRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        table.deleted_at = Some(stamp.now);
        let freed = Freed {
            now: stamp.now,
            being_deleted_s: self.being_deleted_s,
        };
        deletion::delete(tx, self.table.key(), &table, table.generation, freed)?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(answer::empty(204))
    }
}
