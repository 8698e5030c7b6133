//! Checks for values that parse but make no sense: errors, and warnings shown by `validate`.

use smalt_worker::face::is_address;

use crate::config::{SweeperConfig, SweptContainer};
use crate::destination;

/// Returns the faults that prevent a run.
pub(super) fn refused(config: &SweeperConfig) -> Vec<String> {
    let mut faults = overlapping(&config.containers);
    faults.extend(unconfigured(config));
    faults.extend(never_destinations(config));
    faults
}

/// Rejects configured destinations that are never allowed.
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

/// Rejects overlapping containers: both would list the same blobs independently.
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

/// Rejects moves without an account for dead blobs: their blobs would stay forever.
fn unconfigured(config: &SweeperConfig) -> Vec<String> {
    if config.dead.account.is_some() {
        return Vec::new();
    }
    let moving = config.policy.rules.iter().filter_map(|rule| {
        let dead = rule.dead.as_deref()?;
        Some(format!(
            "the rule for {rule} moves to `{dead}`, but no account for dead blobs is configured; \
             set dead.account (`default` is the swept account)"
        ))
    });
    moving.collect()
}

/// Checks an address that the worker is to listen on.
pub(super) fn address(key: &str, text: &str) -> Result<(), String> {
    match is_address(text) {
        true => Ok(()),
        false => Err(format!(
            "{key}: `{text}` is not ADDRESS:PORT, such as 127.0.0.1:9100"
        )),
    }
}

/// Returns likely mistakes that do not prevent a run: rules for containers that are not swept.
/// Returns nothing if no containers are configured, because then only the state document lists
/// them.
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
