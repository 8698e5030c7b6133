//! Configuration of an emulator.
//!
//! [`Config`] is fixed when an emulator is opened. [`AccountSettings`] are the settings that Azure
//! keeps in its management plane; they can change at run time:
//! [`Emulator::change_settings`](crate::Emulator::change_settings).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

pub use crate::auth::key_set::{KeySet, KeySetError};
pub use crate::auth::roles::{Role, RoleAssignment};
pub use crate::rules::web::{AllowedHost, AllowedHostError};

/// Configuration of an emulator. The default is Azurite's: one account with its well-known key.
#[derive(Clone, Debug)]
pub struct Config {
    /// Accounts by name.
    pub accounts: BTreeMap<String, Account>,
    /// Whether host names may name the account (`account.blob.example`).
    pub host_style: bool,
    /// Whether unknown newer versions are refused, as Azure does.
    pub strict_api_version: bool,
    /// Whether the date of signed requests is checked against the emulator's clock instead of the
    /// system clock.
    pub strict_skew: bool,
    /// Whether messages that become visible at the same time come in random order. Azure guarantees
    /// no order, so shuffling finds clients that rely on one.
    pub shuffle_messages: bool,
    /// Whether bearer tokens are accepted.
    pub oauth: OAuth,
    /// Public keys that verify bearer tokens besides the emulator's own, for [`OAuth::Verified`].
    pub token_keys: Arc<KeySet>,
    /// How long a deleted container, queue or table stays *being deleted*, in seconds. Azure: about
    /// 30.
    pub being_deleted_s: u64,
    /// Hosts that requests may name besides addresses, names of one label, and names that public
    /// DNS does not have. Always checked on loopback connections; checked on all others only when
    /// this list is not empty.
    pub allowed_hosts: Vec<AllowedHost>,
}

/// Whether bearer tokens of Microsoft Entra ID are accepted. They need HTTPS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OAuth {
    /// Rejects every token.
    #[default]
    Off,
    /// Accepts every token with a valid audience, issuer and lifetime. Does not check the
    /// signature: anyone who can reach the emulator can forge a token.
    Basic,
    /// Also verifies the signature, with the key of the emulator's own issuer or one of
    /// [`Config::token_keys`].
    Verified,
}

/// A storage account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Account keys, each of which is valid.
    pub keys: Vec<AccountKey>,
    /// Settings that Azure keeps in its management plane.
    pub settings: Arc<AccountSettings>,
}

/// Settings of an account that Azure keeps in its management plane. Blob soft delete is not among
/// them: clients set it with Set Blob Service Properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountSettings {
    /// Whether containers may allow anonymous read access.
    pub public_access: bool,
    /// Access tier of block blobs without an explicit tier.
    pub default_tier: DefaultTier,
    /// Whether a write keeps the version that it replaces ("Blob versioning").
    pub versioning: bool,
    /// How long a deleted container can be restored, in days; `None` when it cannot ("Soft delete
    /// for containers").
    pub container_retention_days: Option<u32>,
    /// Whether `x-ms-last-access-time` is recorded ("Last access time tracking").
    pub last_access_tracking: bool,
    /// Whether containers support version-level immutability policies.
    pub version_immutability: bool,
    /// Whether blobs can have an expiry. Azure: only in accounts with a hierarchical namespace.
    pub blob_expiry: bool,
    /// Whether the account has a hierarchical namespace, with directories and the operations of
    /// Data Lake Storage ("Azure Data Lake Storage hierarchical namespace").
    pub hierarchical_namespace: bool,
    /// The roles of the holders of bearer tokens. Where no role suffices, the access control lists
    /// of a hierarchical account decide. `None` when every holder may do everything.
    pub role_assignments: Option<BTreeSet<RoleAssignment>>,
    /// Kind of redundancy, which Get Account Information returns.
    pub sku: Sku,
    /// The encryption scopes that exist; `None` when every name is valid.
    pub encryption_scopes: Option<BTreeSet<String>>,
}

impl AccountSettings {
    /// Validates the ranges that the types do not express.
    ///
    /// # Errors
    /// The field and its valid values.
    pub fn validate(&self) -> Result<(), &'static str> {
        let days = self.container_retention_days;
        if days.is_some_and(|days| !CONTAINER_RETENTION_DAYS.contains(&days)) {
            return Err("container_retention_days: 1 to 365, or null for none");
        }
        if self.versioning && self.hierarchical_namespace {
            return Err("versioning: an account with a hierarchical namespace has no versions");
        }
        if self.version_immutability && self.hierarchical_namespace {
            return Err(
                "version_immutability: an account with a hierarchical namespace has no versions",
            );
        }
        Ok(())
    }
}

impl Default for AccountSettings {
    /// The settings of a new Azurite account: every feature is off.
    fn default() -> Self {
        AccountSettings {
            public_access: true,
            default_tier: DefaultTier::Hot,
            versioning: false,
            container_retention_days: None,
            last_access_tracking: false,
            version_immutability: false,
            blob_expiry: false,
            hierarchical_namespace: false,
            role_assignments: None,
            sku: Sku::StandardRagrs,
            encryption_scopes: None,
        }
    }
}

/// `x-ms-sku-name`. "SKU types" of the storage resource provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sku {
    /// Locally redundant storage.
    #[serde(rename = "Standard_LRS")]
    StandardLrs,
    /// Zone-redundant storage.
    #[serde(rename = "Standard_ZRS")]
    StandardZrs,
    /// Geo-redundant storage.
    #[serde(rename = "Standard_GRS")]
    StandardGrs,
    /// Geo-redundant storage with a readable secondary, which the emulator has.
    #[default]
    #[serde(rename = "Standard_RAGRS")]
    StandardRagrs,
    /// Geo-zone-redundant storage.
    #[serde(rename = "Standard_GZRS")]
    StandardGzrs,
    /// Geo-zone-redundant storage with a readable secondary.
    #[serde(rename = "Standard_RAGZRS")]
    StandardRagzrs,
    /// Premium, locally redundant storage.
    #[serde(rename = "Premium_LRS")]
    PremiumLrs,
    /// Premium, zone-redundant storage.
    #[serde(rename = "Premium_ZRS")]
    PremiumZrs,
}

impl Sku {
    /// Every SKU.
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

    /// Returns the wire name.
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

/// Valid numbers of days to keep a deleted container. "Soft delete for containers".
pub const CONTAINER_RETENTION_DAYS: std::ops::RangeInclusive<u32> = 1..=365;

/// Access tier of block blobs without an explicit tier. Source: "Access tiers for blob data".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DefaultTier {
    /// Hot, the default of a new account.
    #[default]
    Hot,
    /// Cool.
    Cool,
    /// Premium, in an account of premium page blobs, where the tier follows from the length.
    Premium,
}

impl DefaultTier {
    /// Returns the wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            DefaultTier::Hot => "Hot",
            DefaultTier::Cool => "Cool",
            DefaultTier::Premium => "Premium",
        }
    }
}

impl Account {
    /// Creates an account with this key and default settings.
    pub fn with_key(key: AccountKey) -> Self {
        Self::with_keys(vec![key])
    }

    /// Creates an account with these keys and default settings.
    pub fn with_keys(keys: Vec<AccountKey>) -> Self {
        Account {
            keys,
            settings: Arc::default(),
        }
    }
}

impl Config {
    /// Returns the account of this name; `None` when it is not configured.
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
            token_keys: Arc::default(),
            being_deleted_s: 0,
            allowed_hosts: Vec::new(),
        }
    }
}
