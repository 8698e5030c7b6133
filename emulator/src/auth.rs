//! Who asks, and whether they may.

use smalt_protocol::StorageError;

use crate::call::Call;
use crate::core::Core;
use crate::register::Entry;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nobody in particular.
    Anonymous,
    /// Holder of an account key.
    Owner,
    /// Holder of a shared access signature with these permission letters.
    Sas {
        /// Permission letters, of the signature or its stored policy.
        permissions: String,
    },
}

impl Identity {
    /// Whether a permission letter is held. The owner holds every one.
    pub fn may(&self, letter: char) -> bool {
        match self {
            Identity::Owner => true,
            Identity::Sas { permissions } => permissions.contains(letter),
            Identity::Anonymous => false,
        }
    }
}

/// Decides whether a call may run its operation.
pub fn authorise(_core: &Core, _call: &Call, _entry: &Entry) -> Result<Identity, StorageError> {
    Ok(Identity::Owner)
}
