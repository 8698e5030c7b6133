//! Bearer tokens of Microsoft Entra ID: over HTTPS only, and only when they are enabled.
//!
//! What a token permits follows from the roles of its user, and from access control lists where no
//! role suffices. Operations that need an account key on Azure (the access policies of containers,
//! queues and tables, before [`POLICIES`]) need it here as well. Source: "Authorize with Microsoft
//! Entra ID"; codes and details are Azure's.

use smalt_protocol::signing::sas::refused;
use smalt_protocol::{ApiVersion, ErrorCode, Service, StorageError};

use super::delegation::DelegationSecret;
use super::identity::{CHALLENGE, Identity, Principal};
use super::roles::Held;
use super::token::Claims;
use super::{key_set, needs};
use crate::call::Call;
use crate::config::{Account, OAuth};
use crate::core::Core;
use crate::register::Access;

/// The first version that accepts tokens.
const TOKENS: ApiVersion = ApiVersion::V2017_11_09;
/// The first version that refuses a token with a challenge: 401 in place of 403.
const CHALLENGES: ApiVersion = ApiVersion::V2019_12_12;
/// The first version whose access policies a token may read and write.
const POLICIES: ApiVersion = ApiVersion::V2025_05_05;

/// Checks a token, and whether it permits the operation.
pub fn authorise(
    core: &Core,
    call: &Call,
    account: &Account,
    access: &Access,
    token: &str,
) -> Result<Identity, StorageError> {
    let mut principal = authenticate(core, call, account, token)?;
    if access.is_owners() && call.version < POLICIES {
        // Observed: as if the resource did not exist. Azurite documents a refusal for tables.
        return Err(match call.service() {
            Service::Table => ErrorCode::AuthorizationFailure.into(),
            Service::Blob | Service::Queue => ErrorCode::ResourceNotFound.into(),
        });
    }
    principal.held = needs::held(call, access, principal.object_id);
    if !needs::suffice(&principal.held, call, access) {
        if !call.has_access_lists() {
            return Err(ErrorCode::AuthorizationPermissionMismatch.into());
        }
        principal.is_checked = true;
    }
    Ok(Identity::Entra(principal))
}

/// Checks a token and returns its user, without roles.
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
            "Authentication scheme Bearer is not supported: smalt runs without --oauth.",
        ));
    }
    if !call.secure {
        return Err(refused(
            "Authentication scheme Bearer is not allowed with HTTP.",
        ));
    }
    let claims =
        Claims::parse(token).ok_or_else(|| rejected(call, "The token is not a JSON Web Token."))?;
    if core.config.oauth == OAuth::Verified {
        let own = core.issuer.keys();
        let own = own.map_err(|error| StorageError::internal(error.to_string()))?;
        key_set::verify(token, &[own, &core.config.token_keys])
            .map_err(|detail| rejected(call, detail))?;
    }
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
        held: Held::NONE,
        is_checked: false,
    })
}

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
