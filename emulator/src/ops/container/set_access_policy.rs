//! Set Container ACL: replaces public access and the stored access policies.
//!
//! Source: "Set Container ACL".
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container&comp=acl
//! x-ms-blob-public-access: container
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use bytes::Bytes;
use smalt_protocol::StorageError;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::xml::{SignedIdentifier, SignedIdentifiersDocument};

use crate::call::Call;
use crate::operation::{Takes, Write};
use crate::ops::container::access::parse_public_access;
use crate::ops::container::change::{self, Change};
use crate::records::{ContainerRecord, PublicAccess};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Set Container ACL operation.
pub struct SetContainerAcl {
    change: Change,
    public_access: PublicAccess,
    policies: Vec<SignedIdentifier>,
}

impl Write for SetContainerAcl {
    type Checked = ContainerRecord;
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetContainerAcl {
            change: Change::of(call)?,
            public_access: parse_public_access(call)?,
            policies: Vec::new(),
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.policies = SignedIdentifiersDocument::read(&document)?;
        Ok(())
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
        container.public_access = self.public_access;
        container.policies = self.policies;
        self.change.keep(container, tx, stamp)
    }

    fn render(changed: ContainerRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(change::reply(&changed))
    }
}
