//! Checks a history: each partition must have an order, and listings must be true.

use std::collections::{BTreeMap, BTreeSet};

use smalt_model::vocabulary::Operation;

use super::burst::History;
use super::linear::{Call, Refuted, linearize};
use super::listing;
use super::plan::Kind;
use super::state::State;
use crate::histories::names::Names;
use crate::histories::run::Answered;

/// Counts of what was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Calls, answered or not.
    pub calls: usize,
    /// Calls that succeeded.
    pub done: usize,
    /// Calls whose answer was lost.
    pub lost: usize,
    /// Pairs of calls that overlapped.
    pub overlaps: usize,
    /// Entries of listings, and entities of queries.
    pub entries: usize,
    /// Steps of schedules.
    pub steps: usize,
    /// Bursts for which the search gave up before it found an order.
    pub undecided: usize,
}

/// Why a history is not explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// What the search found.
    pub reason: String,
    /// Whether an order may exist because the search gave up.
    pub is_open: bool,
}

impl From<String> for Unexplained {
    fn from(reason: String) -> Self {
        Unexplained {
            reason,
            is_open: false,
        }
    }
}

impl Verdict {
    /// Adds the counts of another verdict.
    pub fn add(&mut self, other: Verdict) {
        self.calls += other.calls;
        self.done += other.done;
        self.lost += other.lost;
        self.overlaps += other.overlaps;
        self.entries += other.entries;
        self.steps += other.steps;
        self.undecided += other.undecided;
    }
}

/// Checks a history. It counts as undecided when the search gives up.
///
/// # Errors
/// Why no order explains it.
pub fn judge(kind: Kind, history: &History) -> Result<Verdict, String> {
    let (entries, undecided) = match explain(kind, &history.start, &history.calls) {
        Ok(entries) => (entries, 0),
        Err(unexplained) if unexplained.is_open => (0, 1),
        Err(unexplained) => return Err(unexplained.reason),
    };
    let answers = || {
        history
            .calls
            .iter()
            .filter_map(|call| call.returned.as_ref())
    };
    Ok(Verdict {
        calls: history.calls.len(),
        done: answers().filter(|(_, seen)| is_done(seen)).count(),
        lost: history.calls.len() - answers().count(),
        overlaps: overlaps(&history.calls),
        entries,
        steps: history.steps,
        undecided,
    })
}

/// Whether a call succeeded. A rejected transaction is answered inside a 202.
fn is_done(seen: &Answered) -> bool {
    let table = seen.table.as_ref().map(|table| table.status);
    table.unwrap_or(seen.answer.status) < 300
}

/// Checks each partition against the model, and listings; returns the number of entries and
/// entities shown.
///
/// # Errors
/// Why no order explains the answers.
pub fn explain(kind: Kind, start: &State, calls: &[Call]) -> Result<usize, Unexplained> {
    let mut parts: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for (place, call) in calls.iter().enumerate() {
        let part = match (kind, &call.operation) {
            (Kind::All | Kind::Container | Kind::Queue | Kind::Lake, _) => "",
            (Kind::Blob | Kind::Listing, Operation::Blob(id, _)) => id.blob.as_str(),
            (Kind::Listing, Operation::Container(..)) => continue,
            (Kind::Entity, Operation::Table(_, operation)) => operation
                .partition()
                .ok_or_else(|| format!("call {place} belongs to no partition"))?,
            _ => return Err(format!("call {place} belongs to another kind of burst").into()),
        };
        parts.entry(part).or_default().push(call);
    }
    // The values that the service generates are independent between partitions.
    let mut state = start.clone();
    for own in parts.values() {
        state.names = partition(&state, own, calls)?;
    }
    match kind {
        Kind::Listing => {
            let judged = listing::check(calls);
            judged.map_err(|(place, reason)| format!("call {place}: {reason}").into())
        }
        _ => {
            let seen = calls.iter().filter_map(|call| call.returned.as_ref());
            let tables = seen.filter_map(|(_, seen)| seen.table.as_ref());
            Ok(tables.map(|table| table.rows.len()).sum())
        }
    }
}

/// Checks one partition and returns the names of the values that the service has generated so far.
/// Indexes in an error refer to all calls.
fn partition(start: &State, own: &[&Call], all: &[Call]) -> Result<Names, Unexplained> {
    let refuted = match linearize(start, own) {
        Ok(found) => return Ok(found.end.names),
        Err(refuted) => refuted,
    };
    let place = |at: usize| {
        let called = own[at].called;
        all.iter()
            .position(|call| call.called == called)
            .unwrap_or(at)
    };
    let Refuted {
        longest,
        reasons,
        states,
        is_open,
    } = refuted;
    let longest: Vec<usize> = longest.into_iter().map(place).collect();
    let found = if is_open {
        "an order that explains the answers may exist, but was not found"
    } else {
        "no order of these calls explains the answers"
    };
    let mut text = format!("{found} ({states} states); one goes as far as {longest:?}, then");
    let mut named = BTreeSet::new();
    for (at, reason) in reasons {
        if named.insert(at) {
            text += &format!("\n{:>3} {reason}", place(at));
        }
    }
    Err(Unexplained {
        reason: text,
        is_open,
    })
}

fn overlaps(calls: &[Call]) -> usize {
    let pairs = calls.iter().enumerate().flat_map(|(place, one)| {
        let later = calls[place + 1..].iter();
        later.filter(move |other| one.called < other.end() && other.called < one.end())
    });
    pairs.count()
}

#[cfg(test)]
pub(super) mod said;
#[cfg(test)]
mod tests;
