//! Rename Container: renames a container with all its contents in one write.
//!
//! Source: recordings; the interface definition names it, no document describes it. The new name is
//! checked first; an active lease needs its id and is not kept. Versions since 2021-12-02 do not
//! have the operation, as recorded.
//!
//! ```http
//! PUT /devstoreaccount1/events-2026?restype=container&comp=rename
//! x-ms-version: 2020-06-12
//! x-ms-source-container-name: events
//!
//! 200 OK
//! ```

use smalt_protocol::{ApiVersion, StorageError, names};
use uuid::Uuid;

use crate::call::Call;
use crate::operation::Write;
use crate::ops::container::create::check_free;
use crate::ops::container::system::check_removable;
use crate::ops::leasing::source_lease_id;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::rules::lease::{LeaseState, Leased, check_write};
use crate::store::{Stamp, Transaction, View};

const UNKNOWN: ApiVersion = ApiVersion::V2021_12_02;

/// The Rename Container operation.
pub struct RenameContainer {
    name: ContainerName,
    source: ContainerName,
    lease_id: Option<Uuid>,
    being_deleted_s: u64,
}

impl Write for RenameContainer {
    type Checked = ContainerRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const SOURCE: &str = "x-ms-source-container-name";
        let source = call.required_header(SOURCE)?;
        if call.version >= UNKNOWN {
            return Err(StorageError::no_such_operation("comp", "rename"));
        }
        names::validate_container_name(source)
            .map_err(|_| StorageError::invalid_header(SOURCE, source))?;
        let name = ContainerName::of(call)?;
        Ok(RenameContainer {
            source: ContainerName {
                container: source.to_owned(),
                ..name.clone()
            },
            name,
            lease_id: source_lease_id(call)?,
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        check_free(view, &self.name, self.being_deleted_s, stamp.now)?;
        let container = self.source.find(view, stamp.now)?;
        check_removable(&self.source)?;
        check_write(Leased::Container, container.lease, self.lease_id)?;
        Ok(container)
    }

    fn apply(
        self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        // The contents are keyed by the generation and stay where they are.
        tx.delete(self.source.key());
        container.lease = LeaseState::Available;
        container.touch(stamp);
        container.save(tx, self.name.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200))
    }
}
