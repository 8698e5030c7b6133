//! The identity of a caller.

use smalt_protocol::signing::permissions::Permissions;
use uuid::Uuid;

use super::delegation::DelegationSecret;
use super::roles::Held;

/// `WWW-Authenticate` of a refusal that a token would avoid.
pub(super) const CHALLENGE: &str = "Bearer \
    authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
    resource_id=https://storage.azure.com";

/// Error detail of operations that accept neither a key nor a signature.
pub(super) const TOKEN_ONLY: &str = "Only authentication scheme Bearer is supported";

/// Error element that names a missing account.
pub const NO_ACCOUNT: &str = "AccountName";

/// The proven identity of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A caller without credentials.
    Anonymous,
    /// The holder of an account key.
    Owner,
    /// The holder of a Microsoft Entra ID token.
    Entra(Principal),
    /// The holder of a shared access signature, with the permissions of it or of its stored policy.
    Sas(Permissions),
}

/// A Microsoft Entra ID user, as the token names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Object id; nil when the token has none.
    pub object_id: Uuid,
    /// Tenant; nil when the token has none.
    pub tenant_id: Uuid,
    /// The secret for user delegation keys of this account.
    pub delegation: DelegationSecret,
    /// What roles permit.
    pub held: Held,
    /// Whether access control lists decide, because no role suffices.
    pub is_checked: bool,
}

impl Identity {
    /// Returns whether the caller has a permission letter. An owner has every one, and so has a
    /// user for whom access control lists decide.
    pub fn may(self, letter: char) -> bool {
        match self {
            Identity::Owner => true,
            Identity::Entra(user) => user.is_checked || user.held.may(letter),
            Identity::Sas(permissions) => permissions.contains(letter),
            Identity::Anonymous => false,
        }
    }
}
