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
use uuid::Uuid;

use crate::call::Call;
use crate::operation::{Takes, Write};
use crate::ops::container::access::parse_public_access;
use crate::ops::leasing::lease_id;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, PublicAccess, Record};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Leased, check_read};
use crate::store::{Stamp, Transaction, View};

/// Set Container ACL.
pub struct SetContainerAcl {
    name: ContainerName,
    lease_id: Option<Uuid>,
    conditions: Conditions,
    public_access: PublicAccess,
    policies: Vec<SignedIdentifier>,
}

impl Write for SetContainerAcl {
    type Checked = ContainerRecord;
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetContainerAcl {
            name: ContainerName::of(call)?,
            lease_id: lease_id(call)?,
            conditions: Conditions::of_write(&call.headers)?,
            public_access: parse_public_access(call)?,
            policies: Vec::new(),
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document {
            most: XML_BODY_BYTES_MAX,
        }
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.policies = SignedIdentifiersDocument::read(&document)?;
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        let container = self.name.find(view, stamp.now)?;
        check_read(Leased::Container, container.lease, self.lease_id)?;
        self.conditions.check_write((&container).into())?;
        Ok(container)
    }

    fn apply(
        self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<ContainerRecord, StorageError> {
        container.public_access = self.public_access;
        container.policies = self.policies;
        container.touch(stamp);
        container.save(tx, self.name.key())?;
        Ok(container)
    }

    fn render(changed: ContainerRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200).version(changed.etag, changed.last_modified))
    }
}
