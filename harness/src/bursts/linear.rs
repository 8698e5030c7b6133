//! Is there an order of these calls that keeps to real time and to the model?
//!
//! The search of Wing and Gong with the memory of Lowe: calls that overlap may take effect in any
//! order; a state that was reached with the same calls done needs no second look. A call without an
//! answer may have taken effect at any time after it began, or never.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use smalt_model::Model;
use smalt_model::vocabulary::Operation;

use crate::histories::check::check;
use crate::histories::names::Names;
use crate::histories::run::Answered;

/// Most calls of one burst: the set of those done is one word.
pub const CALLS_MAX: usize = 64;

/// A call as its client saw it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who called.
    pub client: usize,
    /// What was asked.
    pub operation: Operation,
    /// When it was sent, on a clock that ticks with each event.
    pub called: u64,
    /// When the answer came, and what it was; absent: it was lost.
    pub returned: Option<(u64, Answered)>,
}

/// State of the model, with what its numbers stand for.
#[derive(Clone, Debug)]
pub struct State {
    /// Model.
    pub model: Model,
    /// Texts.
    pub names: Names,
}

/// How far the search came.
#[derive(Clone, Debug)]
pub struct Refuted {
    /// The longest order that the model agrees to, as places in the list of calls.
    pub longest: Vec<usize>,
    /// Why none of the calls that could come next can.
    pub reasons: Vec<(usize, String)>,
    /// States looked at.
    pub states: usize,
}

struct Search<'a> {
    calls: &'a [Call],
    seen: HashSet<(u64, u64)>,
    order: Vec<usize>,
    refuted: Refuted,
}

/// Looks for an order.
///
/// # Errors
/// There is none.
pub fn linearize(start: &State, calls: &[Call]) -> Result<Vec<usize>, Refuted> {
    assert!(calls.len() <= CALLS_MAX, "a burst of {} calls", calls.len());
    let mut search = Search {
        calls,
        seen: HashSet::new(),
        order: Vec::new(),
        refuted: Refuted {
            longest: Vec::new(),
            reasons: Vec::new(),
            states: 0,
        },
    };
    if search.go_on(start, 0) {
        Ok(search.order)
    } else {
        Err(search.refuted)
    }
}

impl Search<'_> {
    fn go_on(&mut self, state: &State, done: u64) -> bool {
        let is_open = |place: usize| done & (1 << place) == 0;
        let answered = |(place, call): (usize, &Call)| is_open(place) && call.returned.is_some();
        if !self.calls.iter().enumerate().any(answered) {
            return true;
        }
        if !self.seen.insert((done, fingerprint(state))) {
            return false;
        }
        self.refuted.states += 1;
        // Nothing can take effect that began after an open call had been answered.
        let ends = self.calls.iter().enumerate().filter_map(|(place, call)| {
            let (returned, _) = call.returned.as_ref()?;
            is_open(place).then_some(*returned)
        });
        let limit = ends.min().unwrap_or(u64::MAX);
        let next: Vec<usize> = (0..self.calls.len())
            .filter(|place| is_open(*place) && self.calls[*place].called < limit)
            .collect();
        let mut reasons = Vec::new();
        for place in next {
            match step(state, &self.calls[place]) {
                Ok(after) => {
                    self.order.push(place);
                    if self.go_on(&after, done | (1 << place)) {
                        return true;
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
        false
    }
}

/// The state after a call takes effect now, if the model answers as the service did.
fn step(state: &State, call: &Call) -> Result<State, String> {
    let mut after = state.clone();
    let expected = after.model.step(&call.operation);
    if let Some((_, answered)) = &call.returned {
        check(
            &expected,
            &answered.answer,
            &answered.entries,
            &mut after.names,
        )?;
    }
    Ok(after)
}

fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{state:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
