//! Get Queue ACL and Set Queue ACL: the stored access policies of a queue.
//!
//! Sources: "Get Queue ACL", "Set Queue ACL". Set replaces all policies; an empty body clears them.
//!
//! ```http
//! PUT /devstoreaccount1/orders?comp=acl
//!
//! 204 No Content
//! ```

use bytes::Bytes;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::xml::{SignedIdentifier, SignedIdentifiersDocument};
use smalt_protocol::{ApiVersion, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::{Read, Takes, Write};
use crate::ops::policies;
use crate::ops::queue::name::QueueName;
use crate::records::{QueueRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Store, Transaction, View};

/// Permissions that a queue's policy may have. "Create a service SAS", permissions for a queue.
const PERMISSIONS: &str = "raup";
/// First version with policies of queues. "Get Queue ACL", "Set Queue ACL", remarks.
const POLICIES: ApiVersion = ApiVersion::V2012_02_12;

/// Returns the queue of a call; rejects versions without policies.
fn queue_of(call: &Call) -> Result<QueueName, StorageError> {
    if call.version < POLICIES {
        return Err(StorageError::no_such_operation("comp", "acl"));
    }
    QueueName::of(call)
}

/// The Get Queue ACL operation.
pub struct GetQueueAcl {
    name: QueueName,
}

impl Read for GetQueueAcl {
    type Output = Vec<SignedIdentifier>;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetQueueAcl {
            name: queue_of(call)?,
        })
    }

    fn read(&self, view: &dyn View, _: Timestamp) -> Result<Self::Output, StorageError> {
        Ok(self.name.find(view)?.policies)
    }

    fn render(
        self,
        stored: Vec<SignedIdentifier>,
        _: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        Ok(Reply::xml(200, SignedIdentifiersDocument::render(&stored))
            .header("cache-control", "no-cache"))
    }
}

/// The Set Queue ACL operation.
pub struct SetQueueAcl {
    name: QueueName,
    policies: Vec<SignedIdentifier>,
}

impl Write for SetQueueAcl {
    type Checked = QueueRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetQueueAcl {
            name: queue_of(call)?,
            policies: Vec::new(),
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.policies = policies::read(&document, PERMISSIONS)?;
        Ok(())
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        mut queue: QueueRecord,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<(), StorageError> {
        queue.policies = self.policies;
        queue.save(tx, self.name.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
