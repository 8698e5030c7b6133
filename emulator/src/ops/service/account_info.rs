//! Get Account Information: returns the kind and redundancy of an account, for any resource in it.
//!
//! Source: "Get Account Information". The container or blob of the path need not exist.
//!
//! ```http
//! GET /devstoreaccount1/?restype=account&comp=properties
//!
//! 200 OK
//! x-ms-sku-name: Standard_RAGRS
//! x-ms-account-kind: StorageV2
//! ```

use smalt_protocol::{ApiVersion, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::reply::Reply;
use crate::store::{Store, View};

/// Since this version, the response says whether the account has a hierarchical namespace. Same
/// page.
const TELLS_NAMESPACE: ApiVersion = ApiVersion::V2019_07_07;

/// The Get Account Information operation.
pub struct GetAccountInfo;

impl Read for GetAccountInfo {
    type Output = ();

    fn parse(_: &Call) -> Result<Self, StorageError> {
        Ok(GetAccountInfo)
    }

    fn read(&self, _: &dyn View, _: Timestamp) -> Result<(), StorageError> {
        Ok(())
    }

    fn render(self, (): (), call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let reply = Reply::new(200)
            .header("x-ms-sku-name", call.settings.sku.as_str())
            .header("x-ms-account-kind", "StorageV2");
        let is_hierarchical = call.settings.hierarchical_namespace.to_string();
        let tells = call.version >= TELLS_NAMESPACE;
        Ok(reply.maybe("x-ms-is-hns-enabled", tells.then_some(is_hierarchical)))
    }
}
