//! Settings of an emulator.

use std::collections::BTreeMap;

use smalt_protocol::connection_string::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};

/// Settings of an emulator. The defaults are Azurite's: one account, its well-known key.
#[derive(Clone, Debug)]
pub struct Config {
    /// Accounts by name.
    pub accounts: BTreeMap<String, Account>,
    /// Host names may carry the account (`account.blob.example`).
    pub host_style: bool,
    /// Versions newer than any known are refused, as Azure would.
    pub strict_api_version: bool,
    /// The skew check of signed requests uses the emulator's clock instead of the wall's.
    pub strict_skew: bool,
    /// How long a deleted container or queue stays *being deleted*, in seconds. Azure: about 30.
    pub being_deleted_s: u64,
    /// Requests may skip what Azurite calls strict mode.
    pub loose: bool,
}

/// One account.
#[derive(Clone)]
pub struct Account {
    /// Keys; every one of them is valid.
    pub keys: Vec<Vec<u8>>,
    /// Whether containers may be opened to anonymous readers.
    pub public_access: bool,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("keys", &self.keys.len())
            .field("public_access", &self.public_access)
            .finish()
    }
}

impl Account {
    /// An account with this key.
    pub fn with_key(key: Vec<u8>) -> Self {
        Account { keys: vec![key], public_access: true }
    }
}

impl Config {
    /// The account of this name.
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.get(name)
    }
}

impl Default for Config {
    fn default() -> Self {
        use base64::Engine as _;
        let key = base64::engine::general_purpose::STANDARD
            .decode(DEVELOPMENT_KEY)
            .unwrap_or_default();
        let accounts =
            BTreeMap::from([(DEVELOPMENT_ACCOUNT.to_owned(), Account::with_key(key))]);
        Config {
            accounts,
            host_style: true,
            strict_api_version: false,
            strict_skew: false,
            being_deleted_s: 0,
            loose: false,
        }
    }
}
