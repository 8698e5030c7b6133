//! Searches for an order of calls that respects real time and a specification.
//!
//! The search of Wing and Gong with Lowe's memory: calls that overlap may take effect in any order;
//! a state reached with the same set of calls is searched only once. A call without an answer may
//! have taken effect at any time after it began, or never.

use std::collections::{HashMap, HashSet};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::vocabulary::Operation;

use crate::histories::run::Answered;

/// Largest number of calls in a burst: the set of finished calls is one 64-bit word.
pub const CALLS_MAX: usize = 64;
/// Number of states after which a search gives up without a result.
pub const STATES_MAX: usize = 300_000;
/// State limit of the first search and of guessing ones; nearly all need one state per call.
const FIRST_LOOK: usize = 10_000;
/// Number of guessing searches for each number of lost calls.
const GUESSES: u32 = 16;

/// The effects of calls, one at a time.
pub trait Spec: Sized {
    /// What a client sees.
    type Output;

    /// Returns the state after a call takes effect now, with its answer, or without anybody seeing
    /// the answer.
    ///
    /// # Errors
    /// Why the call cannot have had this answer.
    fn step(&self, call: &Call<Self::Output>) -> Result<Self, String>;

    /// Returns a hash that is equal for equal states.
    fn fingerprint(&self) -> u64;
}

/// A call as its client saw it.
#[derive(Clone, Debug)]
pub struct Call<O = Answered> {
    /// Index of the client.
    pub client: usize,
    /// The operation requested.
    pub operation: Operation,
    /// Time of the request, on a clock that ticks with each event.
    pub called: u64,
    /// Time and content of the answer; `None` when it was lost.
    pub returned: Option<(u64, O)>,
}

impl<O> Call<O> {
    /// Returns the time of the answer, or `u64::MAX` when it was lost.
    pub fn end(&self) -> u64 {
        self.returned.as_ref().map_or(u64::MAX, |(at, _)| *at)
    }
}

/// How far the search came.
#[derive(Clone, Debug)]
pub struct Refuted {
    /// The longest order that the specification accepts, as indexes in the list of calls.
    pub longest: Vec<usize>,
    /// Why none of the calls that could come next is possible.
    pub reasons: Vec<(usize, String)>,
    /// Number of states searched.
    pub states: usize,
    /// Whether an order may exist because the search gave up.
    pub is_open: bool,
}

/// An order that explains every answer.
#[derive(Clone, Debug)]
pub struct Found<S> {
    /// Indexes in the list of calls.
    pub order: Vec<usize>,
    /// The state after the last call.
    pub end: S,
}

struct Search<'a, S: Spec> {
    calls: &'a [&'a Call<S::Output>],
    /// Guessed times at which the calls took effect, which give the order of trying them.
    guess: &'a [u64],
    /// Dead ends: sets of finished calls, with fingerprints of the states after them.
    failed: HashMap<u64, HashSet<u64>>,
    order: Vec<usize>,
    refuted: Refuted,
    /// Calls without an answer; at most `lost_max` of them may take effect.
    lost: u64,
    lost_max: u32,
    states_max: usize,
}

/// Searches for an order.
///
/// A search with a wrong decision at the start explores everything after it before it backtracks.
/// So the search starts anew many times, and each time guesses when the calls took effect. Each
/// lost call, which may have taken effect at any time or never, multiplies the number of orders,
/// while few lost calls explain anything: so searches allow none of them, then one, then two.
///
/// # Errors
/// When there is no order, or none was found in [`STATES_MAX`] states of a search.
pub fn linearize<S: Spec + Clone>(
    start: &S,
    calls: &[&Call<S::Output>],
) -> Result<Found<S>, Refuted> {
    assert!(calls.len() <= CALLS_MAX, "a burst of {} calls", calls.len());
    let lost = calls.iter().filter(|call| call.returned.is_none()).count() as u32;
    let mut states = 0;
    let mut look = |guess: &[u64], lost_max, states_max| {
        let found = Search::new(calls, guess, lost_max, states_max).run(start);
        found.map_err(|mut refuted| {
            states += refuted.states;
            refuted.states = states;
            refuted
        })
    };
    // In the order of answers the search hardly ever backtracks.
    let by_answer: Vec<u64> = calls.iter().map(|call| call.end()).collect();
    let mut found = look(&by_answer, lost, FIRST_LOOK);
    if !is_open(&found) {
        return found;
    }
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for lost_max in 0..=lost {
        for _ in 0..GUESSES {
            found = look(&guess(calls, &mut random), lost_max, FIRST_LOOK);
            if found.is_ok() {
                return found;
            }
            if !is_open(&found) {
                break;
            }
        }
    }
    for lost_max in 0..=lost {
        found = look(&by_answer, lost_max, STATES_MAX);
        if found.is_ok() || is_open(&found) {
            break;
        }
    }
    found
}

fn is_open<S>(found: &Result<Found<S>, Refuted>) -> bool {
    matches!(found, Err(refuted) if refuted.is_open)
}

/// Guesses when each call took effect: a time while it was in progress. Half of the lost calls come
/// last.
fn guess<O>(calls: &[&Call<O>], random: &mut ChaCha8Rng) -> Vec<u64> {
    let answered = calls.iter().filter_map(|call| call.returned.as_ref());
    let last = answered.map(|(at, _)| *at).max().unwrap_or_default();
    let mut guess = |call: &Call<O>| match &call.returned {
        None if random.next_u32().is_multiple_of(2) => u64::MAX,
        _ => {
            let end = call.end().min(last).max(call.called);
            call.called + random.next_u64() % (end - call.called + 1)
        }
    };
    calls.iter().map(|call| guess(call)).collect()
}

impl<'a, S: Spec + Clone> Search<'a, S> {
    fn new(
        calls: &'a [&'a Call<S::Output>],
        guess: &'a [u64],
        lost_max: u32,
        states_max: usize,
    ) -> Self {
        let lost = calls.iter().enumerate();
        let lost = lost.filter(|(_, call)| call.returned.is_none());
        Search {
            calls,
            guess,
            failed: HashMap::new(),
            order: Vec::new(),
            refuted: Refuted {
                longest: Vec::new(),
                reasons: Vec::new(),
                states: 0,
                is_open: false,
            },
            lost: lost.fold(0, |set, (place, _)| set | (1 << place)),
            lost_max,
            states_max,
        }
    }

    fn run(mut self, start: &S) -> Result<Found<S>, Refuted> {
        if let Some(end) = self.go_on(start, 0) {
            return Ok(Found {
                order: self.order,
                end,
            });
        }
        self.refuted.is_open = self.refuted.states >= self.states_max;
        Err(self.refuted)
    }

    /// Returns the state at the end of an order that begins with the finished calls.
    fn go_on(&mut self, state: &S, done: u64) -> Option<S> {
        let Some(next) = self.next(done) else {
            return Some(state.clone());
        };
        // A fingerprint costs more than a step, so it is computed only when there is one to compare
        // with.
        let failed = self.failed.get(&done);
        let print = failed.map(|_| state.fingerprint());
        let known = failed
            .zip(print)
            .is_some_and(|(states, print)| states.contains(&print));
        if known || self.refuted.states >= self.states_max {
            return None;
        }
        self.refuted.states += 1;
        let mut reasons = Vec::new();
        for place in next {
            match state.step(self.calls[place]) {
                Ok(after) => {
                    self.order.push(place);
                    let end = self.go_on(&after, done | (1 << place));
                    if end.is_some() {
                        return end;
                    }
                    self.order.pop();
                }
                Err(reason) => reasons.push((place, reason)),
            }
        }
        if self.order.len() >= self.refuted.longest.len() && !reasons.is_empty() {
            self.refuted.longest.clone_from(&self.order);
            self.refuted.reasons = reasons;
        }
        let failed = self.failed.entry(done).or_default();
        failed.insert(print.unwrap_or_else(|| state.fingerprint()));
        None
    }

    /// Returns the calls that can take effect next; `None` when every answer is explained.
    fn next(&self, done: u64) -> Option<Vec<usize>> {
        let no_more_lost = (done & self.lost).count_ones() >= self.lost_max;
        let left_out = done | if no_more_lost { self.lost } else { 0 };
        let is_open = |place: &usize| left_out & (1 << place) == 0;
        let open = || (0..self.calls.len()).filter(is_open);
        // A call cannot take effect next if it began after an open call was answered.
        let limit = open().map(|place| self.calls[place].end()).min()?;
        if limit == u64::MAX {
            return None;
        }
        let mut next: Vec<usize> = open()
            .filter(|place| self.calls[*place].called < limit)
            .collect();
        next.sort_by_key(|place| self.guess[*place]);
        Some(next)
    }
}

#[cfg(test)]
mod tests;
