//! The world: its state and the possible steps.

use smalt_listener::rules::done::Finished;
use stateright::{Model, Property};

use crate::owner::{Move, Owner, moves};
use crate::properties;

/// Last tick of the service's clock.
pub(crate) const TICKS: u8 = 5;
/// Visibility timeout of a received message, in ticks.
pub(crate) const VISIBILITY: u8 = 2;
/// Delay of a retry, in ticks.
pub(crate) const RETRY: u8 = 1;
/// Attempts before the poison queue.
pub(crate) const MAX_DEQUEUE: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Deletes the message before its handler runs.
    DeletesAtReceipt,
    /// Deletes a failed message first, and copies it afterwards.
    DeletesBeforeTheCopy,
    /// Treats a put into the poison queue as made although its answer was lost.
    TakesALostPutForMade,
    /// Remembers a message as handled when its handler starts.
    RemembersBeforeTheVerdict,
    /// Keeps using the old receipt after a renewal.
    KeepsTheOldReceipt,
    /// Runs the handler regardless of the dequeue count.
    RunsWhateverTheCount,
}

/// The message as stored by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) receipt: u8,
    pub(crate) visible_at: u8,
    pub(crate) count: u8,
}

/// A process's memory of the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    handled: bool,
    copied: bool,
}

impl Memory {
    pub(crate) fn insert(&mut self, finished: Finished) {
        *self = Memory {
            handled: finished == Finished::Handled,
            copied: finished == Finished::Copied,
        };
    }

    pub(crate) fn is_some(self) -> bool {
        self.handled || self.copied
    }
}

/// Violations, recorded where they happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wrongs {
    pub(crate) deleted_unhandled: bool,
    pub(crate) old_receipt_shown: bool,
    pub(crate) handled_too_often: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: u8,
    pub(crate) message: Option<Message>,
    /// The newest receipt that the service has issued.
    pub(crate) receipt: u8,
    pub(crate) copies: u8,
    pub(crate) is_handled: bool,
    /// Whether the message was received too often and kept from a handler.
    pub(crate) was_refused: bool,
    pub(crate) owners: [Owner; 2],
    pub(crate) memories: [Memory; 2],
    pub(crate) losses: u8,
    pub(crate) crashes: u8,
    pub(crate) wrongs: Wrongs,
}

/// The fate of a call and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Arrives,
    /// The service acted, and the answer is lost.
    LostAfter,
    /// The service did not act, and no answer comes.
    LostBefore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    /// A process dies and restarts.
    Crash(usize),
    Owner(usize, Move, Answer),
}

/// The model, with or without a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Small {
    pub(crate) mistake: Option<Mistake>,
    /// Whether both owners belong to one process.
    pub(crate) one_process: bool,
    pub(crate) losses: u8,
    pub(crate) crashes: u8,
}

impl Small {
    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) fn process(&self, owner: usize) -> usize {
        if self.one_process { 0 } else { owner }
    }
}

impl State {
    fn crash(&mut self, small: &Small, process: usize) {
        self.crashes -= 1;
        self.memories[process] = Memory::default();
        for (at, owner) in self.owners.iter_mut().enumerate() {
            if small.process(at) == process {
                *owner = Owner::default();
            }
        }
    }
}

impl Model for Small {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            message: Some(Message {
                receipt: 0,
                visible_at: 0,
                count: 0,
            }),
            receipt: 0,
            copies: 0,
            is_handled: false,
            was_refused: false,
            owners: [Owner::default(); 2],
            memories: [Memory::default(); 2],
            losses: self.losses,
            crashes: self.crashes,
            wrongs: Wrongs::default(),
        }]
    }

    fn actions(&self, world: &State, all: &mut Vec<Action>) {
        if world.now < TICKS {
            all.push(Action::Tick);
        }
        if world.crashes > 0 {
            let processes = if self.one_process { 1 } else { 2 };
            all.extend((0..processes).map(Action::Crash));
        }
        for (at, owner) in world.owners.iter().enumerate() {
            for next in moves(owner, world.now) {
                all.push(Action::Owner(at, next, Answer::Arrives));
                if next.is_call() && world.losses > 0 {
                    all.push(Action::Owner(at, next, Answer::LostAfter));
                    all.push(Action::Owner(at, next, Answer::LostBefore));
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut world = last.clone();
        match action {
            Action::Tick => world.now += 1,
            Action::Crash(process) => world.crash(self, process),
            Action::Owner(at, next, answer) => world.step(self, at, next, answer),
        }
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
