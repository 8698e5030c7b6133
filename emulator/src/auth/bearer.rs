//! Bearer tokens of Microsoft Entra ID: HTTPS only, and only where they are switched on.
//!
//! Who brings a valid token may do to data what the account's owner may: there are no role
//! assignments here. What only an account key does on Azure (the access policies of containers,
//! queues and tables, before [`POLICIES`]) a token does not do here either. Source: "Authorize
//! with Microsoft Entra ID"; codes and details are those that Azure gives.

use smalt_protocol::signing::sas::refused;
use smalt_protocol::{ApiVersion, ErrorCode, Service, StorageError};

use super::delegation::DelegationSecret;
use super::identity::{CHALLENGE, Identity, Principal};
use super::token::Claims;
use crate::call::Call;
use crate::config::{Account, OAuth};
use crate::core::Core;
use crate::register::Access;

/// The first version that takes tokens.
const TOKENS: ApiVersion = ApiVersion::V2017_11_09;
/// The first version that refuses a token with a challenge: 401 in place of 403.
const CHALLENGES: ApiVersion = ApiVersion::V2019_12_12;
/// The first version whose access policies a token may read and write.
const POLICIES: ApiVersion = ApiVersion::V2025_05_05;

/// Checks a token, and whether the operation takes one.
pub fn authorise(
    core: &Core,
    call: &Call,
    account: &Account,
    access: &Access,
    token: &str,
) -> Result<Identity, StorageError> {
    let principal = authenticate(core, call, account, token)?;
    if access.is_owners() && call.version < POLICIES {
        // Observed: as if there were no such resource. Of tables Azurite says that they refuse it.
        return Err(match call.service() {
            Service::Table => ErrorCode::AuthorizationFailure.into(),
            Service::Blob | Service::Queue => ErrorCode::ResourceNotFound.into(),
        });
    }
    Ok(Identity::Entra(principal))
}

/// Who a token is for.
pub fn authenticate(
    core: &Core,
    call: &Call,
    account: &Account,
    token: &str,
) -> Result<Principal, StorageError> {
    if call.version < TOKENS {
        return Err(refused(
            "Authentication scheme Bearer is not supported in this version.",
        ));
    }
    if core.config.oauth == OAuth::Off {
        return Err(rejected(
            call,
            "Authentication scheme Bearer is not supported: smalt runs without --oauth basic.",
        ));
    }
    if !call.secure {
        return Err(refused(
            "Authentication scheme Bearer is not allowed with HTTP.",
        ));
    }
    let claims =
        Claims::parse(token).ok_or_else(|| rejected(call, "The token is no JSON Web Token."))?;
    claims
        .check(call.account(), call.service(), call.arrival)
        .map_err(|detail| rejected(call, detail))?;
    let key = account
        .keys
        .first()
        .ok_or_else(|| refused("The account has no key."))?;
    Ok(Principal {
        object_id: claims.object_id(),
        tenant_id: claims.tenant_id(),
        delegation: DelegationSecret::of(call.account(), key),
    })
}

/// The refusal of a token.
fn rejected(call: &Call, detail: &str) -> StorageError {
    if call.version < CHALLENGES {
        return refused(detail);
    }
    StorageError::new(ErrorCode::InvalidAuthenticationInfo)
        .with_status(401)
        .with_message(ErrorCode::NoAuthenticationInformation.message())
        .with_element("AuthenticationErrorDetail", detail)
        .with_header("www-authenticate", CHALLENGE)
}
