//! Create Container: a new, empty container under a free name.
//!
//! Source: "Create Container".
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container
//! x-ms-meta-team: billing
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ETag, ErrorCode, Metadata, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Write;
use crate::ops::container::access::parse_public_access;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, PublicAccess, Record};
use crate::reply::Reply;
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, Transaction, View};

/// Create Container.
pub struct CreateContainer {
    name: ContainerName,
    metadata: Metadata,
    public_access: PublicAccess,
}

/// Tag and time of the new container.
pub struct Created {
    etag: ETag,
    last_modified: Timestamp,
}

impl Write for CreateContainer {
    type Checked = ();
    type Output = Created;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(CreateContainer {
            name: ContainerName::of(call)?,
            metadata: call.metadata()?,
            public_access: parse_public_access(call)?,
        })
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<(), StorageError> {
        match self.name.load(view)? {
            None => Ok(()),
            Some(container) if container.deleted_at.is_some() => {
                Err(ErrorCode::ContainerBeingDeleted.into())
            }
            Some(_) => Err(ErrorCode::ContainerAlreadyExists.into()),
        }
    }

    fn apply(
        self,
        (): (),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Created, StorageError> {
        let etag = ETag::from_tick(stamp.tick);
        let container = ContainerRecord {
            generation: stamp.tick.ticks(),
            etag,
            last_modified: stamp.now,
            metadata: self.metadata,
            public_access: self.public_access,
            policies: Vec::new(),
            lease: LeaseState::Available,
            deleted_at: None,
            encryption_scope: None,
        };
        container.save(tx, self.name.key())?;
        Ok(Created {
            etag,
            last_modified: stamp.now,
        })
    }

    fn render(created: Created, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(201).version(created.etag, created.last_modified))
    }
}
