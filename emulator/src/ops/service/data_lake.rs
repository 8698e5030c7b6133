//! Any Data Lake operation on an account with a flat namespace.
//!
//! Production rejects it before it looks for the file system or path: the tests of Apache Arrow's
//! file system expect the same response for a container that does not exist. With soft delete the
//! interface rejects the account as a whole (Azure/azure-sdk-for-python, issue 22775). Clients take
//! either error as the sign of a flat namespace: Arrow's file system, and Hadoop's ABFS by status
//! alone, because it asks with HEAD.
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

/// Rejects any operation of the Data Lake interface.
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
