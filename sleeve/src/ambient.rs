//! The only module of the crate that uses ambient time and randomness. Both can be replaced through
//! [`Settings`](crate::Settings).
#![expect(
    clippy::disallowed_methods,
    reason = "the default clock of production reads the system's time"
)]

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use smalt_protocol::Timestamp;

use crate::clock::Clock;

/// The system's clock, used in production.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A time before 1970 reads as 1970; the service then rejects the signature with an
        // explanation.
        Timestamp::from_unix(
            SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or(Duration::ZERO),
        )
    }
}

/// Returns a seed that differs between processes, so that workers started together do not retry in
/// step. The standard library seeds its hash maps from the system's randomness.
pub(crate) fn seed() -> u64 {
    RandomState::new().hash_one("smalt-sleeve")
}
