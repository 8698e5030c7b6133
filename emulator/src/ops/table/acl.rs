//! Get Table ACL and Set Table ACL: the stored access policies of a table.
//!
//! Sources: "Get Table ACL", "Set Table ACL". Set replaces all policies; an empty body clears them.
//!
//! ```http
//! PUT /devstoreaccount1/Customers?comp=acl
//!
//! 204 No Content
//! ```

use bytes::Bytes;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::xml::{SignedIdentifier, SignedIdentifiersDocument};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::operation::{Read, Takes, Write};
use crate::ops::policies;
use crate::ops::table::name::TableRef;
use crate::records::{Record, TableRecord};
use crate::reply::Reply;
use crate::store::{Stamp, Store, Transaction, View};

/// Permissions that a table's policy may have. "Create a service SAS", permissions for a table.
const PERMISSIONS: &str = "raud";

/// The Get Table ACL operation.
pub struct GetTableAcl {
    table: TableRef,
}

impl Read for GetTableAcl {
    type Output = Vec<SignedIdentifier>;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetTableAcl {
            table: TableRef::of(call)?,
        })
    }

    fn read(&self, view: &dyn View, _: Timestamp) -> Result<Self::Output, StorageError> {
        Ok(self.table.find(view)?.policies)
    }

    fn render(
        self,
        stored: Vec<SignedIdentifier>,
        _: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        Ok(Reply::xml(200, SignedIdentifiersDocument::render(&stored)))
    }
}

/// The Set Table ACL operation.
pub struct SetTableAcl {
    table: TableRef,
    policies: Vec<SignedIdentifier>,
}

impl Write for SetTableAcl {
    type Checked = TableRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetTableAcl {
            table: TableRef::of(call)?,
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

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<TableRecord, StorageError> {
        self.table.find(view)
    }

    fn apply(
        self,
        mut table: TableRecord,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<(), StorageError> {
        table.policies = self.policies;
        table.save(tx, self.table.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
