//! Decides about one blob: a pure function of the observed properties, the policy and the service's
//! time. Only this module decides that a blob may be removed; it does no IO.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_protocol::metadata::FOLDER_MARKER;
use smalt_sleeve::port::{BlobProperties, CopyStatus, LeaseState, Metadata, metadata_value};

use crate::destination::{self, Destination, SweptPlace};
use crate::glob;
use crate::outcome::Outcome;
use crate::rule;
use crate::ttl::{self, TimeToLive, TtlFormat};

pub use crate::rule::Rule;

/// The operator's rules, in addition to the blobs' own metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Metadata name of the time to live, compared case-insensitively (DS26).
    pub ttl_key: String,
    /// Metadata name of the destination, compared case-insensitively.
    pub dbc_key: String,
    /// Accepted formats of a time to live.
    pub ttl_formats: Vec<TtlFormat>,
    /// Delay between the due time and the removal; allows for clock differences.
    pub grace: Duration,
    /// A blob that was modified more recently than this is never removed.
    pub min_age: Duration,
    /// Blobs that are never removed, as patterns over `name` and `container/name`.
    pub protect: Vec<String>,
    /// Times to live for blobs without one. The first matching rule applies.
    pub rules: Vec<Rule>,
    /// Destination of due blobs that name none themselves, in the grammar of `DeadBlobContainer`;
    /// if `None`, they are deleted.
    pub dead: Option<String>,
    /// Containers that a blob may name as its destination, as patterns. The containers of `dead`
    /// and of the rules are also allowed, because the operator chose them.
    pub allow: Vec<String>,
    /// Whether dead blobs may be moved to a place that is swept itself.
    pub allow_swept_destination: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            ttl_key: "TimeToLive".to_owned(),
            dbc_key: "DeadBlobContainer".to_owned(),
            ttl_formats: vec![TtlFormat::Rfc3339],
            grace: Duration::ZERO,
            min_age: Duration::ZERO,
            protect: Vec::new(),
            rules: Vec::new(),
            dead: None,
            allow: Vec::new(),
            allow_swept_destination: false,
        }
    }
}

impl Policy {
    /// Returns the operator's destinations, in the grammar of `DeadBlobContainer`.
    pub fn destinations(&self) -> impl Iterator<Item = &str> {
        let of_rules = self.rules.iter().filter_map(|rule| rule.dead.as_deref());
        self.dead.as_deref().into_iter().chain(of_rules)
    }

    /// Returns whether dead blobs may be moved to this container.
    pub fn allows(&self, container: &str) -> bool {
        let mut chosen = self.destinations().map(destination::container_of);
        chosen.any(|chosen| chosen == container)
            || self.allow.iter().any(|p| glob::matches(p, container))
    }

    /// Returns whether blobs may choose any container.
    pub fn allows_any(&self) -> bool {
        let mut patterns = self.allow.iter();
        patterns.any(|pattern| matches!(pattern.as_str(), "*" | "**"))
    }
}

/// The place of the blobs, and the possible destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene<'a> {
    /// Account of the blobs.
    pub account: &'a str,
    /// Container of the blobs.
    pub container: &'a str,
    /// Account for dead blobs; `None` if none is configured.
    pub dead_account: Option<&'a str>,
    /// Account and container of the state document.
    pub state: Option<(&'a str, &'a str)>,
    /// Every place that is swept.
    pub swept: &'a [SweptPlace],
}

/// The decision about one blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The blob stays; the outcome is the reason.
    Keep(Outcome),
    /// The blob is deleted.
    Delete {
        /// When the blob was due.
        due: Timestamp,
    },
    /// The blob is copied to another place, then deleted.
    Move {
        /// When the blob was due.
        due: Timestamp,
        /// Place of the copy.
        destination: Destination,
    },
}

impl Decision {
    /// Returns whether the decision removes the blob from its container.
    pub fn removes(&self) -> bool {
        !matches!(self, Decision::Keep(_))
    }
}

/// The due time of a blob, from its own time to live or a rule, and its destination.
struct Term<'a> {
    due: Timestamp,
    dead: Option<&'a str>,
}

/// Decides about one version of a blob. `now` is the service's `Date` of the response that returned
/// this version, never the worker's clock (DS15).
pub fn decide(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    now: Timestamp,
) -> Decision {
    if is_directory(&seen.metadata) {
        return Decision::Keep(Outcome::Directory);
    }
    let term = match term(policy, scene, name, seen) {
        Ok(term) => term,
        Err(outcome) => return Decision::Keep(outcome),
    };
    if term.due.plus(policy.grace) > now || term.due == Timestamp::MAX {
        return Decision::Keep(Outcome::NotDue);
    }
    if let Some(outcome) = kept_though_due(policy, scene, name, seen, now) {
        return Decision::Keep(outcome);
    }
    match term.dead {
        None => Decision::Delete { due: term.due },
        Some(dead) => match place(policy, scene, name, dead) {
            Ok(_) if is_archived(seen) => Decision::Keep(Outcome::Archived),
            Ok(destination) => Decision::Move {
                due: term.due,
                destination,
            },
            Err(outcome) => Decision::Keep(outcome),
        },
    }
}

/// Whether a blob is a directory of a hierarchical account, or the marker that stands for one in a
/// flat account. Removing it would remove the place of the blobs in it.
pub(crate) fn is_directory(metadata: &Metadata) -> bool {
    metadata_value(metadata, FOLDER_MARKER).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// Maximum length of a value quoted in a report, in characters.
const QUOTED_CHARS_MAX: usize = 100;

/// Returns the detail that helps to fix a blob that stays, such as the invalid value.
pub(crate) fn detail(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    outcome: Outcome,
) -> Option<String> {
    let quoted = |text: &str| {
        let short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
        format!("{short:?}")
    };
    match outcome {
        Outcome::InvalidTtl => {
            let text = metadata_value(&seen.metadata, &policy.ttl_key)?;
            let examples = ttl::examples(&policy.ttl_formats);
            let found = format!("{} is {}", policy.ttl_key, quoted(text));
            Some(format!("{found}; such as {examples} would do"))
        }
        Outcome::BadName if !destination::is_blob_name(name) => {
            Some("its name cannot be addressed unambiguously".to_owned())
        }
        Outcome::DbcUnconfigured | Outcome::DbcSelf | Outcome::DbcSwept | Outcome::BadName => {
            let dead = term(policy, scene, name, seen).ok()?.dead?;
            Some(format!("to {}", quoted(dead)))
        }
        Outcome::DbcNotAllowed => {
            let dead = term(policy, scene, name, seen).ok()?.dead?;
            let place = destination::resolve(dead, name).ok()?;
            let why = forbidden(policy, scene, &place)?;
            Some(format!("to {}: {why}", quoted(dead)))
        }
        Outcome::TagsDenied => Some("a rule needs its index tags".to_owned()),
        Outcome::Archived => Some("it must be rehydrated before it can be copied".to_owned()),
        _ => None,
    }
}

/// A blob's own time to live takes precedence over rules; no rule replaces an invalid one.
fn term<'a>(
    policy: &'a Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &'a BlobProperties,
) -> Result<Term<'a>, Outcome> {
    let dead = metadata_value(&seen.metadata, &policy.dbc_key);
    if let Some(text) = metadata_value(&seen.metadata, &policy.ttl_key) {
        let ttl = ttl::parse(text, &policy.ttl_formats).ok_or(Outcome::InvalidTtl)?;
        let due = ttl.due(seen.last_modified);
        let dead = dead.or(policy.dead.as_deref());
        return Ok(Term { due, dead });
    }
    let at = rule::first(&policy.rules, scene.container, name, seen);
    let at = at.map_err(|_| Outcome::TagsDenied)?;
    let rule = &policy.rules[at.ok_or(Outcome::NoTtl)?];
    if rule
        .exclude
        .iter()
        .any(|p| glob::means(p, scene.container, name))
    {
        return Err(Outcome::Protected);
    }
    Ok(Term {
        due: TimeToLive::AfterLastModified(rule.older_than).due(seen.last_modified),
        dead: dead.or(rule.dead.as_deref()).or(policy.dead.as_deref()),
    })
}

fn kept_though_due(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    now: Timestamp,
) -> Option<Outcome> {
    let protected = |p: &String| glob::means(p, scene.container, name);
    let copying = seen
        .copy
        .as_ref()
        .is_some_and(|copy| copy.status == CopyStatus::Pending);
    if !destination::is_blob_name(name) {
        Some(Outcome::BadName)
    } else if policy.protect.iter().any(protected) {
        Some(Outcome::Protected)
    } else if seen.last_modified.plus(policy.min_age) > now && !policy.min_age.is_zero() {
        Some(Outcome::TooYoung)
    } else if seen.lease == LeaseState::Locked {
        Some(Outcome::Leased)
    } else if copying {
        // A copy into this blob is still pending.
        Some(Outcome::Changed)
    } else {
        None
    }
}

pub(crate) fn is_archived(seen: &BlobProperties) -> bool {
    let tier = seen.access_tier.as_deref().unwrap_or_default();
    tier.eq_ignore_ascii_case("archive")
}

/// DS4, DS5: a blob with a destination is never deleted instead of moved.
pub(crate) fn place(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    dead: &str,
) -> Result<Destination, Outcome> {
    let account = scene.dead_account.ok_or(Outcome::DbcUnconfigured)?;
    let destination = destination::resolve(dead, name).map_err(|_| Outcome::BadName)?;
    let itself = destination::same_account(account, scene.account)
        && destination.container == scene.container
        && destination.name == name;
    if itself {
        return Err(Outcome::DbcSelf);
    }
    let swept = scene.swept.iter().any(|s| s.covers(account, &destination));
    if swept && !policy.allow_swept_destination {
        return Err(Outcome::DbcSwept);
    }
    match forbidden(policy, scene, &destination) {
        Some(_) => Err(Outcome::DbcNotAllowed),
        None => Ok(destination),
    }
}

/// Returns why a blob may not choose this container. Without this check, anyone who can write a
/// blob into a swept container could write to every other container with the sweeper's credential.
pub(crate) fn forbidden(
    policy: &Policy,
    scene: &Scene<'_>,
    destination: &Destination,
) -> Option<String> {
    let container = destination.container.as_str();
    let is_state = scene.state.is_some_and(|(account, state)| {
        let dead = scene.dead_account.unwrap_or_default();
        destination::same_account(account, dead) && state == container
    });
    if container.starts_with('$') {
        Some("containers whose names begin with `$` are never a destination".to_owned())
    } else if is_state {
        Some("the container of the state document is never a destination".to_owned())
    } else if policy.allows(container) {
        None
    } else {
        Some(format!(
            "container {container} is not an allowed destination; --dead-allow {container} \
             (sweeper.dead.allow) allows it"
        ))
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
pub(crate) mod tests;
