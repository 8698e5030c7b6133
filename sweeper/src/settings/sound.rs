//! What can be read and cannot be meant: refused, or shown by `validate`.

use smalt_worker::face::is_address;

use crate::config::{SweeperConfig, SweptContainer};
use crate::destination;

/// What no run could make sense of.
pub(super) fn refused(config: &SweeperConfig) -> Vec<String> {
    let mut faults = overlapping(&config.containers);
    faults.extend(unconfigured(config));
    faults.extend(never_destinations(config));
    faults
}

/// No blob would ever go there.
fn never_destinations(config: &SweeperConfig) -> Vec<String> {
    let in_state = config.dead.account.as_ref() == Some(&config.state_account);
    let state = in_state.then_some(config.state_blob.container.as_str());
    let chosen = config.policy.destinations().filter_map(|dead| {
        let container = destination::container_of(dead);
        let why = if container.starts_with('$') {
            "a container whose name begins with `$`"
        } else if state == Some(container) {
            "the container of the state document"
        } else {
            return None;
        };
        Some(format!(
            "`{dead}`: {why} is never a destination of dead blobs; name another one"
        ))
    });
    chosen.collect()
}

/// The same names would be listed twice, by two elements that know nothing of each other.
fn overlapping(containers: &[SweptContainer]) -> Vec<String> {
    let within = |a: &SweptContainer, b: &SweptContainer| {
        a.account == b.account && a.container == b.container && a.prefix.starts_with(&b.prefix)
    };
    let all = containers.iter().enumerate();
    let faults = all.filter_map(|(at, one)| {
        let mut earlier = containers[..at].iter();
        let other = earlier.find(|other| within(one, other) || within(other, one))?;
        let shown = |c: &SweptContainer| format!("{}/{}", c.container, c.prefix);
        let (one, other) = (shown(one), shown(other));
        Some(match one == other {
            true => format!("{one} is named twice; name it once"),
            false => format!("{other} and {one} overlap; name the wider one alone"),
        })
    });
    faults.collect()
}

/// Blobs that are to be moved and have no account to go to would stay for ever.
fn unconfigured(config: &SweeperConfig) -> Vec<String> {
    if config.dead.account.is_some() {
        return Vec::new();
    }
    let moving = config.policy.rules.iter().filter_map(|rule| {
        let dead = rule.dead.as_deref()?;
        Some(format!(
            "the rule for {rule} moves to `{dead}`, and there is no account for dead blobs; set \
             dead.account (`default` is the one that is swept)"
        ))
    });
    moving.collect()
}

/// Checks an address that the worker answers at.
pub(super) fn address(key: &str, text: &str) -> Result<(), String> {
    match is_address(text) {
        true => Ok(()),
        false => Err(format!(
            "{key}: `{text}` is not ADDRESS:PORT, such as 127.0.0.1:9100"
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
