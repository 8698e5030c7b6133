//! The outcomes of messages, the decision about each, the totals of a run, the state of the pool,
//! and the errors that end a run.

use std::collections::BTreeMap;
use std::time::Duration;

use smalt_sleeve::port::PortError;

/// The outcome of one message. Every received message ends in exactly one of these, on one line of
/// the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Handled and deleted.
    Done,
    /// Handled; the message was already gone at the delete (expired, or received and deleted by
    /// another listener).
    Gone,
    /// Handled, but the delete failed until the lock expired. The listener remembers the id.
    Unacked,
    /// Not handled; hidden until the next attempt.
    Retried,
    /// Not handled, and the retry delay could not be set; the message returns when its visibility
    /// timeout ends.
    RetryUnset,
    /// Copied to the poison queue and deleted here.
    Poisoned,
    /// Copied to the poison queue, but the delete here failed. The listener remembers the id.
    PoisonedUnacked,
    /// The copy to the poison queue failed; the message returns and is tried again.
    PoisonFailed,
    /// Another listener has the message, or the lock expired while storage was unreachable. The
    /// handler was cancelled and nothing was acknowledged.
    LostLock,
    /// Too little of the visibility timeout was left to start the handler; the message returns.
    NotStarted,
    /// Already finished earlier; now deleted.
    DuplicateDeleted,
    /// Already finished earlier; the delete failed again and the id stays remembered.
    DuplicateKept,
    /// Given back at once because the listener is stopping.
    Released,
    /// The listener is stopping and could not give the message back; it returns when its visibility
    /// timeout ends.
    ReleaseFailed,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 14] = [
        Outcome::Done,
        Outcome::Gone,
        Outcome::Unacked,
        Outcome::Retried,
        Outcome::RetryUnset,
        Outcome::Poisoned,
        Outcome::PoisonedUnacked,
        Outcome::PoisonFailed,
        Outcome::LostLock,
        Outcome::NotStarted,
        Outcome::DuplicateDeleted,
        Outcome::DuplicateKept,
        Outcome::Released,
        Outcome::ReleaseFailed,
    ];

    /// Returns the name used in the log.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Gone => "gone",
            Outcome::Unacked => "unacked",
            Outcome::Retried => "retried",
            Outcome::RetryUnset => "retry_unset",
            Outcome::Poisoned => "poisoned",
            Outcome::PoisonedUnacked => "poisoned_unacked",
            Outcome::PoisonFailed => "poison_failed",
            Outcome::LostLock => "lost_lock",
            Outcome::NotStarted => "not_started",
            Outcome::DuplicateDeleted => "duplicate_deleted",
            Outcome::DuplicateKept => "duplicate_kept",
            Outcome::Released => "released",
            Outcome::ReleaseFailed => "release_failed",
        }
    }

    /// Returns whether the message was not handled, which makes `once` exit with 1.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Outcome::Retried
                | Outcome::RetryUnset
                | Outcome::Poisoned
                | Outcome::PoisonedUnacked
                | Outcome::PoisonFailed
                | Outcome::LostLock
                | Outcome::NotStarted
        )
    }
}

/// The decision about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Id of the message.
    pub id: String,
    /// How often the message was received, including this time.
    pub dequeue_count: u32,
    /// How the message ended.
    pub outcome: Outcome,
    /// The reason in words; empty if there is nothing to explain.
    pub reason: String,
    /// Run time of the handler; `None` if it did not run.
    pub handler_time: Option<Duration>,
    /// How often the lock was renewed.
    pub renewals: u32,
    /// Whether less than a tenth of the message's time to live is left when it can next be
    /// received, so that the service is about to drop it.
    pub expiring: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The queue was seen empty and all received messages are settled (`once`).
    Empty,
    /// The listener was stopped and all received messages are settled.
    Drained,
    /// The daily budget is spent and all received messages are settled (`once`).
    BudgetSpent,
    /// The listener was stopped, and handlers had to be cancelled at the end of the grace time.
    GraceExceeded,
}

/// Totals of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How the run ended.
    pub ended: Ended,
    /// Messages received.
    pub received: u64,
    /// Messages by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Messages that were about to expire ([`Decision::expiring`]).
    pub expiring: u64,
    /// Requests sent to storage, which are billed.
    pub requests: u64,
    /// Dequeue tasks started, a measure of how often the pool's size changed.
    pub tasks_started: u64,
}

impl Report {
    /// Returns the report of a run that has not received anything.
    pub(crate) fn empty() -> Self {
        Report {
            ended: Ended::Drained,
            received: 0,
            outcomes: BTreeMap::new(),
            expiring: 0,
            requests: 0,
            tasks_started: 0,
        }
    }

    /// Returns the number of messages with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Returns the number of messages that were not handled.
    pub fn failures(&self) -> u64 {
        self.outcomes
            .iter()
            .filter(|(outcome, _)| outcome.is_failure())
            .map(|(_, count)| count)
            .sum()
    }
}

/// An error that ends a run without a report.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The credential was refused (`once`; `run` retries once a minute).
    #[error("access denied: {0}")]
    Denied(PortError),
    /// The queue does not exist (`once`; `run` waits for it).
    #[error("the queue does not exist: {0}")]
    QueueMissing(PortError),
    /// Storage failed several times in a row, or its certificate is not trusted (`once`; `run`
    /// retries).
    #[error("storage cannot be reached: {0}")]
    Unreachable(PortError),
    /// Storage rejected the request itself (`once`; `run` retries).
    #[error("storage refuses the request: {0}")]
    Refused(PortError),
    /// The handler reported that it cannot run
    /// ([`Verdict::Unable`](crate::handler::Verdict::Unable)). Received messages are given back,
    /// and both `once` and `run` end.
    #[error("the handler cannot be run: {0}")]
    HandlerUnable(String),
}

/// The state of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolState {
    /// Not yet running.
    #[default]
    Starting,
    /// Processing messages.
    Active,
    /// Idle: few tasks poll at growing intervals, or only the watchdog looks.
    Watching,
    /// Stopping: no more gets.
    Draining,
    /// Stopped.
    Stopped,
}

/// A snapshot of the pool (L20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// State of the pool.
    pub state: PoolState,
    /// Running dequeue tasks.
    pub tasks: u32,
    /// Dequeue tasks that the current load needs; any others rest.
    pub desired: u32,
    /// Dequeue tasks ever started.
    pub tasks_started: u64,
    /// Messages being handled.
    pub in_flight: u32,
    /// Estimated number of visible messages.
    pub backlog: u64,
}
