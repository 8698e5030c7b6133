//! The two kinds of history, as state machines that proptest generates and shrinks.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use smalt_model::Model;
use smalt_model::vocabulary::Operation;

use super::generate::{DICE, Space, choose};
use super::server::START_S;

/// Histories; with `RESTARTS` the service is stopped and started in between.
#[derive(Debug)]
pub struct Histories<const RESTARTS: bool>;

impl<const RESTARTS: bool> ReferenceStateMachine for Histories<RESTARTS> {
    type State = Model;
    type Transition = Operation;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new(START_S)).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Operation> {
        let model = model.clone();
        let space = if RESTARTS {
            Space::RESTARTS
        } else {
            Space::HISTORY
        };
        any::<[u8; DICE]>()
            .prop_map(move |dice| choose(&model, space, &dice))
            .boxed()
    }

    fn apply(mut model: Model, operation: &Operation) -> Model {
        model.step(operation);
        model
    }
}
