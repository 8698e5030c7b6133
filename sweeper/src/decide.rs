//! The decision about one blob: a pure function of what was observed, the policy and the service's
//! time. Nothing here does IO; nothing else decides that a blob may go.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobProperties, CopyStatus, LeaseState, metadata_value};

use crate::destination::{self, Destination, SweptPlace};
use crate::glob;
use crate::outcome::Outcome;
use crate::rule;
use crate::ttl::{self, TimeToLive, TtlFormat};

pub use crate::rule::Rule;

/// What the operator wants, apart from what the blobs themselves say.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Metadata name of the time to live, compared without case (DS26).
    pub ttl_key: String,
    /// Metadata name of the place for the dead blob, compared without case.
    pub dbc_key: String,
    /// Formats that a time to live may have.
    pub ttl_formats: Vec<TtlFormat>,
    /// A blob goes this long after its time is over; covers doubt about clocks.
    pub grace: Duration,
    /// A blob whose last change is younger than this never goes.
    pub min_age: Duration,
    /// Blobs that never go, as patterns over `name` and `container/name`.
    pub protect: Vec<String>,
    /// Times to live for blobs without one. The first rule that fits counts.
    pub rules: Vec<Rule>,
    /// Where due blobs go that name no place themselves, in the grammar of `DeadBlobContainer`;
    /// deleted when absent.
    pub dead: Option<String>,
    /// Containers that a blob may name as its destination, as patterns. Those of `dead` and of the
    /// rules are allowed besides: the operator chose them.
    pub allow: Vec<String>,
    /// Whether dead blobs may go to a place that is swept itself.
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
    /// The destinations that the operator chose, in the grammar of `DeadBlobContainer`.
    pub fn destinations(&self) -> impl Iterator<Item = &str> {
        let of_rules = self.rules.iter().filter_map(|rule| rule.dead.as_deref());
        self.dead.as_deref().into_iter().chain(of_rules)
    }

    /// Whether dead blobs may go to this container at all.
    pub fn allows(&self, container: &str) -> bool {
        let mut chosen = self.destinations().map(destination::container_of);
        chosen.any(|chosen| chosen == container)
            || self.allow.iter().any(|p| glob::matches(p, container))
    }

    /// Whether blobs may choose any container.
    pub fn allows_any(&self) -> bool {
        let mut patterns = self.allow.iter();
        patterns.any(|pattern| matches!(pattern.as_str(), "*" | "**"))
    }
}

/// Where the blobs are and where the dead ones may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene<'a> {
    /// Account of the blobs.
    pub account: &'a str,
    /// Container of the blobs.
    pub container: &'a str,
    /// Account for dead blobs, when one is configured.
    pub dead_account: Option<&'a str>,
    /// Account and container of the state document.
    pub state: Option<(&'a str, &'a str)>,
    /// Every place that is swept.
    pub swept: &'a [SweptPlace],
}

/// What is to be done with a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays; the outcome says why.
    Keep(Outcome),
    /// It goes for good.
    Delete {
        /// When its time was over.
        due: Timestamp,
    },
    /// It goes to another place.
    Move {
        /// When its time was over.
        due: Timestamp,
        /// Where to.
        destination: Destination,
    },
}

impl Decision {
    /// Whether the blob is to be removed from where it is.
    pub fn removes(&self) -> bool {
        !matches!(self, Decision::Keep(_))
    }
}

/// What decides about a blob: its own time to live or a rule.
struct Term<'a> {
    due: Timestamp,
    dead: Option<&'a str>,
}

/// Decides about one version of a blob. `now` is the service's `Date` of the answer in which that
/// very version was seen, never the worker's clock (DS15).
pub fn decide(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    now: Timestamp,
) -> Decision {
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

/// Longest part of a value that a report quotes.
const QUOTED_CHARS_MAX: usize = 100;

/// What somebody has to know to mend a blob that stays: the value that cannot be used.
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
            Some(format!("{} is {}", policy.ttl_key, quoted(text)))
        }
        Outcome::BadName if !destination::is_blob_name(name) => {
            Some("its name cannot be addressed without doubt".to_owned())
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
        Outcome::TagsDenied => Some("a rule asks for its index tags".to_owned()),
        Outcome::Archived => Some("it has to be rehydrated before it can be copied".to_owned()),
        _ => None,
    }
}

/// The blob's own time to live wins over rules; an unreadable one is never replaced by a rule.
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
        // Somebody is still writing this blob.
        Some(Outcome::Changed)
    } else {
        None
    }
}

pub(crate) fn is_archived(seen: &BlobProperties) -> bool {
    let tier = seen.access_tier.as_deref().unwrap_or_default();
    tier.eq_ignore_ascii_case("archive")
}

/// DS4, DS5: a blob whose owner wants it kept elsewhere is never deleted instead.
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

/// Why the sweeper does not write to a container that a blob names. Whoever may write a blob into a
/// swept container would otherwise write to every other one with the sweeper's credential.
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
