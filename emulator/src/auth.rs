//! Who asks, and whether they may.
//!
//! One of four ways in: Shared Key or a bearer token in the `Authorization` header, a shared access
//! signature in the query, or nobody at all. Each proves an [`Identity`]; what an operation
//! requires of it stands in the register. Sources: "Authorize with Shared Key", "Authorize with
//! Microsoft Entra ID", "Create a service SAS", "Create an account SAS", "Create a user delegation
//! SAS", "Configure anonymous read access".

mod anonymous;
mod bearer;
pub mod delegation;
mod needs;
mod sas;
mod scope;
mod shared_key;
mod token;

use http::header::AUTHORIZATION;
use smalt_protocol::signing::permissions::Permissions;
use smalt_protocol::signing::sas::{Sas, refused};
use smalt_protocol::signing::shared_key::{Authorization, parse_authorization};
use smalt_protocol::{ErrorCode, StorageError};
use uuid::Uuid;

use crate::call::Call;
use crate::config::Account;
use crate::core::Core;
use crate::register::{Anonymous, Entry};
use delegation::DelegationSecret;
pub use scope::bring_scope;

/// `WWW-Authenticate` of a refusal that a token would mend.
const CHALLENGE: &str = "Bearer \
    authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
    resource_id=https://storage.azure.com";

/// The detail of what neither a key nor a signature can do.
const TOKEN_ONLY: &str = "Only authentication scheme Bearer is supported";

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

/// Decides whether a call may run its operation, and in whose name.
///
/// # Errors
/// Azure's own refusal for the way in that was chosen.
pub fn authorise(core: &Core, call: &Call, entry: &Entry) -> Result<Identity, StorageError> {
    if entry.access.anonymous == Anonymous::Always {
        return Ok(Identity::Anonymous);
    }
    let identity = identify(core, call, entry)?;
    if entry.access.token_only && !matches!(identity, Identity::Entra(_)) {
        return Err(refused(TOKEN_ONLY));
    }
    Ok(identity)
}

/// Whether whoever sent a transaction may do what one of its requests asks for. The request has no
/// credentials of its own; its call has the identity of the transaction.
///
/// # Errors
/// 403 `AuthorizationPermissionMismatch`, 403 `AuthorizationFailure`.
pub fn permit(call: &Call, entry: &Entry) -> Result<(), StorageError> {
    match call.identity {
        Identity::Owner | Identity::Entra(_) => Ok(()),
        Identity::Sas(permissions) => {
            sas::check_letters(call, &entry.access, entry.access.service_sas, permissions)
        }
        Identity::Anonymous => Err(ErrorCode::AuthorizationFailure.into()),
    }
}

fn identify(core: &Core, call: &Call, entry: &Entry) -> Result<Identity, StorageError> {
    let authorization = match call.headers.get(AUTHORIZATION) {
        Some(header) => {
            let text = header.to_str();
            let text = text.map_err(|_| ErrorCode::InvalidAuthenticationInfo)?;
            Some(parse_authorization(text)?)
        }
        None => None,
    };
    match authorization {
        Some(Authorization::Key {
            scheme,
            account: name,
            signature,
        }) => {
            let account = known(core, call)?;
            let by_key = shared_key::authenticate(core, call, account, scheme, &name, &signature);
            by_key.or_else(|refused| by_signature(core, call, entry, account).ok_or(refused))
        }
        Some(Authorization::Bearer(token)) => match Sas::parse(&call.query)? {
            // A signature for one user only comes with that user's token.
            Some(sas) if !sas.get("sduoid").is_empty() => {
                let account = known(core, call)?;
                let principal = bearer::authenticate(core, call, account, &token)?;
                sas::authorise(core, call, account, entry, sas, Some(&principal))
            }
            _ => bearer::authorise(core, call, known(core, call)?, entry, &token),
        },
        None => match Sas::parse(&call.query)? {
            Some(sas) => sas::authorise(core, call, known(core, call)?, entry, sas, None),
            None => anonymous::authorise(core, call, entry),
        },
    }
}

/// A request that brings both a key's signature and a shared access signature is served by the
/// second where the first is wrong, as Azurite does; no document says which of the two counts.
fn by_signature(core: &Core, call: &Call, entry: &Entry, account: &Account) -> Option<Identity> {
    let sas = Sas::parse(&call.query).ok()??;
    sas::authorise(core, call, account, entry, sas, None).ok()
}

/// The account of a request with credentials. On Azure the host of one that does not exist has no
/// address; here, as at Azurite, it is a resource that does not exist.
fn known<'a>(core: &'a Core, call: &Call) -> Result<&'a Account, StorageError> {
    let name = call.account();
    core.config.account(name).ok_or_else(|| {
        StorageError::new(ErrorCode::ResourceNotFound).with_element(NO_ACCOUNT, name)
    })
}
