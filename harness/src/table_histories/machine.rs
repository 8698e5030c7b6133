//! Histories of tables, as a state machine that proptest generates and shrinks.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use smalt_model::Model;
use smalt_model::vocabulary::Operation;

use super::generate::{self, Wanted};
use crate::histories::generate::{Intent, Step};
use crate::histories::server::START_S;

/// Percentage of steps that restart the service, in histories with restarts.
const RESTART_PERCENT: u32 = 4;
/// Percentage of steps that create a table while there is none.
const CREATE_PERCENT: u32 = 80;

thread_local! {
    /// Built once, because the strategy is a large tree and every step draws from it.
    static WANTED: BoxedStrategy<Wanted> = generate::any().boxed();
}

/// Histories; with `RESTARTS` they restart the service.
#[derive(Debug)]
pub struct TableHistories<const RESTARTS: bool>;

impl<const RESTARTS: bool> ReferenceStateMachine for TableHistories<RESTARTS> {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new(START_S)).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Step> {
        let model = model.clone();
        let is_empty = model.tables().names().next().is_none();
        (0..100_u32, 0..100_u32, WANTED.with(Clone::clone))
            .prop_map(move |(restart, create, wanted)| {
                // Shrinking leads to zero: a history without restarts, with a table.
                if RESTARTS && restart >= 100 - RESTART_PERCENT {
                    return step(&model, Operation::Restart);
                }
                let wanted = match is_empty && create < CREATE_PERCENT {
                    true => Wanted::create(),
                    false => wanted,
                };
                step(&model, wanted.operation(model.tables()))
            })
            .boxed()
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.step(&step.operation);
        model
    }
}

/// The intent of a step is the outcome that the model predicts.
fn step(model: &Model, operation: Operation) -> Step {
    let expected = model.clone().step(&operation);
    Step {
        intent: Intent::of(&operation, &expected),
        operation,
    }
}
