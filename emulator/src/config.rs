//! Settings of an emulator.
//!
//! [`Config`] is fixed when an emulator is opened. [`AccountSettings`] are what Azure keeps in its
//! management plane; they can change while it runs:
//! [`Emulator::change_settings`](crate::Emulator::change_settings).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

pub use crate::rules::web::{AllowedHost, AllowedHostError};

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
    /// Messages that become visible at the same time come in any order. Azure promises none; a test
    /// that shuffles shows that nobody relies on one.
    pub shuffle_messages: bool,
    /// Whether bearer tokens are taken.
    pub oauth: OAuth,
    /// How long a deleted container or queue stays *being deleted*, in seconds. Azure: about 30.
    pub being_deleted_s: u64,
    /// Hosts that requests may name besides addresses, names of one label and names that public DNS
    /// does not have. Connections at a loopback address are held to this, and with a host in this
    /// list all others as well.
    pub allowed_hosts: Vec<AllowedHost>,
}

/// Whether bearer tokens of Microsoft Entra ID are taken. They need HTTPS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OAuth {
    /// No token is.
    #[default]
    Off,
    /// Every token is whose audience, issuer and lifetime are right. Its signature is not checked:
    /// there is no network, and whoever can reach the emulator can make such a token.
    Basic,
}

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Keys; every one of them is valid.
    pub keys: Vec<AccountKey>,
    /// What Azure keeps in its management plane.
    pub settings: Arc<AccountSettings>,
}

/// Settings of an account that Azure keeps in its management plane. Soft delete of blobs is not
/// among them: the data plane sets it with Set Blob Service Properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountSettings {
    /// Whether containers may be opened to anonymous readers.
    pub public_access: bool,
    /// Tier of block blobs that were given none.
    pub default_tier: DefaultTier,
    /// Whether a write keeps the version that it replaces. "Blob versioning".
    pub versioning: bool,
    /// How long a deleted container can be restored, in days; absent: not at all. "Soft delete for
    /// containers".
    pub container_retention_days: Option<u32>,
    /// Whether reads are noted in `x-ms-last-access-time`. "Last access time tracking".
    pub last_access_tracking: bool,
    /// Whether containers support immutability policies of single versions.
    pub version_immutability: bool,
    /// Whether blobs can be given an expiry. Azure: in accounts with a hierarchical namespace only.
    pub blob_expiry: bool,
    /// Kind of redundancy, as Get Account Information tells it.
    pub sku: Sku,
    /// The encryption scopes that exist; absent: every name does.
    pub encryption_scopes: Option<BTreeSet<String>>,
}

impl AccountSettings {
    /// Checks what its types leave open.
    ///
    /// # Errors
    /// The field, and which values it takes.
    pub fn validate(&self) -> Result<(), &'static str> {
        let days = self.container_retention_days;
        match days.is_none_or(|days| CONTAINER_RETENTION_DAYS.contains(&days)) {
            true => Ok(()),
            false => Err("container_retention_days: 1 to 365, or null for none"),
        }
    }
}

impl Default for AccountSettings {
    /// A new account of Azurite: nothing of it is switched on.
    fn default() -> Self {
        AccountSettings {
            public_access: true,
            default_tier: DefaultTier::Hot,
            versioning: false,
            container_retention_days: None,
            last_access_tracking: false,
            version_immutability: false,
            blob_expiry: false,
            sku: Sku::StandardRagrs,
            encryption_scopes: None,
        }
    }
}

/// `x-ms-sku-name`. "SKU types" of the storage resource provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sku {
    /// Locally redundant.
    #[serde(rename = "Standard_LRS")]
    StandardLrs,
    /// Redundant across zones.
    #[serde(rename = "Standard_ZRS")]
    StandardZrs,
    /// Redundant across regions.
    #[serde(rename = "Standard_GRS")]
    StandardGrs,
    /// The same, with a secondary to read from, as the emulator has one.
    #[default]
    #[serde(rename = "Standard_RAGRS")]
    StandardRagrs,
    /// Redundant across zones and regions.
    #[serde(rename = "Standard_GZRS")]
    StandardGzrs,
    /// The same, with a secondary to read from.
    #[serde(rename = "Standard_RAGZRS")]
    StandardRagzrs,
    /// Premium, locally redundant.
    #[serde(rename = "Premium_LRS")]
    PremiumLrs,
    /// Premium, redundant across zones.
    #[serde(rename = "Premium_ZRS")]
    PremiumZrs,
}

impl Sku {
    /// Every one.
    pub const ALL: [Sku; 8] = [
        Sku::StandardLrs,
        Sku::StandardZrs,
        Sku::StandardGrs,
        Sku::StandardRagrs,
        Sku::StandardGzrs,
        Sku::StandardRagzrs,
        Sku::PremiumLrs,
        Sku::PremiumZrs,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Sku::StandardLrs => "Standard_LRS",
            Sku::StandardZrs => "Standard_ZRS",
            Sku::StandardGrs => "Standard_GRS",
            Sku::StandardRagrs => "Standard_RAGRS",
            Sku::StandardGzrs => "Standard_GZRS",
            Sku::StandardRagzrs => "Standard_RAGZRS",
            Sku::PremiumLrs => "Premium_LRS",
            Sku::PremiumZrs => "Premium_ZRS",
        }
    }
}

/// Days that a deleted container can be kept. "Soft delete for containers".
pub const CONTAINER_RETENTION_DAYS: std::ops::RangeInclusive<u32> = 1..=365;

/// Tier of block blobs that were given none: a setting of the account.
/// Source: "Access tiers for blob data".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultTier {
    /// Hot, as in a new account.
    #[default]
    Hot,
    /// Cool.
    Cool,
    /// Premium, in an account of premium page blobs: their tier goes by their length.
    Premium,
}

impl DefaultTier {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            DefaultTier::Hot => "Hot",
            DefaultTier::Cool => "Cool",
            DefaultTier::Premium => "Premium",
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
            settings: Arc::default(),
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
            shuffle_messages: false,
            oauth: OAuth::Off,
            being_deleted_s: 0,
            allowed_hosts: Vec::new(),
        }
    }
}
