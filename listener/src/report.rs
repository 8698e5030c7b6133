//! What became of the messages: the closed list of outcomes, one decision per message, the totals;
//! what the pool does, and why a run ends without a report.

use std::collections::BTreeMap;
use std::time::Duration;

use smalt_sleeve::port::PortError;

/// What became of one message. The list is closed: every message that is received ends in exactly
/// one of these, in one line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Handled and deleted.
    Done,
    /// Handled; at the delete the message was gone already (expired, or taken over and deleted).
    Gone,
    /// Handled, but the delete failed until the lock lapsed. The id is remembered.
    Unacked,
    /// Not handled for now: hidden for its retry delay.
    Retried,
    /// Not handled for now; the delay could not be written, it returns when its visibility lapses.
    RetryUnset,
    /// In the poison queue, and deleted here.
    Poisoned,
    /// The poison queue has it, the delete here failed. The id is remembered.
    PoisonedUnacked,
    /// The poison queue could not take it: it returns and is tried again.
    PoisonFailed,
    /// Somebody else has it, or the lock lapsed while storage could not be reached: the handler was
    /// cancelled and nothing acknowledged.
    LostLock,
    /// Too little visibility was left to start its handler: it returns.
    NotStarted,
    /// It was finished before; now it is deleted as well.
    DuplicateDeleted,
    /// It was finished before; the delete failed again and the id stays remembered.
    DuplicateKept,
    /// Given back at once, because the listener is leaving.
    Released,
    /// The listener is leaving and could not give it back: it returns when its visibility lapses.
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

    /// The word for it in the log.
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

    /// Whether the message was not handled (exit code 1 of `once`).
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

/// What was decided about one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Message id.
    pub id: String,
    /// How often it was taken, this time included.
    pub dequeue_count: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, in words; empty when there is nothing to explain.
    pub reason: String,
    /// How long its handler ran, if it did.
    pub handler_time: Option<Duration>,
    /// How often its lock was renewed.
    pub renewals: u32,
    /// Less than a tenth of its life is left when it can be taken next: the service is about to
    /// drop it.
    pub expiring: bool,
}

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The queue was seen empty and all that was taken is settled (`once`).
    Empty,
    /// It was told to stop, and all that was taken is settled.
    Drained,
    /// The day's money was spent, and all that was taken is settled (`once`).
    BudgetSpent,
    /// It was told to stop, and handlers had to be cancelled when the grace time was over.
    GraceExceeded,
}

/// Totals of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// Messages received.
    pub received: u64,
    /// Messages by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Messages whose end by expiry was near ([`Decision::expiring`]).
    pub expiring: u64,
    /// Requests sent to storage: what is billed.
    pub requests: u64,
    /// Dequeue tasks started: how much the pool flapped.
    pub tasks_started: u64,
}

impl Report {
    /// Messages that came to this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Messages that were not handled.
    pub fn failures(&self) -> u64 {
        self.outcomes
            .iter()
            .filter(|(outcome, _)| outcome.is_failure())
            .map(|(_, count)| count)
            .sum()
    }
}

/// Why a run ended without a report.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The credential is refused (`once`; `run` goes on asking, once a minute).
    #[error("access denied: {0}")]
    Denied(PortError),
    /// The queue is not there (`once`; `run` waits for it).
    #[error("the queue does not exist: {0}")]
    QueueMissing(PortError),
    /// Storage does not answer well, several times in a row, or it is not trusted (`once`; `run`
    /// goes on asking).
    #[error("storage cannot be reached: {0}")]
    Unreachable(PortError),
    /// Storage refuses the request itself (`once`; `run` goes on asking).
    #[error("storage refuses the request: {0}")]
    Refused(PortError),
    /// The handler said that it cannot run ([`Verdict::Unable`](crate::handler::Verdict::Unable)):
    /// what was taken is given back, and neither `once` nor `run` goes on.
    #[error("the handler cannot be run: {0}")]
    HandlerUnable(String),
}

/// What the pool is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolState {
    /// Not yet running.
    #[default]
    Starting,
    /// Working messages off.
    Active,
    /// Idle: few tasks poll, at growing intervals, or only the watchdog.
    Watching,
    /// Stopping: no more gets.
    Draining,
    /// At its end.
    Stopped,
}

/// A look at the pool (L20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// What it is doing.
    pub state: PoolState,
    /// Dequeue tasks that run.
    pub tasks: u32,
    /// Dequeue tasks that the load of the moment needs; what runs beside them rests.
    pub desired: u32,
    /// Dequeue tasks ever started.
    pub tasks_started: u64,
    /// Messages being handled.
    pub in_flight: u32,
    /// Messages believed to wait.
    pub backlog: u64,
}
