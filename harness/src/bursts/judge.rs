//! What a history is worth: each partition has an order, and listings were true.

use std::collections::BTreeSet;

use smalt_model::vocabulary::Operation;

use super::burst::History;
use super::linear::{Call, Refuted, Spec, linearize};
use super::listing;
use super::plan::Kind;
use super::program::{BLOBS, LISTED, PARTITIONS};
use super::spec::blob::Blob;
use super::spec::container::Container;
use super::spec::entity::Partition;
use super::spec::output::{Made, Output};
use super::spec::queue::Queue;
use super::spec::value::Taken;
use crate::histories::run::Answered;
use crate::histories::server::START_S;

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Calls, answered or not.
    pub calls: usize,
    /// Calls that were done, not refused.
    pub done: usize,
    /// Calls whose answer was lost.
    pub lost: usize,
    /// Pairs of calls that overlapped.
    pub overlaps: usize,
    /// Entries of listings, and entities of queries.
    pub entries: usize,
    /// Steps of schedules.
    pub steps: usize,
    /// Bursts of which the search found no order before it gave up.
    pub undecided: usize,
}

/// Why a history is not explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// What the search came upon.
    pub reason: String,
    /// Whether there may be an order all the same: the search gave up.
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
    /// Adds another one.
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

/// Judges a history. One that the search gave up on counts as undecided.
///
/// # Errors
/// Why no order explains it.
pub fn judge(kind: Kind, history: &History) -> Result<Verdict, String> {
    let explained = match (kind, &history.start) {
        (Kind::All, Some(start)) => partition(start, &history.calls, &history.calls).map(|()| 0),
        _ => compact(kind, &history.outputs),
    };
    let (entries, undecided) = match explained {
        Ok(entries) => (entries, 0),
        Err(unexplained) if unexplained.is_open => (0, 1),
        Err(unexplained) => return Err(unexplained.reason),
    };
    let is_done = |call: &&Call| {
        let seen = call.returned.as_ref();
        // A transaction that is refused is answered by a part of a success.
        let status = |seen: &Answered| match &seen.table {
            Some(table) => table.status,
            None => seen.answer.status,
        };
        seen.is_some_and(|(_, seen)| status(seen) < 300)
    };
    Ok(Verdict {
        calls: history.calls.len(),
        done: history.calls.iter().filter(is_done).count(),
        lost: history
            .calls
            .iter()
            .filter(|call| call.returned.is_none())
            .count(),
        overlaps: overlaps(&history.calls),
        entries,
        steps: history.steps,
        undecided,
    })
}

/// Judges each partition by its own specification; the number of entries of listings.
///
/// # Errors
/// Why no order explains it.
pub fn compact(kind: Kind, calls: &[Call<Output>]) -> Result<usize, Unexplained> {
    let mut made = Made::default();
    for (place, call) in calls.iter().enumerate() {
        if let Some((_, seen)) = &call.returned {
            let added = made.add(&call.operation, seen);
            added.map_err(|reason| format!("call {place}: {reason}"))?;
        }
    }
    let tags = Taken::by_answers(made.tags);
    match kind {
        Kind::Container => partition(&Container::absent(tags), calls, calls).map(|()| 0),
        Kind::Queue => {
            let (messages, receipts) = (made.messages, made.receipts);
            let messages = Taken::by_answers(messages);
            let start = Queue::absent(START_S, messages, Taken::by_answers(receipts));
            partition(&start, calls, calls).map(|()| 0)
        }
        Kind::Blob => blobs(&tags, calls, &BLOBS).map(|()| 0),
        Kind::Listing => {
            blobs(&tags, calls, &LISTED)?;
            let judged = listing::check(calls, &LISTED);
            judged.map_err(|(place, reason)| format!("call {place}: {reason}").into())
        }
        Kind::Entity => entities(&tags, calls),
        Kind::All => Err("everything is judged by the model".to_owned().into()),
    }
}

fn blobs(tags: &Taken, calls: &[Call<Output>], names: &[&str]) -> Result<(), Unexplained> {
    for name in names {
        let is_on = |call: &&Call<Output>| match &call.operation {
            Operation::Blob(id, _) => id.blob == *name,
            _ => false,
        };
        let own: Vec<Call<Output>> = calls.iter().filter(is_on).cloned().collect();
        partition(&Blob::absent(tags.clone()), &own, calls)?;
    }
    Ok(())
}

/// Judges each partition; the number of entities that queries show.
fn entities(tags: &Taken, calls: &[Call<Output>]) -> Result<usize, Unexplained> {
    let partition_of = |call: &Call<Output>| match &call.operation {
        Operation::Table(_, operation) => operation.partition().map(str::to_owned),
        _ => None,
    };
    for (place, call) in calls.iter().enumerate() {
        let known = partition_of(call).filter(|of| PARTITIONS.contains(&of.as_str()));
        known.ok_or_else(|| format!("call {place} is about no partition that is judged"))?;
    }
    for key in PARTITIONS {
        let is_on = |call: &&Call<Output>| partition_of(call).as_deref() == Some(key);
        let own: Vec<Call<Output>> = calls.iter().filter(is_on).cloned().collect();
        partition(&Partition::empty(tags.clone()), &own, calls)?;
    }
    let seen = calls.iter().filter_map(|call| call.returned.as_ref());
    let tables = seen.filter_map(|(_, seen)| seen.table.as_ref());
    Ok(tables.map(|table| table.rows.len()).sum())
}

/// Judges one partition; places in a refusal are those among all calls.
fn partition<S: Spec>(
    start: &S,
    own: &[Call<S::Output>],
    all: &[Call<S::Output>],
) -> Result<(), Unexplained> {
    let Err(refuted) = linearize(start, own) else {
        return Ok(());
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
        "an order that explains the answers may be there, but was not found"
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
mod tests;
