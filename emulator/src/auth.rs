//! Identifies the caller and checks its permissions.
//!
//! A request has one of four kinds of credentials: Shared Key or a bearer token in the
//! `Authorization` header, a shared access signature in the query, or none. Each proves an
//! [`Identity`]; the register says what an operation requires of it. Sources: "Authorize with
//! Shared Key", "Authorize with Microsoft Entra ID", "Create a service SAS", "Create an account
//! SAS", "Create a user delegation SAS", "Configure anonymous read access".

mod anonymous;
mod bearer;
pub mod delegation;
mod identity;
pub mod issuer;
pub mod key_set;
mod needs;
mod proofs;
pub mod roles;
mod sas;
mod scope;
mod shared_key;
mod terms;
mod token;

use http::Method;
use http::header::AUTHORIZATION;
use smalt_protocol::signing::sas::refused;
use smalt_protocol::signing::shared_key::{Authorization, parse_authorization};
use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;
use crate::config::Account;
use crate::core::Core;
use crate::register::{Access, Anonymous};
use crate::target::{Resource, Target};
use identity::TOKEN_ONLY;
pub use identity::{Identity, NO_ACCOUNT, Principal};
pub use needs::of_lists;
use proofs::Given;
pub use proofs::Proofs;
pub use scope::bring_scope;

/// Checks whether a call may run its operation, and returns its identity.
///
/// # Errors
/// Azure's refusal for the kind of credentials in the request.
pub fn authorise(core: &Core, call: &Call, access: &Access) -> Result<Identity, StorageError> {
    if access.anonymous == Anonymous::Always {
        return Ok(Identity::Anonymous);
    }
    let identity = identify(core, call, access)?;
    if access.token_only && !matches!(identity, Identity::Entra(_)) {
        return Err(refused(TOKEN_ONLY));
    }
    Ok(identity)
}

/// Checks whether the sender of a transaction may run one of its requests. The request has no
/// credentials; its call has the identity of the transaction.
///
/// # Errors
/// 403 `AuthorizationPermissionMismatch`, 403 `AuthorizationFailure`.
pub fn permit(call: &Call, access: &Access) -> Result<(), StorageError> {
    match call.identity {
        Identity::Owner => Ok(()),
        Identity::Entra(principal) => needs::check_roles(call, access, principal.object_id),
        Identity::Sas(permissions) => {
            sas::check_letters(call, access, access.service_sas, permissions)
        }
        Identity::Anonymous => Err(ErrorCode::AuthorizationFailure.into()),
    }
}

/// Checks that a caller whose credentials are proven may remove a path of its account, which a
/// rename moves. A signature that the path's own `query` has counts, else that of the request, and
/// must reach the path as it must in a request to it. "Create a service SAS": `m` moves a path, `d`
/// deletes it.
///
/// # Errors
/// Azure's refusal for the signature; 403 `AuthorizationPermissionMismatch`.
pub fn permit_removal(
    core: &Core,
    call: &Call,
    (container, path): (String, String),
    query: Vec<(String, String)>,
) -> Result<(), StorageError> {
    const REMOVAL: Access = Access::object("dm");
    match call.identity {
        Identity::Owner => Ok(()),
        Identity::Entra(user) if user.is_checked => Ok(()),
        Identity::Entra(user) => {
            let held = needs::held_in_container(call, user.object_id, &container);
            match held.may('d') {
                true => Ok(()),
                false => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
            }
        }
        Identity::Sas(_) | Identity::Anonymous => {
            let target = Target {
                resource: Resource::Blob(container, path),
                ..call.target.clone()
            };
            let query = match query.is_empty() {
                true => call.query.clone(),
                false => query,
            };
            let removal = call.within(Method::DELETE, target, query, call.settings.clone());
            authorise(core, &removal, &REMOVAL).map(|_| ())
        }
    }
}

/// As whom the caller of a copy reads a source in its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyReader {
    /// Its key or its role permits the read.
    Permitted,
    /// Access control lists decide.
    Listed,
    /// As anybody does.
    Stranger,
}

/// Returns as whom the caller of a copy reads blobs of a container of its account. The source is
/// judged by itself, whatever permits the destination: where no role permits the read, the access
/// control lists decide. Source: "Access control model in Azure Data Lake Storage".
pub fn reader(call: &Call, container: &str) -> CopyReader {
    match call.identity {
        Identity::Owner => CopyReader::Permitted,
        Identity::Entra(principal) => {
            let held = needs::held_in_container(call, principal.object_id, container);
            match held.may('r') {
                true => CopyReader::Permitted,
                false if call.has_access_lists() => CopyReader::Listed,
                false => CopyReader::Stranger,
            }
        }
        Identity::Sas(_) | Identity::Anonymous => CopyReader::Stranger,
    }
}

fn identify(core: &Core, call: &Call, access: &Access) -> Result<Identity, StorageError> {
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
            by_key.or_else(|refused| by_signature(core, call, access, account).ok_or(refused))
        }
        Some(Authorization::Bearer(token)) => match Given::of(call, &core.proofs)? {
            // A signature for a single user needs that user's token as well.
            Some(sas) if !sas.sas().get("sduoid").is_empty() => {
                let account = known(core, call)?;
                let principal = bearer::authenticate(core, call, account, &token)?;
                sas::authorise(core, call, account, access, sas, Some(&principal))
            }
            _ => bearer::authorise(core, call, known(core, call)?, access, &token),
        },
        None => match Given::of(call, &core.proofs)? {
            Some(sas) => sas::authorise(core, call, known(core, call)?, access, sas, None),
            None => anonymous::authorise(core, call, access),
        },
    }
}

/// Tries the shared access signature of a request whose key signature is wrong, as Azurite does; no
/// document says which of the two counts.
fn by_signature(core: &Core, call: &Call, access: &Access, account: &Account) -> Option<Identity> {
    let sas = Given::of(call, &core.proofs).ok()??;
    sas::authorise(core, call, account, access, sas, None).ok()
}

/// Returns the account of a request with credentials. On Azure the host name of a missing account
/// does not resolve; here, as in Azurite, it is a missing resource.
fn known<'a>(core: &'a Core, call: &Call) -> Result<&'a Account, StorageError> {
    let name = call.account();
    core.config.account(name).ok_or_else(|| {
        StorageError::new(ErrorCode::ResourceNotFound).with_element(NO_ACCOUNT, name)
    })
}
