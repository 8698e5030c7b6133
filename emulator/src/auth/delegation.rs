//! User delegation keys, derived from the account key and never stored.
//!
//! Azure stores the keys that it issues. Here each key is an HMAC over its terms (user, window,
//! service) with a secret that is derived from the account key. The fields of every signature
//! (`skoid`, `skt`, ...) repeat the terms, so that the key can be derived again after a restart or
//! in another process. Changing the account key ends all of them, as a revocation does. Source:
//! "Create a user delegation SAS", "Get User Delegation Key".

use std::fmt;

use smalt_protocol::signing::sas::{Sas, refused};
use smalt_protocol::signing::{AccountKey, mac, sign};
use smalt_protocol::{StorageError, Timestamp};

/// Prefix for deriving an account's secret; no other signed string begins with it.
const PURPOSE: &str = "smalt user delegation 1\n";

/// The secret from which an account's delegation keys are derived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DelegationSecret([u8; 32]);

/// The terms of a user delegation key.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Object id of the user.
    pub object_id: &'a str,
    /// Tenant of the user.
    pub tenant_id: &'a str,
    /// Start of the window, in whole seconds.
    pub start: Timestamp,
    /// End of the window, in whole seconds.
    pub expiry: Timestamp,
    /// Letter of the service, `b` or `q`.
    pub service: &'a str,
    /// API version of the request for the key.
    pub version: &'a str,
    /// Tenant of the only user who may use a signature; empty for every user.
    pub delegated_tenant: &'a str,
}

impl<'a> Terms<'a> {
    /// Returns the terms of the key that a SAS names.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` when the key's window is malformed.
    pub fn of(sas: &'a Sas) -> Result<Self, StorageError> {
        let (Some(start), Some(expiry)) = sas.key_window() else {
            return Err(refused("Signature fields not well formed."));
        };
        Ok(Terms {
            object_id: sas.get("skoid"),
            tenant_id: sas.get("sktid"),
            start,
            expiry,
            service: sas.get("sks"),
            version: sas.get("skv"),
            delegated_tenant: sas.get("skdutid"),
        })
    }

    /// Joins the terms into one string. Each part is preceded by its length, so that different
    /// terms never have the same string.
    fn text(&self) -> String {
        let (start, expiry) = (self.start.iso_s(), self.expiry.iso_s());
        let parts = [
            self.object_id,
            self.tenant_id,
            &start,
            &expiry,
            self.service,
            self.version,
            self.delegated_tenant,
        ];
        parts
            .map(|part| format!("{}:{part}\n", part.len()))
            .concat()
    }
}

impl DelegationSecret {
    /// Derives the secret of an account from its key.
    pub fn of(account: &str, key: &AccountKey) -> Self {
        DelegationSecret(mac(key.as_bytes(), &format!("{PURPOSE}{account}")))
    }

    /// Returns the key for these terms, in Base64.
    pub fn key(&self, terms: &Terms<'_>) -> String {
        sign(&self.0, &terms.text())
    }
}

impl fmt::Debug for DelegationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DelegationSecret(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(account: &str, key: &str) -> DelegationSecret {
        DelegationSecret::of(account, &AccountKey::parse(key).unwrap())
    }

    const TERMS: Terms<'_> = Terms {
        object_id: "o",
        tenant_id: "t",
        start: Timestamp::from_unix_s(1_700_000_000),
        expiry: Timestamp::from_unix_s(1_700_086_400),
        service: "b",
        version: "2020-02-10",
        delegated_tenant: "",
    };

    #[test]
    fn terms_account_and_account_key_each_change_the_key() {
        let ours = secret("one", "a2V5");
        let key = ours.key(&TERMS);
        assert_eq!(key, secret("one", "a2V5").key(&TERMS));
        assert_eq!(AccountKey::parse(&key).unwrap().as_bytes().len(), 32);
        assert!(!format!("{ours:?}").contains(&key));
        let others = [
            secret("two", "a2V5").key(&TERMS),
            secret("one", "a2V6").key(&TERMS),
            ours.key(&Terms {
                object_id: "ot",
                tenant_id: "",
                ..TERMS
            }),
            ours.key(&Terms {
                start: TERMS.expiry,
                ..TERMS
            }),
            ours.key(&Terms {
                expiry: TERMS.start,
                ..TERMS
            }),
            ours.key(&Terms {
                service: "q",
                ..TERMS
            }),
            ours.key(&Terms {
                version: "2021-02-12",
                ..TERMS
            }),
            ours.key(&Terms {
                delegated_tenant: "d",
                ..TERMS
            }),
        ];
        for other in others {
            assert_ne!(other, key);
        }
    }
}
