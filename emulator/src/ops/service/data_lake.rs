//! Any operation of the Data Lake interface on an account with a flat namespace.
//!
//! Production refuses before it looks for the file system or path: the tests of Apache Arrow's
//! file system expect the same answer for a container that is not there. With soft delete the
//! interface refuses the account as a whole (Azure/azure-sdk-for-python, issue 22775). Clients
//! take either refusal for the sign of a flat namespace: Arrow's file system, and Hadoop's ABFS
//! by status alone, because it asks with HEAD.
//!
//! ```http
//! HEAD /devstoreaccount1/events/?action=getAccessControl
//!
//! 400 Bad Request
//! x-ms-error-code: HierarchicalNamespaceNotEnabled
//! ```

use std::convert::Infallible;

use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::ops::service::properties::Owner;
use crate::reply::Reply;
use crate::store::{Store, View};

/// Any operation of the Data Lake interface.
pub struct RefuseFlatNamespace(Owner);

impl Read for RefuseFlatNamespace {
    type Output = Infallible;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(RefuseFlatNamespace(Owner::of(call)))
    }

    fn read(&self, view: &dyn View, _: Timestamp) -> Result<Infallible, StorageError> {
        let soft_delete = self.0.load(view)?.delete_retention.retention;
        Err(if soft_delete.0.is_some() {
            ErrorCode::EndpointUnsupportedAccountFeatures.into()
        } else {
            ErrorCode::HierarchicalNamespaceNotEnabled.into()
        })
    }

    fn render(self, never: Infallible, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        match never {}
    }
}
