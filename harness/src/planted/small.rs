//! Random histories until one fails, and that one made small.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;
use smalt_model::Model;

use super::detect::{Caught, Shrunk};
use crate::histories::campaign::one;
use crate::histories::coverage::Coverage;
use crate::histories::generate::Step;
use crate::histories::machine::Histories;
use crate::histories::shrink;
use crate::table_histories::machine::TableHistories;

/// Longest history, in operations: as `harness check histories`.
const OPERATIONS: usize = 50;
/// Most attempts at making a failing history smaller.
const SHRINKS_MAX: usize = 5_000;
/// First seed: that of `ci/check.sh`.
const SEED: u64 = 1_000;

/// What makes histories, and what says whether one is answered rightly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The model, on a service in memory.
    InMemory,
    /// The model, on a service that is stopped and started in between.
    WithRestarts,
    /// The model, on tables of a service in memory.
    Tables,
    /// Nobody: every history is wrong. It shows that an alarm is heard.
    Canary,
}

/// Judges histories one by one; `None` when all are right. `tried` is told of each.
///
/// # Errors
/// When the generator gives up.
pub fn search(judge: Judge, histories: u64, tried: impl FnMut()) -> Result<Option<Caught>, String> {
    let most = 1..=OPERATIONS;
    match judge {
        Judge::WithRestarts => {
            let all = Histories::<true>::sequential_strategy(most);
            search_in(all, judge, histories, tried)
        }
        Judge::Tables => {
            let all = TableHistories::<false>::sequential_strategy(most);
            search_in(all, judge, histories, tried)
        }
        Judge::InMemory | Judge::Canary => {
            let all = Histories::<false>::sequential_strategy(most);
            search_in(all, judge, histories, tried)
        }
    }
}

fn search_in(
    strategy: impl Strategy<Value = Case>,
    judge: Judge,
    histories: u64,
    mut tried: impl FnMut(),
) -> Result<Option<Caught>, String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&SEED.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for _ in 0..histories {
        tried();
        let tree = strategy.new_tree(&mut runner);
        let mut tree = tree.map_err(|reason| format!("the generator gave up: {reason}"))?;
        if let Some(failing) = verdict(judge, &tree.current()) {
            return Ok(Some(small(judge, &mut tree, failing).caught()));
        }
    }
    Ok(None)
}

/// What the strategy makes: the state before, the steps, and where to note how many were run.
type Case = (Model, Vec<Step>, Option<Arc<AtomicUsize>>);

fn small(judge: Judge, tree: &mut impl ValueTree<Value = Case>, first: Failing) -> Failing {
    let mut smallest = first;
    let mut smaller = tree.simplify();
    for _ in 0..SHRINKS_MAX {
        if !smaller {
            break;
        }
        smaller = match verdict(judge, &tree.current()) {
            None => tree.complicate(),
            Some(failing) => {
                smallest = failing;
                tree.simplify()
            }
        };
    }
    // One pass from the end leaves something, most often.
    let end = |history: &[Step]| judged(judge, history).map(|failing| failing.step + 1);
    let history = shrink::smallest(smallest.history.clone(), &end);
    judged(judge, &history).unwrap_or(smallest)
}

/// A history that fails.
struct Failing {
    history: Vec<Step>,
    step: usize,
    difference: String,
    story: String,
}

impl Failing {
    fn caught(self) -> Caught {
        Caught {
            what: self.difference,
            shrunk: Some(Shrunk::operations(self.history.len())),
            story: self.story,
        }
    }
}

fn verdict(judge: Judge, (_, history, seen): &Case) -> Option<Failing> {
    let failing = judged(judge, history)?;
    // What comes after the failing step need not be shrunk one by one.
    if let Some(seen) = seen {
        seen.store(failing.step + 1, Ordering::SeqCst);
    }
    Some(failing)
}

fn judged(judge: Judge, history: &[Step]) -> Option<Failing> {
    let restarts = judge == Judge::WithRestarts;
    let (step, difference, story) = if judge == Judge::Canary {
        (0, "the canary".to_owned(), String::new())
    } else {
        let failure = one(history, restarts, &mut Coverage::default()).err()?;
        let story = format!("{}\n{:?}", failure.transcript, failure.operation);
        (failure.step, failure.difference, story)
    };
    Some(Failing {
        history: history.to_vec(),
        step,
        difference,
        story,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_heard_at_once_and_made_small() {
        let mut tried = 0;
        let caught = search(Judge::Canary, 10, || tried += 1).unwrap().unwrap();
        assert_eq!(tried, 1);
        assert_eq!(caught.shrunk, Some(Shrunk::operations(1)));
    }

    #[test]
    fn nothing_is_found_where_nothing_is_wrong() {
        assert_eq!(search(Judge::InMemory, 20, || ()), Ok(None));
        assert_eq!(search(Judge::Tables, 20, || ()), Ok(None));
    }
}
