//! Who asks, and whether they may.
//!
//! One of three ways in: Shared Key in the `Authorization` header, a shared access signature in the
//! query, or nobody at all. Each proves an [`Identity`]; what an operation requires of it stands in
//! the register. Sources: "Authorize with Shared Key", "Create a service SAS", "Create an account
//! SAS", "Configure anonymous read access".

mod anonymous;
mod sas;
mod shared_key;

use http::header::AUTHORIZATION;
use smalt_protocol::signing::permissions::Permissions;
use smalt_protocol::signing::sas::Sas;
use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;
use crate::config::Account;
use crate::core::Core;
use crate::register::{Anonymous, Entry};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nobody in particular.
    Anonymous,
    /// Holder of an account key.
    Owner,
    /// Holder of a shared access signature with these permissions, its own or its stored policy's.
    Sas(Permissions),
}

impl Identity {
    /// Whether a permission letter is held. The owner holds every one.
    pub fn may(self, letter: char) -> bool {
        match self {
            Identity::Owner => true,
            Identity::Sas(permissions) => permissions.contains(letter),
            Identity::Anonymous => false,
        }
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
    let account = core.config.account(call.account());
    if let Some(header) = call.headers.get(AUTHORIZATION) {
        let text = header
            .to_str()
            .map_err(|_| ErrorCode::InvalidAuthenticationInfo)?;
        return shared_key::authenticate(core, call, known(account, call)?, text);
    }
    if let Some(sas) = Sas::parse(&call.query)? {
        return sas::authorise(core, call, known(account, call)?, entry, &sas);
    }
    anonymous::authorise(core, call, entry)
}

/// The account of a request with credentials.
fn known<'a>(account: Option<&'a Account>, call: &Call) -> Result<&'a Account, StorageError> {
    account.ok_or_else(|| {
        let detail = format!("The account {} is not configured.", call.account());
        smalt_protocol::signing::sas::refused(&detail)
    })
}
