//! Paths with a shared access signature that permits everything for ever: signed once, so that
//! signing costs the load generator nothing.

use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::build::AccountSas;
use smalt_protocol::{ApiVersion, Timestamp};

/// The account that smalt and Azurite have by default.
pub const ACCOUNT: &str = EMULATOR_ACCOUNT_NAME;

/// The end of the year 2099, in seconds since 1970: no run lasts longer.
const EXPIRY_UNIX_S: u64 = 4_102_444_799;

/// A signed query of the default account.
#[derive(Clone, Debug)]
pub struct Access {
    query: String,
}

impl Access {
    /// Every service, every resource, every permission of this version.
    pub fn full(version: ApiVersion) -> Self {
        let sas = AccountSas {
            version,
            account: ACCOUNT,
            services: "bqt",
            resource_types: "sco",
            permissions: "rwdlacuptf",
            start: None,
            expiry: Timestamp::from_unix_s(EXPIRY_UNIX_S),
            ip: "",
            protocol: "https,http",
            encryption_scope: "",
        };
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY);
        Access {
            query: key.map_or_else(String::new, |key| sas.sign(key.as_bytes())),
        }
    }

    /// The signed query, without `?`.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// `/account/<rest>` signed; `rest` may have a query of its own.
    pub fn path(&self, rest: &str) -> String {
        let separator = if rest.contains('?') { '&' } else { '?' };
        format!("/{ACCOUNT}/{rest}{separator}{}", self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_joined_to_the_one_there_is() {
        let access = Access::full(ApiVersion::V2021_12_02);
        assert!(
            access
                .path("c/b")
                .starts_with("/devstoreaccount1/c/b?sv=2021-12-02")
        );
        assert!(access.path("c?comp=list").contains("?comp=list&sv="));
        assert!(access.query().contains("sig="));
    }
}
