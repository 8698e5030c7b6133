//! The addresses of a recording's accounts: host style in process, path style over HTTP.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use smalt_protocol::Service;

use super::recording::Recording;
use crate::target::{About, DOMAIN};
use crate::wire::access::Account;
use crate::wire::url::Url;

/// Label of the Data Lake host of an account, whose other host is that of Blob Storage.
pub const DATA_LAKE: &str = "dfs";

/// How the URLs of a target name an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// `https://account.blob.core.windows.net/container`, as recorded.
    Host,
    /// `http://127.0.0.1:10000/account/container`, with host and port of blob, queue and table.
    Path([String; 3]),
}

impl Addressing {
    /// Returns the addressing of a target.
    pub fn of(about: &About) -> Addressing {
        match Service::ALL.map(|service| about.authority(service)) {
            [Some(blob), Some(queue), Some(table)] => Addressing::Path([blob, queue, table]),
            _ => Addressing::Host,
        }
    }
}

/// The accounts of one recording and their addresses.
#[derive(Clone, Debug)]
pub struct Hosts {
    addressing: Addressing,
    /// Recorded name -> name at the target.
    aliases: BTreeMap<String, String>,
    /// Container, queue or table -> the account in which the recording created it.
    owners: BTreeMap<String, String>,
}

impl Hosts {
    /// Collects the accounts of a recording.
    ///
    /// An account that never receives a request stands for the one that does: the recorder renamed
    /// the host in URLs only, not in copy sources and batch parts. An invalid account name
    /// (`fake_table_account`) becomes `account`.
    pub fn of(recording: &Recording, addressing: Addressing) -> Hosts {
        let mut hosts = Hosts {
            addressing,
            aliases: BTreeMap::new(),
            owners: BTreeMap::new(),
        };
        for interaction in &recording.interactions {
            let url = Url::parse(&interaction.request.url);
            let account = url.as_ref().and_then(|url| url.account_and_service());
            let (Some(url), Some((account, _))) = (&url, account) else {
                continue;
            };
            let valid = || valid_name(account);
            let alias = hosts.aliases.entry(account.to_owned());
            alias.or_insert_with(valid);
            let first = url.segments().into_iter().next();
            if let Some(first) = first.filter(|_| url.has_param("restype")) {
                hosts.owners.entry(first).or_insert_with(valid);
            }
        }
        hosts
    }

    /// Returns the names of the accounts at the target.
    pub fn accounts(&self) -> BTreeSet<String> {
        self.aliases.values().cloned().collect()
    }

    /// Returns the name at the target of a recorded account that receives requests.
    pub fn name_of(&self, recorded: &str) -> Option<&str> {
        self.aliases.get(recorded).map(String::as_str)
    }

    /// Returns the account at the target for a recorded URL; `near` is the account of the request
    /// in which the URL occurs.
    fn account_of(&self, recorded: &str, url: &Url, near: &str) -> String {
        if let Some(name) = self.aliases.get(recorded) {
            return name.clone();
        }
        let first = url.segments().into_iter().next();
        let owner = first.and_then(|first| self.owners.get(&first));
        owner.map_or_else(|| near.to_owned(), Clone::clone)
    }

    /// Returns the account at the target for a recorded request URL, and its service.
    pub fn locate(&self, url: &Url, near: Option<&str>) -> Option<(String, Service)> {
        let (account, service) = url.account_and_service()?;
        let service = match service {
            "blob" | DATA_LAKE => Service::Blob,
            "queue" => Service::Queue,
            "table" => Service::Table,
            _ => return None,
        };
        let account = self.account_of(account, url, near.unwrap_or("account"));
        Some((account, service))
    }

    /// Maps a recorded URL to the target.
    pub fn map(&self, mut url: Url, near: Option<&str>) -> Url {
        let Some((account, service)) = self.locate(&url, near) else {
            return url;
        };
        match self.authority(service) {
            None => {
                let label = match url.account_and_service() {
                    Some((_, DATA_LAKE)) => DATA_LAKE,
                    _ => service.as_str(),
                };
                url.authority = format!("{account}.{label}{DOMAIN}");
            }
            Some(authority) => {
                "http".clone_into(&mut url.scheme);
                authority.clone_into(&mut url.authority);
                let slash = if url.path.is_empty() { "/" } else { "" };
                url.path = format!("/{account}{slash}{}", url.path);
            }
        }
        url
    }

    /// Returns the URL of a path at the target, for resources that must exist beforehand.
    pub fn url(&self, account: &str, service: Service, path_and_query: &str) -> String {
        match self.authority(service) {
            None => format!(
                "https://{account}.{}{DOMAIN}{path_and_query}",
                service.as_str()
            ),
            Some(authority) => format!("http://{authority}/{account}{path_and_query}"),
        }
    }

    /// Returns what the target puts before the path of a batch's inner request line.
    pub fn path_prefix(&self, account: &str) -> String {
        match self.addressing {
            Addressing::Host => String::new(),
            Addressing::Path(_) => format!("/{account}"),
        }
    }

    /// Replaces every account URL in a recorded text by the target's.
    pub fn rewrite_text(&self, text: &str, near: &str) -> String {
        if !text.contains(DOMAIN) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("://") {
            let scheme_at = rest[..at]
                .rfind(|c: char| !c.is_ascii_alphabetic())
                .map_or(0, |i| i + 1);
            let end = rest[at + 3..]
                .find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
                .map_or(rest.len(), |i| at + 3 + i);
            let path_end = rest[end..]
                .find(|c: char| !(c.is_ascii_alphanumeric() || "/._-%$".contains(c)))
                .map_or(rest.len(), |i| end + i);
            out.push_str(&rest[..scheme_at]);
            out.push_str(&self.rewrite_base(&rest[scheme_at..path_end], near));
            rest = &rest[path_end..];
        }
        out.push_str(rest);
        out
    }

    /// Maps `https://account.blob.core.windows.net/path` if it names an account.
    fn rewrite_base(&self, text: &str, near: &str) -> String {
        match Url::parse(text) {
            Some(url) if url.account_and_service().is_some() => {
                let bare = url.path.is_empty();
                let mapped = self.map(url, Some(near)).to_string();
                // `https://account.table...` without a path stays without one.
                if bare {
                    mapped.trim_end_matches('/').to_owned()
                } else {
                    mapped
                }
            }
            _ => text.to_owned(),
        }
    }

    fn authority(&self, service: Service) -> Option<&String> {
        let Addressing::Path([blob, queue, table]) = &self.addressing else {
            return None;
        };
        Some(match service {
            Service::Blob => blob,
            Service::Queue => queue,
            Service::Table => table,
        })
    }
}

/// Converts a recorded name to a valid account name: 3 to 24 lower-case letters and digits.
fn valid_name(recorded: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match recorded.bytes().all(is_plain) {
        true => recorded.to_owned(),
        false => "account".to_owned(),
    }
}

/// Returns the key of an account in replays: 64 bytes that repeat the name. The recorded keys are
/// unknown, so any key works on which both sides agree.
pub fn account_key(account: &str) -> Vec<u8> {
    account.bytes().cycle().take(64).collect()
}

/// Returns an account with its key in replays.
pub fn account(name: &str) -> Option<Account> {
    Account::new(name, &account_key_base64(name))
}

/// Returns the key of an account in Base64, as configurations contain it.
pub fn account_key_base64(account: &str) -> String {
    STANDARD.encode(account_key(account))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn hosts(addressing: Addressing) -> Hosts {
        let put = |url: &str| ("PUT", url.to_owned(), 201, Vec::new());
        let lines = [
            put("https://account.blob.core.windows.net/c?restype=container"),
            put("https://fake_table_account.table.core.windows.net/Tables"),
        ];
        Hosts::of(&samples::blobs(&lines), addressing)
    }

    fn path_style() -> Addressing {
        Addressing::Path([0, 1, 2].map(|port| format!("127.0.0.1:1000{port}")))
    }

    #[test]
    fn maps_accounts_to_hosts_and_paths() {
        let map = |addressing, text: &str| {
            hosts(addressing)
                .map(Url::parse(text).unwrap(), Some("account"))
                .to_string()
        };
        let known = "https://account.blob.core.windows.net/c/b?x=1";
        assert_eq!(map(Addressing::Host, known), known);
        assert_eq!(
            map(path_style(), known),
            "http://127.0.0.1:10000/account/c/b?x=1"
        );
        let renamed = "https://account2.blob.core.windows.net/c/b";
        assert_eq!(
            map(Addressing::Host, renamed),
            "https://account.blob.core.windows.net/c/b"
        );
        let root = "https://fake_table_account.table.core.windows.net";
        assert_eq!(map(path_style(), root), "http://127.0.0.1:10002/account/");
    }

    #[test]
    fn rewrites_urls_inside_texts() {
        let text = "a https://account.table.core.windows.net/$metadata#Tables, \
                    https://account.blob.core.windows.net and http://example.com/x";
        let expected = "a http://127.0.0.1:10002/account/$metadata#Tables, \
                        http://127.0.0.1:10000/account and http://example.com/x";
        assert_eq!(hosts(path_style()).rewrite_text(text, "account"), expected);
        assert_eq!(hosts(Addressing::Host).rewrite_text(text, "account"), text);
    }
}
