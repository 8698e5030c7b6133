//! Errors that end a sweep early, and their exit codes.

use smalt_sleeve::port::PortError;
use smalt_worker::exit;

use crate::state::StateError;

/// An error that ended a sweep early.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The state document is invalid; it was not changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The state document does not exist and may not be created.
    #[error("there is no state document at {0}; create it with `smalt-sweeper state init`")]
    StateMissing(String),
    /// A configured container does not exist, and there is no state document yet.
    #[error(
        "container `{0}` does not exist, so no state document was created; correct the name, or \
         create the document with `smalt-sweeper state init` if the container follows later"
    )]
    ContainerMissing(String),
    /// A storage call on the state document failed.
    #[error(transparent)]
    Storage(#[from] PortError),
    /// This machine's clock differs from the service's by more than 600 s; the value is the
    /// difference in seconds.
    #[error(
        "this machine's clock differs from the service's by {0} s; at most 600 s is allowed. \
         Correct the clock, or trust that of an emulator whose clock was moved with \
         --trust-service-clock"
    )]
    ClockSkew(u64),
    /// Another client holds a lease on the state document but does not write to it.
    #[error(
        "the state document {place} has been leased for {waited_s} s without being written; if no \
         running worker holds the lease, break it with `smalt-sweeper state unlock`"
    )]
    LeaseHeld {
        /// Location of the state document.
        place: String,
        /// Time spent waiting, in seconds.
        waited_s: u64,
    },
    /// The blob does not exist.
    #[error("blob {0} does not exist")]
    BlobMissing(String),
    /// The stop grace period ended before all work was finished. The ledger keeps the open pages.
    #[error("the stop took too long; other workers will reclaim the unfinished pages")]
    GraceExceeded,
    /// The budget of the day is exhausted.
    #[error(
        "the day's budget of {max} is spent: {calls} charged calls of all workers cost {cost:.6}; \
         sweep again after {until}, or raise guard.max_cost_per_day"
    )]
    BudgetSpent {
        /// Configured budget per day, in the currency of the prices.
        max: f64,
        /// Charged calls of all workers on this day.
        calls: u64,
        /// Cost of these calls.
        cost: f64,
        /// Start of the next day (UTC).
        until: String,
    },
    /// A stop was requested while the worker waited.
    #[error("stopped")]
    Stopped,
}

impl SweepError {
    /// Returns the process exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            SweepError::Config(_) | SweepError::ContainerMissing(_) => exit::USAGE,
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

    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, SweepError::Storage(error) if error.is_transient())
    }
}
