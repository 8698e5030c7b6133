//! What a listener lets be seen beside its requests, and what is done to it.

use smalt_listener::{Ended, Outcome, PoolState};

/// One thing that is seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// Its pool changed.
    Pool {
        /// What it is doing.
        state: PoolState,
        /// Tasks that poll.
        tasks: u32,
    },
    /// It decided about a message.
    Decided {
        /// Message id.
        id: String,
        /// How often it was taken, as the listener was told.
        count: u32,
        /// What became of it.
        outcome: Outcome,
        /// Whether it says that the message is about to expire.
        expiring: bool,
    },
    /// It raised the alarm: a message is about to expire.
    Expiring {
        /// Message id.
        id: String,
    },
    /// One of these, of the listener of one queue of several.
    Of(String, Box<Seen>),
    /// A trigger reached it.
    Woken,
    /// It has stopped.
    Left(Ended),
    /// It and all others stood still for so many seconds, their machine asleep.
    Slept(u64),
    /// The owner has deleted the queue with all that is in it.
    QueueDeleted,
    /// A stage of the run begins.
    Stage(Stage),
}

/// The stages of a run after the trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The queue is empty and stays so.
    Idle,
    /// One message comes into the idle queue; whether it is announced.
    Late {
        /// Whether a trigger follows it.
        announced: bool,
    },
    /// Messages come at a constant rate that the listeners can bear.
    Steady,
    /// Messages come at once, and one listener is replaced meanwhile.
    Burst,
    /// All listeners are told to stop.
    End,
}
