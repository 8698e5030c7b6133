//! Accounts in Azurite's form: `name:key1[:key2];name:key1`.

use std::collections::BTreeMap;

use anyhow::bail;
use smalt_protocol::names;
use smalt_protocol::signing::AccountKey;

use crate::config::Account;

/// Parses accounts and gives each the default settings.
///
/// # Errors
/// When an account has an invalid name, or keys that are not Base64.
pub(super) fn parse(text: &str) -> anyhow::Result<BTreeMap<String, Account>> {
    let mut accounts = BTreeMap::new();
    for part in text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let mut fields = part.split(':');
        let name = fields.next().unwrap_or_default().trim();
        names::validate_account_name(name).map_err(|_| {
            anyhow::anyhow!("invalid account name {name:?}: use 3 to 24 characters of a-z and 0-9")
        })?;
        let keys: Option<Vec<AccountKey>> = fields.map(AccountKey::parse).collect();
        match keys {
            Some(keys) if (1..=2).contains(&keys.len()) => {
                accounts.insert(name.to_owned(), Account::with_keys(keys));
            }
            _ => bail!("account {name} needs one or two keys in Base64: name:key1[:key2]"),
        }
    }
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_parse_as_in_azurite() {
        let accounts = parse("one:a2V5MQ==:a2V5Mg==;two:a2V5;").unwrap();
        assert_eq!(accounts["one"].keys.len(), 2);
        assert_eq!(accounts["two"].keys.len(), 1);
        for bad in ["one", "One:a2V5", "one:***", "one:"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let shown = format!("{:?}", parse("one:c2VjcmV0").unwrap());
        assert!(!shown.contains("c2VjcmV0"), "{shown}");
    }
}
