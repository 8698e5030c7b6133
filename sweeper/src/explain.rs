//! Explains why a blob is removed or stays: every check of [`decide`] with its findings.
//!
//! While `decide` stops at the first check that keeps a blob, this module runs all checks, so that
//! an owner sees every obstacle. The first check that keeps the blob determines the outcome; a
//! property test verifies that it agrees with `decide`.

use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobProperties, CopyStatus, LeaseState, metadata_value};
use smalt_worker::span;

use crate::decide::{self, Decision, Policy, Rule, Scene};
use crate::destination;
use crate::glob;
use crate::outcome::Outcome;
use crate::rule;
use crate::ttl::{self, TimeToLive};

/// One check of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check.
    pub check: &'static str,
    /// The finding, as text.
    pub found: String,
    /// The outcome, if this check keeps the blob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps: Option<Outcome>,
}

/// The full explanation for one version of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The result of [`decide::decide`].
    pub decision: Decision,
    /// Every check, in the order of the decision.
    pub checks: Vec<Check>,
    /// When the blob may be removed at the earliest, including grace and minimum age; `None` if
    /// never.
    pub goes_from: Option<Timestamp>,
}

impl Explanation {
    /// Returns the first check that keeps the blob, if any.
    pub fn deciding(&self) -> Option<&Check> {
        self.checks.iter().find(|check| check.keeps.is_some())
    }
}

struct Term<'a> {
    due: Timestamp,
    dead: Option<(&'a str, &'static str)>,
}

struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, check: &'static str, keeps: Option<Outcome>, found: impl Into<String>) {
        self.0.push(Check {
            check,
            found: found.into(),
            keeps,
        });
    }
}

/// Explains the result of [`decide::decide`] for the same blob at the same time.
pub fn explain(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    now: Timestamp,
) -> Explanation {
    let mut checks = Checks(Vec::new());
    if decide::is_directory(&seen.metadata) {
        let found = "it is a directory";
        checks.add("kind", Some(Outcome::Directory), found);
    }
    let term = term(policy, scene, name, seen, &mut checks);
    let mut goes_from = None;
    if let Some(term) = &term {
        time(policy, term, now, &mut checks);
        let from = term.due.plus(policy.grace);
        let old_enough = seen.last_modified.plus(policy.min_age);
        let later = match policy.min_age.is_zero() {
            true => from,
            false => from.max(old_enough),
        };
        goes_from = Some(later).filter(|_| term.due != Timestamp::MAX);
    }
    hindrances(policy, scene, name, seen, now, &mut checks);
    if let Some(term) = &term {
        destination(policy, scene, name, seen, term, &mut checks);
    }
    Explanation {
        decision: decide::decide(policy, scene, name, seen, now),
        checks: checks.0,
        goes_from,
    }
}

fn term<'a>(
    policy: &'a Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &'a BlobProperties,
    checks: &mut Checks,
) -> Option<Term<'a>> {
    let own = metadata_value(&seen.metadata, &policy.dbc_key).map(|dead| (dead, "the blob's own"));
    let default = policy.dead.as_deref().map(|dead| (dead, "the default"));
    let key = &policy.ttl_key;
    if let Some(text) = metadata_value(&seen.metadata, key) {
        let Some((read, format)) = ttl::read(text, &policy.ttl_formats) else {
            let examples = ttl::examples(&policy.ttl_formats);
            let found =
                format!("{key} is {text:?}, which no format reads; such as {examples} would do");
            checks.add("time to live", Some(Outcome::InvalidTtl), found);
            return None;
        };
        let due = read.due(seen.last_modified);
        let how = match (read, format) {
            (TimeToLive::AfterLastModified(span), _) => format!(
                "{} after its last change at {}",
                span::format(span),
                seen.last_modified.iso_s()
            ),
            (TimeToLive::At(_), Some(format)) => format!("read as {format}"),
            (TimeToLive::At(_), None) => "an instant".to_owned(),
        };
        let found = format!("{key} is {text:?}: {how}, so due at {}", due.iso_s());
        checks.add("time to live", None, found);
        return Some(Term {
            due,
            dead: own.or(default),
        });
    }
    let rule = rule(policy, scene, name, seen, checks)?;
    let due = TimeToLive::AfterLastModified(rule.older_than).due(seen.last_modified);
    let found = format!(
        "last changed at {}, so due at {}",
        seen.last_modified.iso_s(),
        due.iso_s()
    );
    checks.add("age", None, found);
    let of_rule = rule.dead.as_deref().map(|dead| (dead, "the rule's"));
    Some(Term {
        due,
        dead: own.or(of_rule).or(default),
    })
}

/// Checks the rules in order; the first match applies.
fn rule<'a>(
    policy: &'a Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    checks: &mut Checks,
) -> Option<&'a Rule> {
    let key = &policy.ttl_key;
    let at = match rule::first(&policy.rules, scene.container, name, seen) {
        Ok(at) => at,
        Err(at) => {
            let found = format!("no metadata {key}, so the rules apply");
            checks.add("time to live", None, found);
            passed_over(&policy.rules[..at], checks);
            let rule = shown(&policy.rules[at], at);
            let found = format!("{rule} needs index tags, which cannot be read");
            checks.add("rule", Some(Outcome::TagsDenied), found);
            return None;
        }
    };
    let none = at.is_none().then_some(Outcome::NoTtl);
    let count = policy.rules.len();
    let found = match (at, count) {
        (Some(_), _) => format!("no metadata {key}, so the rules apply"),
        (None, 0) => format!("no metadata {key}, and there are no rules"),
        (None, _) => format!("no metadata {key}, and none of {count} rules matches"),
    };
    if at.is_none() {
        passed_over(&policy.rules, checks);
    }
    checks.add("time to live", none, found);
    let at = at?;
    passed_over(&policy.rules[..at], checks);
    let rule = &policy.rules[at];
    let excluded = rule
        .exclude
        .iter()
        .find(|p| glob::means(p, scene.container, name));
    let found = match excluded {
        Some(pattern) => format!("{} matches, but excludes {pattern}", shown(rule, at)),
        None => format!("{} matches", shown(rule, at)),
    };
    checks.add("rule", excluded.map(|_| Outcome::Protected), found);
    excluded.is_none().then_some(rule)
}

fn passed_over(rules: &[Rule], checks: &mut Checks) {
    for (at, rule) in rules.iter().enumerate() {
        checks.add("rule", None, format!("{} does not match", shown(rule, at)));
    }
}

fn shown(rule: &Rule, at: usize) -> String {
    format!("rule {} ({rule})", at + 1)
}

fn time(policy: &Policy, term: &Term<'_>, now: Timestamp, checks: &mut Checks) {
    let from = term.due.plus(policy.grace);
    let early = from > now || term.due == Timestamp::MAX;
    let grace = match policy.grace.is_zero() {
        true => String::new(),
        false => format!(" with a grace of {}", span::format(policy.grace)),
    };
    let left = span::format(from.floor_s().since(now));
    let found = match early {
        true => format!("due in {left}{grace}; service time is {}", now.iso_s()),
        false => format!("due{grace}; service time is {}", now.iso_s()),
    };
    checks.add("time", early.then_some(Outcome::NotDue), found);
}

fn hindrances(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    now: Timestamp,
    checks: &mut Checks,
) {
    let bad = !destination::is_blob_name(name);
    let found = if bad {
        "cannot be addressed unambiguously"
    } else {
        "can be addressed"
    };
    checks.add("name", bad.then_some(Outcome::BadName), found);

    let mut patterns = policy.protect.iter();
    let protected = patterns.find(|p| glob::means(p, scene.container, name));
    let found = match protected {
        Some(pattern) => format!("protected by {pattern}"),
        None => format!("none of {} protect patterns matches", policy.protect.len()),
    };
    checks.add("protection", protected.map(|_| Outcome::Protected), found);

    if !policy.min_age.is_zero() {
        let young = seen.last_modified.plus(policy.min_age) > now;
        let least = span::format(policy.min_age);
        let found = match young {
            true => format!("changed less than {least} ago"),
            false => format!("changed {least} ago or earlier"),
        };
        checks.add("least age", young.then_some(Outcome::TooYoung), found);
    }
    let leased = seen.lease == LeaseState::Locked;
    let found = if leased {
        "leased by another client"
    } else {
        "not leased"
    };
    checks.add("lease", leased.then_some(Outcome::Leased), found);

    let copying = (seen.copy.as_ref()).is_some_and(|copy| copy.status == CopyStatus::Pending);
    if copying {
        let found = "a copy into it is still pending";
        checks.add("copy", Some(Outcome::Changed), found);
    }
}

fn destination(
    policy: &Policy,
    scene: &Scene<'_>,
    name: &str,
    seen: &BlobProperties,
    term: &Term<'_>,
    checks: &mut Checks,
) {
    let tier = seen.access_tier.as_deref().unwrap_or("unknown");
    let Some((dead, whose)) = term.dead else {
        let key = &policy.dbc_key;
        let found = format!("no {key} and no default: deleted");
        checks.add("destination", None, found);
        return;
    };
    let account = scene.dead_account.unwrap_or("-");
    match decide::place(policy, scene, name, dead) {
        Ok(place) => {
            let (container, to) = (place.container, place.name);
            let found = format!("{whose} {dead:?}: to {container}/{to} of account {account}");
            checks.add("destination", None, found);
            let archived = decide::is_archived(seen);
            let keeps = archived.then_some(Outcome::Archived);
            let found = match archived {
                true => "archived: cannot be copied before it is rehydrated".to_owned(),
                false => format!("tier {tier}: can be copied"),
            };
            checks.add("tier", keeps, found);
        }
        Err(outcome) => {
            let place = destination::resolve(dead, name).ok();
            let refused = place.and_then(|place| decide::forbidden(policy, scene, &place));
            let why = match outcome {
                Outcome::DbcUnconfigured => "no account for dead blobs is configured",
                Outcome::DbcSelf => "that is the blob itself",
                Outcome::DbcSwept => "that place is swept itself",
                Outcome::DbcNotAllowed => refused.as_deref().unwrap_or_default(),
                _ => "that is not a valid place",
            };
            let found = format!("{whose} {dead:?}: {why}");
            checks.add("destination", Some(outcome), found);
        }
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
