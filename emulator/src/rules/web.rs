//! Protection against requests that a browser sends on behalf of a foreign web page.
//!
//! A browser lets every page send requests to a server on the user's machine. It hides the response
//! from a page of another origin, but the request is carried out; and if the page's own host name
//! is made to resolve to that machine (DNS rebinding), the page can read the response as well.
//! Azure is safe from both because its keys are secret and it owns its names. The emulator's key is
//! public.
//!
//! So a request must name a host that nobody can point at this machine by public DNS, and a page
//! must come from this machine, from the server itself, or be allowed by a CORS rule. Whoever
//! answers DNS queries on the local network is trusted.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::host::{HostPattern, is_below, is_name};

/// Domains that public DNS does not serve. RFC 6761, RFC 6762, RFC 8375, and `internal` by an ICANN
/// resolution of 2024; they include `host.docker.internal` and a cluster's `cluster.local`.
const PRIVATE_DOMAINS: [&str; 5] = ["localhost", "local", "internal", "test", "home.arpa"];

/// Domains of Azure's endpoints, in which only Microsoft assigns names. "Storage account
/// endpoints", and the national clouds.
const AZURE_DOMAINS: [&str; 4] = [
    "core.windows.net",
    "storage.azure.net",
    "core.chinacloudapi.cn",
    "core.usgovcloudapi.net",
];

/// A host that requests may name in addition to the built-in ones: `--allowHost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHost {
    /// `*`: any host.
    Any,
    /// A name or pattern: `storage.example.com`, `*.example.com`.
    Named(HostPattern),
}

/// A string that is not a host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host: use a name (storage.example.com), a domain (*.example.com) or *")]
pub struct AllowedHostError(String);

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, AllowedHostError> {
        if text.trim() == "*" {
            return Ok(AllowedHost::Any);
        }
        let named = text.parse().map(AllowedHost::Named);
        named.map_err(|()| AllowedHostError(text.to_owned()))
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedHost::Any => f.write_str("*"),
            AllowedHost::Named(hosts) => hosts.fmt(f),
        }
    }
}

/// Returns `true` if a request may name this host, with or without a port. An address needs no DNS,
/// and public DNS has no single-label names, so a stranger cannot point either at this machine.
pub fn is_known_host(authority: &str, allowed: &[AllowedHost]) -> bool {
    let is_named = |allowed: &AllowedHost, host| match allowed {
        AllowedHost::Any => true,
        AllowedHost::Named(hosts) => hosts.admits(host),
    };
    let Some(host) = name_of(authority) else {
        return allowed.contains(&AllowedHost::Any);
    };
    host.parse::<IpAddr>().is_ok()
        || (is_name(host) && (!host.contains('.') || is_reserved(host)))
        || allowed.iter().any(|allowed| is_named(allowed, host))
}

/// Returns `true` if pages of this origin may send any request to the server at `authority`: pages
/// of this machine, and pages of the server itself.
pub fn is_trusted_origin(origin: &str, authority: &str) -> bool {
    let Some((from, host)) = origin
        .split_once("://")
        .and_then(|(_, from)| Some((from, name_of(from)?)))
    else {
        return false;
    };
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    (!from.is_empty() && from.eq_ignore_ascii_case(authority))
        || host.eq_ignore_ascii_case("localhost")
        || is_below(host, "localhost")
        || host.parse().is_ok_and(is_loopback)
}

fn is_reserved(host: &str) -> bool {
    let domains = PRIVATE_DOMAINS.iter().chain(&AZURE_DOMAINS);
    domains.into_iter().any(|domain| is_below(host, domain))
}

/// Returns the name of `name:port` without a trailing dot, or the address of `[address]:port`;
/// `None` if the authority is malformed.
fn name_of(authority: &str) -> Option<&str> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_port = digits.bytes().all(|b| b.is_ascii_digit());
    is_port.then(|| name.strip_suffix('.').unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usual names of an emulator, and names that a stranger controls.
    #[test]
    fn only_names_outside_public_dns_are_known() {
        for (authority, expected) in [
            ("127.0.0.1:10000", true),
            ("127.0.0.1", true),
            ("[::1]:10000", true),
            ("192.168.1.5:10000", true),
            ("localhost", true),
            ("LOCALHOST:10000", true),
            ("localhost.", true),
            ("azurite:10000", true),
            ("my_service-1:10000", true),
            ("devstoreaccount1.blob.localhost:10000", true),
            ("host.docker.internal:10000", true),
            ("gateway.docker.internal", true),
            ("host.containers.internal", true),
            ("azurite.default.svc.cluster.local:10000", true),
            ("laptop.local", true),
            ("app.test:443", true),
            ("nas.home.arpa", true),
            ("devstoreaccount1.blob.core.windows.net", true),
            ("acc-secondary.queue.core.windows.net:443", true),
            ("acc.dfs.core.chinacloudapi.cn", true),
            ("acc.z01.blob.storage.azure.net", true),
            ("evil.example", false),
            ("evil.example.:10000", false),
            ("devstoreaccount1.blob.evil.example:10000", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("core.windows.net", false),
            ("evilcore.windows.net", false),
            ("evil.cloudapp.azure.com", false),
            ("local.evil.example", false),
            (".local", false),
            ("a..local", false),
            ("127.0.0.1@evil.example", false),
            ("evil.example@localhost", false),
            ("127.0.0.1:80, evil.example", false),
            ("localhost:evil.example", false),
            ("[::1]evil.example", false),
            ("[::1", false),
            ("evil example", false),
            ("évil.example", false),
            ("", false),
        ] {
            assert_eq!(is_known_host(authority, &[]), expected, "{authority}");
        }
    }

    #[test]
    fn further_hosts_are_allowed_by_name() {
        for (texts, authority, expected) in [
            (&["*"][..], "evil.example", true),
            (&["storage.example.com"], "Storage.Example.com:80", true),
            (&["storage.example.com"], "storage.example.com.", true),
            (&["storage.example.com"], "a.storage.example.com", false),
            (&["*.example.com", "b.org"], "a.b.example.com:1", true),
            (&["*.example.com", "b.org"], "b.org", true),
            (&["*.example.com"], "example.com", false),
            (&["*.example.com"], "badexample.com", false),
        ] {
            let allowed: Vec<AllowedHost> = texts.iter().map(|t| t.parse().unwrap()).collect();
            assert_eq!(is_known_host(authority, &allowed), expected, "{authority}");
            let shown: Vec<String> = allowed.iter().map(AllowedHost::to_string).collect();
            assert_eq!(shown, texts);
        }
        for text in ["", "*.", "**", "a..b", "http://a", "a:80", "a b", "*a"] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
    }

    #[test]
    fn pages_of_this_machine_and_of_the_server_are_trusted() {
        for (origin, authority, expected) in [
            ("http://localhost:3000", "127.0.0.1:10000", true),
            ("https://LOCALHOST", "127.0.0.1:10000", true),
            ("http://app.localhost:3000", "127.0.0.1:10000", true),
            ("http://127.0.0.2:3000", "azurite:10000", true),
            ("http://[::1]:3000", "azurite:10000", true),
            ("capacitor://localhost", "127.0.0.1:10000", true),
            ("http://storage:10000", "storage:10000", true),
            ("https://Storage.example", "storage.example", true),
            ("http://storage:3000", "storage:10000", false),
            ("https://evil.example", "127.0.0.1:10000", false),
            ("https://localhost.evil.example", "127.0.0.1:10000", false),
            ("https://localhost:evil.example", "127.0.0.1:10000", false),
            ("http://192.168.1.5", "127.0.0.1:10000", false),
            ("null", "127.0.0.1:10000", false),
            ("file://", "127.0.0.1:10000", false),
            ("chrome-extension://abc", "127.0.0.1:10000", false),
            ("localhost", "127.0.0.1:10000", false),
            ("", "", false),
            ("http://", "", false),
        ] {
            let trusted = is_trusted_origin(origin, authority);
            assert_eq!(trusted, expected, "{origin} at {authority}");
        }
    }
}
