//! Why a sweep ended early, and the process's exit code for it.

use smalt_sleeve::port::PortError;
use smalt_worker::exit;

use crate::state::StateError;

/// Why a sweep ended early.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The configuration cannot work.
    #[error("{0}")]
    Config(String),
    /// The state document cannot be used; it was not touched.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no state document, and none may be created.
    #[error("there is no state document at {0}; create it with `smalt-sweeper state init`")]
    StateMissing(String),
    /// A storage call on the state document failed.
    #[error(transparent)]
    Storage(#[from] PortError),
    /// The clocks differ too much for expiry to mean anything.
    #[error("this machine's clock differs from the service's by {0} s; more than 600 s is refused")]
    ClockSkew(u64),
    /// Somebody holds a lease on the state document and does not write under it.
    #[error(
        "the state document {place} has been leased for {waited_s} s and is not written; if no \
         worker is alive that holds it, break the lease with `smalt-sweeper state unlock`"
    )]
    LeaseHeld {
        /// The document.
        place: String,
        /// How long was waited, in seconds.
        waited_s: u64,
    },
    /// There is no such blob.
    #[error("there is no blob {0}")]
    BlobMissing(String),
    /// Work was still open when the time for stopping was over. Its pages stay in the ledger.
    #[error("work was still open when the time for stopping was over; its pages will be reclaimed")]
    GraceExceeded,
    /// The day's budget is spent.
    #[error(
        "the day's budget of {max} is spent: {calls} charged calls of all workers cost {cost:.6}; \
         sweep again after {until}, or raise guard.max_cost_per_day"
    )]
    BudgetSpent {
        /// The budget.
        max: f64,
        /// Charged calls of the day.
        calls: u64,
        /// What they cost.
        cost: f64,
        /// The beginning of the next day.
        until: String,
    },
    /// The worker was asked to stop while it waited.
    #[error("stopped")]
    Stopped,
}

impl SweepError {
    /// The exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            SweepError::Config(_) => exit::USAGE,
            SweepError::Storage(error) => exit::of_port(error),
            SweepError::State(_) | SweepError::StateMissing(_) | SweepError::LeaseHeld { .. } => {
                exit::UNREACHABLE
            }
            SweepError::BudgetSpent { .. } => exit::GUARD,
            SweepError::ClockSkew(_) => exit::CLOCK_SKEW,
            SweepError::BlobMissing(_) => exit::FAILED_ITEMS,
            SweepError::GraceExceeded => exit::GRACE,
            SweepError::Stopped => exit::OK,
        }
    }

    /// Whether waiting may help.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, SweepError::Storage(error) if error.is_transient())
    }
}
