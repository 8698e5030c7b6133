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

/// The state of a history while it is generated.
#[derive(Clone, Debug)]
pub struct State {
    model: Model,
    space: Space,
}

/// Histories in the space that [`aim`] sets.
#[derive(Debug)]
pub struct Histories;

impl ReferenceStateMachine for Histories {
    type State = State;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<State> {
        let space = AIM.with_borrow(|(space, _)| *space);
        let of_theme = move |byte| State {
            model: space.model(START_S),
            space: space.themed(byte),
        };
        any::<u8>().prop_map(of_theme).boxed()
    }

    fn transitions(state: &State) -> BoxedStrategy<Step> {
        let State { model, space } = state.clone();
        let wishes = AIM.with_borrow(|(_, wishes)| wishes.clone());
        let step = move |dice: &[u8]| step(&model, space, &wishes, dice);
        match space.dice() {
            TABLE_DICE => any::<[u8; TABLE_DICE]>()
                .prop_map(move |d| step(&d))
                .boxed(),
            _ => any::<[u8; DICE]>().prop_map(move |d| step(&d)).boxed(),
        }
    }

    fn apply(mut state: State, step: &Step) -> State {
        state.model.step(&step.operation);
        state
    }
}
