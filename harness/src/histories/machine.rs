//! Histories, as a state machine that proptest generates and shrinks.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use smalt_model::Model;
use smalt_model::outcomes::Cell;

use super::generate::{DICE, Space, Step, TABLE_DICE, step};
use super::server::START_S;

thread_local! {
    /// The space and the cells to target; static because proptest's machines take no arguments.
    static AIM: RefCell<(Space, Arc<[Cell]>)> = RefCell::new((Space::HISTORY, Arc::new([])));
}

/// Makes the histories of this thread use this space and target these cells from now on.
pub fn aim(space: Space, wishes: Vec<Cell>) {
    AIM.with_borrow_mut(|aim| *aim = (space, wishes.into()));
}

/// Histories in the space that [`aim`] sets.
#[derive(Debug)]
pub struct Histories;

impl ReferenceStateMachine for Histories {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new(START_S)).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Step> {
        let model = model.clone();
        let (space, wishes) = AIM.with_borrow(Clone::clone);
        let step = move |dice: &[u8]| step(&model, space, &wishes, dice);
        match space.dice() {
            TABLE_DICE => any::<[u8; TABLE_DICE]>()
                .prop_map(move |d| step(&d))
                .boxed(),
            _ => any::<[u8; DICE]>().prop_map(move |d| step(&d)).boxed(),
        }
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.step(&step.operation);
        model
    }
}
