//! Who asks.

use smalt_protocol::signing::permissions::Permissions;
use uuid::Uuid;

use super::delegation::DelegationSecret;

/// `WWW-Authenticate` of a refusal that a token would mend.
pub(super) const CHALLENGE: &str = "Bearer \
    authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
    resource_id=https://storage.azure.com";

/// The detail of what neither a key nor a signature can do.
pub(super) const TOKEN_ONLY: &str = "Only authentication scheme Bearer is supported";

/// The element that names an account which does not exist.
pub const NO_ACCOUNT: &str = "AccountName";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nobody in particular.
    Anonymous,
    /// Holder of an account key.
    Owner,
    /// Holder of a token of Microsoft Entra ID.
    Entra(Principal),
    /// Holder of a shared access signature with these permissions, its own or its stored policy's.
    Sas(Permissions),
}

/// A user of Microsoft Entra ID, as the token names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Object id; nil when the token has none.
    pub object_id: Uuid,
    /// Tenant; nil when the token has none.
    pub tenant_id: Uuid,
    /// What keys of user delegations for this account are made with.
    pub delegation: DelegationSecret,
}

impl Identity {
    /// Whether a permission letter is held. Owner and token hold every one.
    pub fn may(self, letter: char) -> bool {
        match self {
            Identity::Owner | Identity::Entra(_) => true,
            Identity::Sas(permissions) => permissions.contains(letter),
            Identity::Anonymous => false,
        }
    }

    /// Whether all data of the account is open: what a copy within it goes by.
    pub fn is_account_wide(self) -> bool {
        matches!(self, Identity::Owner | Identity::Entra(_))
    }
}
