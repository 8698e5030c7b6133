//! Stored access policies between the wire and the store.

use smalt_protocol::Timestamp;
use smalt_protocol::xml::SignedIdentifier;

use crate::records::StoredPolicy;

impl StoredPolicy {
    /// As it is shown.
    pub fn identifier(&self) -> SignedIdentifier {
        let time = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse_iso);
        SignedIdentifier {
            id: self.id.clone(),
            start: time(&self.start),
            expiry: time(&self.expiry),
            permissions: self.permission.clone(),
        }
    }
}

impl From<SignedIdentifier> for StoredPolicy {
    fn from(given: SignedIdentifier) -> Self {
        StoredPolicy {
            id: given.id,
            start: given.start.map(Timestamp::iso_ticks),
            expiry: given.expiry.map(Timestamp::iso_ticks),
            permission: given.permissions,
        }
    }
}
