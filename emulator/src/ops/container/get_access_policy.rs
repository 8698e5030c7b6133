//! Get Container ACL: returns public access and the stored access policies.
//!
//! Source: "Get Container ACL".
//!
//! ```http
//! GET /devstoreaccount1/events?restype=container&comp=acl
//!
//! 200 OK
//! x-ms-blob-public-access: blob
//!
//! <?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />
//! ```

use smalt_protocol::xml::{SignedIdentifier, SignedIdentifiersDocument};
use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::ops::container::get_properties::GetContainerProperties;
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::store::{Store, View};

/// The Get Container ACL operation.
pub struct GetContainerAcl(GetContainerProperties);

impl Read for GetContainerAcl {
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        GetContainerProperties::parse(call).map(GetContainerAcl)
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<ContainerRecord, StorageError> {
        self.0.read(view, now)
    }

    fn render(self, found: ContainerRecord, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        check_letters(call, &found.policies)?;
        Ok(
            Reply::xml(200, SignedIdentifiersDocument::render(&found.policies))
                .version(found.etag, found.last_modified)
                .maybe("x-ms-blob-public-access", found.public_access.header()),
        )
    }
}

/// Rejects the permissions `a` and `c` in versions before 2015-04-05. "Shared access signature
/// error codes".
fn check_letters(call: &Call, policies: &[SignedIdentifier]) -> Result<(), StorageError> {
    let is_newer = |policy: &SignedIdentifier| {
        let letters = policy.permissions.as_deref().unwrap_or_default();
        letters.contains(['a', 'c'])
    };
    if call.version < ApiVersion::V2015_04_05 && policies.iter().any(is_newer) {
        return Err(ErrorCode::FeatureVersionMismatch.into());
    }
    Ok(())
}
