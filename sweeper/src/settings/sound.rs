//! What can be read and cannot be meant: refused, or shown by `validate`.

use std::net::SocketAddr;

use crate::config::{SweeperConfig, SweptContainer};

/// Refuses what no run could make sense of.
pub(super) fn refused(config: &SweeperConfig) -> Option<String> {
    overlapping(&config.containers).or_else(|| unconfigured(config))
}

/// The same names would be listed twice, by two elements that know nothing of each other.
fn overlapping(containers: &[SweptContainer]) -> Option<String> {
    let within = |a: &SweptContainer, b: &SweptContainer| {
        a.account == b.account && a.container == b.container && a.prefix.starts_with(&b.prefix)
    };
    containers.iter().enumerate().find_map(|(at, one)| {
        let mut earlier = containers[..at].iter();
        let other = earlier.find(|other| within(one, other) || within(other, one))?;
        let shown = |c: &SweptContainer| format!("{}/{}", c.container, c.prefix);
        let (one, other) = (shown(one), shown(other));
        Some(match one == other {
            true => format!("{one} is named twice; name it once"),
            false => format!("{other} and {one} overlap; name the wider one alone"),
        })
    })
}

/// Blobs that are to be moved and have no account to go to would stay for ever.
fn unconfigured(config: &SweeperConfig) -> Option<String> {
    if config.dead.account.is_some() {
        return None;
    }
    let rule = config
        .policy
        .rules
        .iter()
        .find(|rule| rule.dead.is_some())?;
    let dead = rule.dead.as_deref().unwrap_or_default();
    Some(format!(
        "the rule for {rule} moves to `{dead}`, and there is no account for dead blobs; set \
         dead.account (`default` is the one that is swept)"
    ))
}

/// An address to answer at.
pub(super) fn address(key: &str, text: &str) -> Result<(), String> {
    let split = text.rsplit_once(':');
    let named = split.is_some_and(|(host, port)| {
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok()
    });
    match named || text.parse::<SocketAddr>().is_ok() {
        true => Ok(()),
        false => Err(format!(
            "{key}: `{text}` is no ADDRESS:PORT, such as 127.0.0.1:9100"
        )),
    }
}

/// What is likely a mistake, though a run would go on without a word: rules for what is not swept.
/// Where no containers are configured, the state document alone knows.
pub fn findings(config: &SweeperConfig) -> Vec<String> {
    if config.containers.is_empty() {
        return Vec::new();
    }
    let idle = config.policy.rules.iter().filter(|rule| {
        let touches = |swept: &SweptContainer| {
            let (a, b) = (&swept.prefix, &rule.prefix);
            swept.container == rule.container && (a.starts_with(b) || b.starts_with(a))
        };
        !config.containers.iter().any(touches)
    });
    idle.map(|rule| format!("the rule for {rule} has no effect: nothing there is swept"))
        .collect()
}
