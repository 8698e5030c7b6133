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
}

impl Account {
    /// An account with this key.
    pub fn with_key(key: AccountKey) -> Self {
        Account {
            keys: vec![key],
            public_access: true,
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
        let account = Account {
            keys: key.into_iter().collect(),
            public_access: true,
        };
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
