//! Judges answers by the facts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use smalt_sleeve::redact;

use super::form::TEXT;
use super::nodes::{self, Node};
use super::table::{Fact, Facts, Key, version};
use crate::diff::ledger::matches;
use crate::replay::rules::DROPPED_BY_RECORDERS;
use crate::wire::{Answer, Request};

/// Shortest reason of a known disagreement.
const REASON_CHARACTERS_MIN: usize = 20;

/// A way in which an answer contradicts a fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disagreement {
    /// The fact.
    pub key: Key,
    /// Path of the node.
    pub at: String,
    /// Name in the node.
    pub name: String,
    /// `missing`, `unexpected`, or the form that is none of the fact's.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{} {}\t{}", self.key, self.at, self.name, self.what)
    }
}

/// What judging answers has shown.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The facts that answers met.
    pub met: BTreeSet<Key>,
    /// Number of judged answers.
    pub answers: u64,
    /// Disagreements, each with the first request that shows it.
    pub disagreements: BTreeMap<Disagreement, String>,
}

impl Verdict {
    /// Judges an answer, if a fact is about it and the request's version is not older.
    pub fn judge(&mut self, facts: &Facts, request: &Request, answer: &Answer) {
        let Some(key) = Key::of(request, answer) else {
            return;
        };
        let Some(fact) = facts.get(&key) else {
            return;
        };
        let is_older = match (fact.versions, version(request)) {
            (Some((low, _)), Some(version)) => version < low,
            (_, None) => true,
            (None, Some(_)) => false,
        };
        if is_older {
            return;
        }
        self.met.insert(key.clone());
        self.answers += 1;
        for node in nodes::of(&request.method, answer) {
            for (name, what) in against(fact, &node) {
                let found = Disagreement {
                    key: key.clone(),
                    at: node.at.clone(),
                    name,
                    what,
                };
                let line = || format!("{} {}", request.method, redact(&request.url));
                self.disagreements.entry(found).or_insert_with(line);
            }
        }
    }

    /// Returns the facts that no answer met.
    pub fn unmet(&self, facts: &Facts) -> BTreeSet<String> {
        let unmet = facts.keys().filter(|key| !self.met.contains(key));
        unmet.map(Key::to_string).collect()
    }
}

/// Returns names in a node that contradict a fact, and how.
fn against(fact: &Fact, node: &Node) -> Vec<(String, String)> {
    // Where the fact has no such node, its parent already is a disagreement.
    let Some(held) = fact.nodes.get(&node.at) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, _) in held.iter().filter(|(_, one)| one.always) {
        if !node.holds.contains_key(name) {
            found.push((name.clone(), "missing".to_owned()));
        }
    }
    for (name, forms) in &node.holds {
        match held.get(name) {
            None if DROPPED_BY_RECORDERS.contains(&name.as_str()) => {}
            None => found.push((name.clone(), "unexpected".to_owned())),
            Some(one) if one.forms.contains(TEXT) => {}
            Some(one) => {
                let others = forms.difference(&one.forms);
                found.extend(others.map(|form| (name.clone(), form.clone())));
            }
        }
    }
    found
}

/// A known disagreement: patterns of the columns of a [`Disagreement`], and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    patterns: Vec<String>,
    /// Why smalt is right all the same, or why the fact does not hold for its requests.
    pub reason: String,
}

impl Known {
    fn covers(&self, found: &Disagreement) -> bool {
        let line = found.to_string();
        let columns = line.split('\t');
        let mut pairs = self.patterns.iter().zip(columns);
        pairs.all(|(pattern, text)| matches(pattern, text))
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}", self.patterns.join("\t"), self.reason)
    }
}

/// Reads the list of known disagreements.
///
/// # Errors
/// With the first line that has no six patterns and a reason.
pub fn known(text: &str) -> Result<Vec<Known>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (patterns, reason) = line.rsplit_once('\t').unwrap_or_default();
        let patterns: Vec<String> = patterns.split('\t').map(str::to_owned).collect();
        let is_whole = patterns.len() == 6 && reason.chars().count() >= REASON_CHARACTERS_MIN;
        is_whole
            .then(|| Known {
                patterns,
                reason: reason.to_owned(),
            })
            .ok_or_else(|| format!("write six columns and a reason of some words: {line}"))
    };
    lines.map(entry).collect()
}

/// Returns the lines of a report: disagreements that nobody knows, and known ones that nothing
/// shows.
pub fn report(verdict: &Verdict, known: &[Known]) -> Vec<String> {
    let mut used = vec![false; known.len()];
    let mut lines = Vec::new();
    for (found, request) in &verdict.disagreements {
        match known.iter().position(|known| known.covers(found)) {
            Some(at) => used[at] = true,
            None => lines.push(format!("{found}\t# {request}")),
        }
    }
    let stale = known.iter().zip(used).filter(|(_, used)| !used);
    lines.extend(stale.map(|(known, _)| format!("nothing shows it, remove it: {known}")));
    lines
}
