//! Runs random histories until one fails, and reduces it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;

use super::detect::{Caught, Shrunk};
use crate::histories::campaign::{About, one};
use crate::histories::coverage::Coverage;
use crate::histories::generate::Step;
use crate::histories::machine::{Histories, State, aim};
use crate::histories::shrink;

/// Maximum length of a history, as in `harness check histories`.
const OPERATIONS: usize = 50;
/// Maximum number of attempts to shrink a failing history.
const SHRINKS_MAX: usize = 5_000;
/// The first seed, as in `ci/check.sh`.
const SEED: u64 = 1_000;

/// Generates histories and decides whether their answers are correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The model, with a service in memory.
    InMemory,
    /// The model, with a service that is restarted during histories.
    WithRestarts,
    /// The model, with tables of a service in memory.
    Tables,
    /// The model, with a hierarchical account of a service in memory.
    Lake,
    /// Every history fails, to show that failures are noticed.
    Canary,
}

impl Judge {
    fn about(self) -> About {
        match self {
            Judge::Tables => About::Tables,
            Judge::Lake => About::Lake,
            Judge::InMemory | Judge::WithRestarts | Judge::Canary => About::Account,
        }
    }
}

/// Runs histories until one fails; `None` when none does. Calls `tried` after each.
///
/// # Errors
/// When the generator gives up.
pub fn search(
    judge: Judge,
    histories: u64,
    mut tried: impl FnMut(),
) -> Result<Option<Caught>, String> {
    aim(
        judge.about().space(judge == Judge::WithRestarts),
        Vec::new(),
    );
    let strategy = Histories::sequential_strategy(1..=OPERATIONS);
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

/// A generated case: the initial state, the steps, and a counter of executed steps.
type Case = (State, Vec<Step>, Option<Arc<AtomicUsize>>);

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
    // One pass from the end usually does not remove everything.
    let end = |history: &[Step]| judged(judge, history).map(|failing| failing.step + 1);
    let history = shrink::smallest(smallest.history.clone(), &end);
    judged(judge, &history).unwrap_or(smallest)
}

/// A failing history.
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
    // Steps after the failing one need not be shrunk one by one.
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
        let failure = one(judge.about(), history, restarts, &mut Coverage::default()).err()?;
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
    fn canary_fails_at_once_and_is_reduced() {
        let mut tried = 0;
        let caught = search(Judge::Canary, 10, || tried += 1).unwrap().unwrap();
        assert_eq!(tried, 1);
        assert_eq!(caught.shrunk, Some(Shrunk::operations(1)));
    }

    #[test]
    fn correct_service_has_no_failure() {
        assert_eq!(search(Judge::InMemory, 20, || ()), Ok(None));
        assert_eq!(search(Judge::Tables, 20, || ()), Ok(None));
        assert_eq!(search(Judge::Lake, 20, || ()), Ok(None));
    }
}
