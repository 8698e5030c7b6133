//! Names of hosts, and the patterns that admit them: `files.example.com`, `*.example.com`.

use std::fmt;
use std::str::FromStr;

/// A pattern for host names, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This host.
    Exact(String),
    /// `*.example.com`: every host below a domain, at any depth, and not the domain itself.
    Below(String),
}

impl HostPattern {
    /// Whether the pattern admits a host name. Names have no case, and a dot at the end of one says
    /// only that it is complete.
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

/// Whether a text has the form of a host name. Names of containers may have an underscore.
pub fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    text.split('.').all(is_label)
}

/// Whether a host lies below a domain.
pub fn is_below(host: &str, domain: &str) -> bool {
    let Some(at) = host.len().checked_sub(domain.len()) else {
        return false;
    };
    let (Some(labels), Some(end)) = (host.get(..at), host.get(at..)) else {
        return false;
    };
    labels.len() > 1 && labels.ends_with('.') && end.eq_ignore_ascii_case(domain)
}
