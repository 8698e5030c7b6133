//! What a SAS permits, and when.

use smalt_protocol::signing::permissions::Permissions;
use smalt_protocol::signing::sas::{Sas, refused};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{StorageError, Timestamp};

/// The permissions and the window of a SAS, together with its stored policy if it has one.
#[derive(Clone, Copy)]
pub struct Terms {
    pub permissions: Permissions,
    pub start: Option<Timestamp>,
    pub expiry: Option<Timestamp>,
}

impl Terms {
    /// Returns the terms of a SAS without a policy.
    pub fn of(sas: &Sas) -> Self {
        Terms {
            permissions: sas.permissions(),
            start: sas.start(),
            expiry: sas.expiry(),
        }
    }

    /// Merges a SAS with its policy. A field may be in one of them only; permissions and expiry
    /// must be in one of them ("Define a stored access policy").
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` for a field in both or in neither.
    pub fn with(sas: &Sas, policy: &SignedIdentifier) -> Result<Self, StorageError> {
        let permissions = one_of(
            "sp",
            Some(sas.get("sp")).filter(|sp| !sp.is_empty()),
            policy.permissions.as_deref(),
        )?;
        let permissions = permissions.ok_or_else(|| refused("sp is mandatory. Cannot be empty"))?;
        let expiry = one_of("se", sas.expiry(), policy.expiry)?;
        Ok(Terms {
            permissions: Permissions::parse(permissions)
                .ok_or_else(|| refused("Signature fields not well formed."))?,
            start: one_of("st", sas.start(), policy.start)?,
            expiry: Some(expiry.ok_or_else(|| refused("se is mandatory. Cannot be empty"))?),
        })
    }
}

fn one_of<T>(
    field: &str,
    in_sas: Option<T>,
    in_policy: Option<T>,
) -> Result<Option<T>, StorageError> {
    if in_sas.is_some() && in_policy.is_some() {
        return Err(refused(&format!(
            "{field} cannot be set in both the SAS and its policy."
        )));
    }
    Ok(in_sas.or(in_policy))
}
