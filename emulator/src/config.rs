//! Settings of an emulator.

use std::collections::BTreeMap;

use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

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
}

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Keys; every one of them is valid.
    pub keys: Vec<AccountKey>,
    /// Whether containers may be opened to anonymous readers.
    pub public_access: bool,
    /// Tier of block blobs that were given none.
    pub default_tier: DefaultTier,
}

/// Tier of block blobs that were given none: a setting of the account.
/// Source: "Access tiers for blob data".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultTier {
    /// Hot, as in a new account.
    #[default]
    Hot,
    /// Cool.
    Cool,
}

impl DefaultTier {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            DefaultTier::Hot => "Hot",
            DefaultTier::Cool => "Cool",
        }
    }
}

impl Account {
    /// An account with this key.
    pub fn with_key(key: AccountKey) -> Self {
        Self::with_keys(vec![key])
    }

    /// An account with these keys.
    pub fn with_keys(keys: Vec<AccountKey>) -> Self {
        Account {
            keys,
            public_access: true,
            default_tier: DefaultTier::Hot,
        }
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
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY);
        let account = Account::with_keys(key.into_iter().collect());
        let accounts = BTreeMap::from([(EMULATOR_ACCOUNT_NAME.to_owned(), account)]);
        Config {
            accounts,
            host_style: true,
            strict_api_version: false,
            strict_skew: false,
            being_deleted_s: 0,
        }
    }
}
