//! Set Container Metadata: replaces all user metadata.
//!
//! Source: "Set Container Metadata".
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container&comp=metadata
//! x-ms-meta-team: billing
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{Metadata, StorageError};

use crate::call::Call;
use crate::operation::Write;
use crate::ops::container::change::{self, Change};
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Set Container Metadata operation.
pub struct SetContainerMetadata {
    change: Change,
    metadata: Metadata,
}

impl Write for SetContainerMetadata {
    type Checked = ContainerRecord;
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetContainerMetadata {
            change: Change::of(call)?,
            metadata: call.metadata()?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        self.change.check(view, stamp)
    }

    fn apply(
        self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<ContainerRecord, StorageError> {
        container.metadata = self.metadata;
        self.change.keep(container, tx, stamp)
    }

    fn render(changed: ContainerRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(change::reply(&changed))
    }
}
