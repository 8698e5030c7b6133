//! Is there an order of these calls that keeps to real time and to a specification?
//!
//! The search of Wing and Gong with the memory of Lowe: calls that overlap may take effect in any
//! order; a state that was reached with the same calls done needs no second look. A call without an
//! answer may have taken effect at any time after it began, or never.

use std::collections::{HashMap, HashSet};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::vocabulary::Operation;

use crate::histories::run::Answered;

/// Most calls of one burst: the set of those done is one word.
pub const CALLS_MAX: usize = 64;
/// States after which a look gives up: nothing was shown.
pub const STATES_MAX: usize = 300_000;
/// States of the first look and of those that guess: nearly all get by with one state a call.
const FIRST_LOOK: usize = 10_000;
/// Looks that guess, with each number of lost calls.
const GUESSES: u32 = 16;

/// What calls do, one at a time.
pub trait Spec: Sized {
    /// What a client sees.
    type Output;

    /// The state after a call takes effect now and is answered as it was, or without anybody
    /// seeing the answer.
    ///
    /// # Errors
    /// Why it cannot have been answered like this.
    fn step(&self, call: &Call<Self::Output>) -> Result<Self, String>;

    /// Equal for equal states.
    fn fingerprint(&self) -> u64;
}

/// A call as its client saw it.
#[derive(Clone, Debug)]
pub struct Call<O = Answered> {
    /// Who called.
    pub client: usize,
    /// What was asked.
    pub operation: Operation,
    /// When it was sent, on a clock that ticks with each event.
    pub called: u64,
    /// When the answer came, and what it was; absent: it was lost.
    pub returned: Option<(u64, O)>,
}

impl<O> Call<O> {
    /// When it was over, for who only asks what came before what.
    pub fn end(&self) -> u64 {
        self.returned.as_ref().map_or(u64::MAX, |(at, _)| *at)
    }
}

/// How far the search came.
#[derive(Clone, Debug)]
pub struct Refuted {
    /// The longest order that the specification agrees to, as places in the list of calls.
    pub longest: Vec<usize>,
    /// Why none of the calls that could come next can.
    pub reasons: Vec<(usize, String)>,
    /// States looked at.
    pub states: usize,
    /// Whether there may be an order all the same: the search gave up.
    pub is_open: bool,
}

/// An order that explains every answer.
#[derive(Clone, Debug)]
pub struct Found<S> {
    /// Places in the list of calls.
    pub order: Vec<usize>,
    /// The state after the last of them.
    pub end: S,
}

struct Search<'a, S: Spec> {
    calls: &'a [&'a Call<S::Output>],
    /// When each call is guessed to have taken effect: in this order they are tried.
    guess: &'a [u64],
    /// From here there is no way on: the calls done, and fingerprints of the state after them.
    failed: HashMap<u64, HashSet<u64>>,
    order: Vec<usize>,
    refuted: Refuted,
    /// Calls without an answer, and how many of them may take effect.
    lost: u64,
    lost_max: u32,
    states_max: usize,
}

/// Looks for an order.
///
/// A search that went wrong early looks at everything that may follow before it thinks again. So it
/// begins anew, many times over, and each look guesses for itself when the calls took effect. And
/// each lost call, which may have taken effect at any time or not at all, multiplies the orders,
/// while few of them explain anything: so there are looks with none of them, with one, with two.
///
/// # Errors
/// There is none, or none was found among [`STATES_MAX`] states of a look.
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
    // In the order of answers the search hardly ever turns back.
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

/// When each call may have taken effect: a moment at which it was under way. Half of the lost ones
/// come last.
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

    /// The state at the end of an order that begins with the calls done.
    fn go_on(&mut self, state: &S, done: u64) -> Option<S> {
        let Some(next) = self.next(done) else {
            return Some(state.clone());
        };
        // A fingerprint costs more than a step: none is taken where there is none to compare with.
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

    /// Calls that can take effect next; `None` when every answer is explained.
    fn next(&self, done: u64) -> Option<Vec<usize>> {
        let no_more_lost = (done & self.lost).count_ones() >= self.lost_max;
        let left_out = done | if no_more_lost { self.lost } else { 0 };
        let is_open = |place: &usize| left_out & (1 << place) == 0;
        let open = || (0..self.calls.len()).filter(is_open);
        // Nothing can take effect that began after an open call had been answered.
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
