//! What a listener reports beside its requests, what is done to it, and the queues of a run.

use smalt_listener::{Ended, Outcome, PoolState};

/// One observation.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The pool of tasks changed.
    Pool {
        /// State of the pool.
        state: PoolState,
        /// Number of tasks that poll.
        tasks: u32,
    },
    /// The listener decided about a message.
    Decided {
        /// Message id.
        id: String,
        /// Dequeue count of which the listener knows.
        count: u32,
        /// The decision.
        outcome: Outcome,
        /// Whether the decision says that the message is about to expire.
        expiring: bool,
    },
    /// The alarm: a message is about to expire.
    Expiring {
        /// Message id.
        id: String,
    },
    /// An observation about the partition with this name.
    Of(String, Box<Seen>),
    /// A trigger reached the listener.
    Woken,
    /// A trigger arrives this number of times in place of once; 0 if it is lost.
    Unreliable {
        /// Arrivals.
        copies: u8,
    },
    /// The listener has stopped.
    Left(Ended),
    /// The machine of all listeners slept for this many seconds.
    Slept(u64),
    /// The owner has deleted the queue with all its messages.
    QueueDeleted,
    /// A stage of the run begins.
    Stage(Stage),
}

/// The stages of a run after the trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The queue is empty and stays empty.
    Idle,
    /// One message arrives in the idle queue.
    Late {
        /// Whether triggers follow it, which may all be lost.
        announced: bool,
    },
    /// Messages arrive at a constant rate that the listeners can process.
    Steady,
    /// Messages arrive at once, and meanwhile one listener is replaced.
    Burst,
    /// All listeners are told to stop.
    End,
}

/// Names of the queues of a run.
#[derive(Clone, Debug)]
pub struct Names {
    /// The queue, or the prefix of its partitions.
    pub queue: String,
    /// The poison queue.
    pub poison: String,
}

impl Names {
    /// Whether `queue` is the queue or one of its partitions.
    pub fn is_queue(&self, queue: &str) -> bool {
        let rest = queue.strip_prefix(&self.queue);
        let is_number = |rest: &str| {
            let number = rest.strip_prefix('-').unwrap_or_default();
            number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        rest.is_some_and(|rest| rest.is_empty() || is_number(rest))
    }

    /// Returns fixed names, for a service that only this run uses.
    pub fn fixed() -> Self {
        Self::fresh("orders")
    }

    /// Returns names for a service that others use too.
    pub fn fresh(queue: &str) -> Self {
        Names {
            queue: queue.to_owned(),
            poison: format!("{queue}-poison"),
        }
    }
}
