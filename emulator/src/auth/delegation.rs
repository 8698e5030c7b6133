//! Keys of user delegations, made from the account's key and never stored.
//!
//! Azure keeps the keys that it gave out. Here each one is an HMAC over its terms (who, until when,
//! for what) with a secret that follows from the account's key: the terms come back in the fields
//! of every signature (`skoid`, `skt`, ...), so that the key can be made again after a restart, in
//! another process, from nothing. Another account key ends all of them, as a revocation does.
//! Source: "Create a user delegation SAS", "Get User Delegation Key".

use std::fmt;

use smalt_protocol::signing::sas::{Sas, refused};
use smalt_protocol::signing::{AccountKey, mac, sign};
use smalt_protocol::{StorageError, Timestamp};

/// What the secret of an account is derived under: no other signature has this text.
const PURPOSE: &str = "smalt user delegation 1\n";

/// What an account's delegation keys are made with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DelegationSecret([u8; 32]);

/// What a key is given out for.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Object id of the user.
    pub object_id: &'a str,
    /// Tenant of the user.
    pub tenant_id: &'a str,
    /// First moment, in whole seconds.
    pub start: Timestamp,
    /// End, in whole seconds.
    pub expiry: Timestamp,
    /// Letter of the service, `b` or `q`.
    pub service: &'a str,
    /// Version that the key was asked for under.
    pub version: &'a str,
    /// Tenant of the only user who may use a signature; empty for anybody.
    pub delegated_tenant: &'a str,
}

impl<'a> Terms<'a> {
    /// The terms of the key that a SAS says it was signed with.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` when the window of the key is none.
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

    /// The terms as one text. Lengths stand before the parts, so that no two terms share a text.
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
    /// The secret of an account.
    pub fn of(account: &str, key: &AccountKey) -> Self {
        DelegationSecret(mac(key.as_bytes(), &format!("{PURPOSE}{account}")))
    }

    /// The key for these terms, in Base64.
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
    fn terms_account_and_account_key_each_make_another_key() {
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
