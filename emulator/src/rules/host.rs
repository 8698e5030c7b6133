//! Host names, and the patterns that match them: `files.example.com`, `*.example.com`.

use std::fmt;
use std::str::FromStr;

/// A pattern for host names, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(String),
    /// `*.example.com`: every host below the domain, at any depth, but not the domain itself.
    Below(String),
}

impl HostPattern {
    /// Returns `true` if the pattern matches the host name. Ignores case and a trailing dot.
    pub fn admits(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            HostPattern::Exact(name) => host.eq_ignore_ascii_case(name),
            HostPattern::Below(domain) => is_below(host, domain),
        }
    }
}

impl FromStr for HostPattern {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim().to_ascii_lowercase();
        match text.strip_prefix("*.") {
            Some(domain) if is_name(domain) => Ok(HostPattern::Below(domain.to_owned())),
            None if is_name(&text) => Ok(HostPattern::Exact(text)),
            _ => Err(()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(host) => f.write_str(host),
            HostPattern::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

/// Returns `true` if a string has the form of a host name. Underscores are allowed, because
/// container names may have them.
pub fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    text.split('.').all(is_label)
}

/// Returns `true` if a host is a subdomain of a domain, at any depth.
pub fn is_below(host: &str, domain: &str) -> bool {
    let Some(at) = host.len().checked_sub(domain.len()) else {
        return false;
    };
    let (Some(labels), Some(end)) = (host.get(..at), host.get(at..)) else {
        return false;
    };
    labels.len() > 1 && labels.ends_with('.') && end.eq_ignore_ascii_case(domain)
}
