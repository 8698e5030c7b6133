//! Get User Delegation Key: returns a key that signs SAS on behalf of the caller's token.
//!
//! Source: "Get User Delegation Key". The key is derived from its parameters
//! (`auth/delegation.rs`), so that it is not stored. A key lasts at most seven days from now.
//!
//! ```http
//! POST /devstoreaccount1/?restype=service&comp=userdelegationkey
//! Authorization: Bearer eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9...
//!
//! <KeyInfo><Start>2023-01-01T00:00:00Z</Start><Expiry>2023-01-02T00:00:00Z</Expiry></KeyInfo>
//!
//! 200 OK
//!
//! <?xml version="1.0" encoding="utf-8"?><UserDelegationKey><SignedOid>...
//! ```

use bytes::Bytes;
use smalt_protocol::limits::{USER_DELEGATION_KEY_S_MAX, XML_BODY_BYTES_MAX};
use smalt_protocol::xml::user_delegation_key::{KeyInfo, UserDelegationKeyDocument, refused_value};
use smalt_protocol::{ApiVersion, Service, StorageError, Timestamp};

use crate::auth::delegation::Terms;
use crate::auth::{Identity, Principal};
use crate::call::Call;
use crate::operation::{Read, Takes};
use crate::reply::Reply;
use crate::store::{Store, View};

/// The Get User Delegation Key operation.
pub struct GetUserDelegationKey {
    principal: Principal,
    asked: Option<KeyInfo>,
}

/// The key's validity period, once it was checked.
pub struct Window {
    start: Timestamp,
    expiry: Timestamp,
}

fn known_since(service: Service) -> ApiVersion {
    match service {
        Service::Blob => ApiVersion::V2018_11_09,
        Service::Queue | Service::Table => ApiVersion::V2025_07_05,
    }
}

impl Read for GetUserDelegationKey {
    type Output = Window;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        if call.version < known_since(call.service()) {
            return Err(StorageError::no_such_operation("comp", "userdelegationkey"));
        }
        let Identity::Entra(principal) = call.identity else {
            return Err(StorageError::internal("the register requires a token"));
        };
        Ok(GetUserDelegationKey {
            principal,
            asked: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.asked = Some(KeyInfo::read(&document)?);
        Ok(())
    }

    /// Observed: an expiry beyond seven days is rejected as a value of the wrong format.
    fn read(&self, _: &dyn View, now: Timestamp) -> Result<Window, StorageError> {
        let asked = self.asked.as_ref();
        let asked = asked.ok_or_else(|| StorageError::internal("no document was read"))?;
        let start = asked.start.unwrap_or(now);
        let latest = now.plus_s(USER_DELEGATION_KEY_S_MAX);
        if start > latest {
            return Err(refused_value(&start.iso_s()));
        }
        if asked.expiry > latest || asked.expiry <= start || asked.expiry <= now {
            return Err(refused_value(&asked.expiry.iso_s()));
        }
        Ok(Window {
            start,
            expiry: asked.expiry,
        })
    }

    fn render(self, window: Window, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let object_id = self.principal.object_id.to_string();
        let tenant_id = self.principal.tenant_id.to_string();
        let service = call.service().letter();
        let version = call.version.to_string();
        let delegated_tenant = self.asked.and_then(|asked| asked.delegated_tenant);
        let value = self.principal.delegation.key(&Terms {
            object_id: &object_id,
            tenant_id: &tenant_id,
            start: window.start,
            expiry: window.expiry,
            service: &service.to_string(),
            version: &version,
            delegated_tenant: delegated_tenant.as_deref().unwrap_or_default(),
        });
        let document = UserDelegationKeyDocument {
            object_id: &object_id,
            tenant_id: &tenant_id,
            start: window.start,
            expiry: window.expiry,
            service,
            version: &version,
            delegated_tenant: delegated_tenant.as_deref(),
            value: &value,
        };
        Ok(Reply::xml(200, document.render()))
    }
}
