//! The two kinds of history, as state machines that proptest generates and shrinks.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use smalt_model::Model;
use smalt_model::outcomes::Cell;

use super::generate::{DICE, Space, Step, step};
use super::server::START_S;

thread_local! {
    /// The cells to target; static because proptest's machines take no arguments.
    static WISHES: RefCell<Arc<[Cell]>> = RefCell::new(Arc::new([]));
}

/// Makes the histories of this thread target these cells from now on.
pub fn wish(cells: Vec<Cell>) {
    WISHES.with_borrow_mut(|wishes| *wishes = cells.into());
}

/// Histories; with `RESTARTS` they restart the service.
#[derive(Debug)]
pub struct Histories<const RESTARTS: bool>;

impl<const RESTARTS: bool> ReferenceStateMachine for Histories<RESTARTS> {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new(START_S)).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Step> {
        let model = model.clone();
        let wishes = WISHES.with_borrow(Arc::clone);
        let space = if RESTARTS {
            Space::RESTARTS
        } else {
            Space::HISTORY
        };
        any::<[u8; DICE]>()
            .prop_map(move |dice| step(&model, space, &wishes, &dice))
            .boxed()
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.step(&step.operation);
        model
    }
}
