//! Random histories until one fails, and that one made small.

use proptest::strategy::{BoxedStrategy, Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;

use super::detect::{Caught, Shrunk};
use crate::histories::campaign::one;
use crate::histories::coverage::Coverage;
use crate::histories::generate::Step;
use crate::histories::machine::Histories;
use crate::histories::shrink;

/// Longest history, in operations: as `harness histories`.
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
    /// Nobody: every history is wrong. It shows that an alarm is heard.
    Canary,
}

/// Judges histories one by one; `None` when all are right. `tried` is told of each.
///
/// # Errors
/// When the generator gives up.
pub fn search(
    judge: Judge,
    histories: u64,
    mut tried: impl FnMut(),
) -> Result<Option<Caught>, String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&SEED.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = strategy(judge);
    for _ in 0..histories {
        tried();
        let tree = strategy.new_tree(&mut runner);
        let mut tree = tree.map_err(|reason| format!("the generator gave up: {reason}"))?;
        let Err(mut difference) = verdict(judge, &tree.current()) else {
            continue;
        };
        let mut smallest = tree.current();
        let mut tries = 0;
        let mut smaller = tree.simplify();
        while smaller && tries < SHRINKS_MAX {
            tries += 1;
            let history = tree.current();
            smaller = match verdict(judge, &history) {
                Ok(()) => tree.complicate(),
                Err(still) => {
                    (smallest, difference) = (history, still);
                    tree.simplify()
                }
            };
        }
        // One pass from the end leaves something, most often.
        let length = |history: &[Step]| verdict(judge, history).err().map(|_| history.len());
        let smallest = shrink::smallest(smallest, &length);
        return Ok(Some(Caught {
            what: difference,
            shrunk: Some(Shrunk::operations(smallest.len())),
        }));
    }
    Ok(None)
}

fn strategy(judge: Judge) -> BoxedStrategy<Vec<Step>> {
    // The counter of steps seen only guides proptest's own shrinking of a failing run.
    if judge == Judge::WithRestarts {
        let histories = Histories::<true>::sequential_strategy(1..=OPERATIONS);
        histories.prop_map(|(_, history, _)| history).boxed()
    } else {
        let histories = Histories::<false>::sequential_strategy(1..=OPERATIONS);
        histories.prop_map(|(_, history, _)| history).boxed()
    }
}

fn verdict(judge: Judge, history: &[Step]) -> Result<(), String> {
    if judge == Judge::Canary {
        return Err("the canary".to_owned());
    }
    let judged = one(
        history,
        judge == Judge::WithRestarts,
        &mut Coverage::default(),
    );
    judged.map_err(|failure| failure.difference.clone())
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
    }
}
