//! The injected clock: requests are stamped and signed with it, never with ambient time.

use std::fmt;

use smalt_protocol::Timestamp;
use tokio::time::Instant;

/// Source of the time with which requests are stamped and signed.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// A clock that follows tokio's: under paused time it advances only by the test or by a sleep of
/// the program under test.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    base: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// Creates a clock that shows `base` now. Needs a tokio runtime when time is paused.
    pub fn starting_at(base: Timestamp) -> Self {
        TokioClock {
            base,
            started: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.base.plus(self.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_tokio_clock_moves_with_paused_time() {
        let clock = TokioClock::starting_at(Timestamp::from_unix_s(1_000));
        assert_eq!(clock.now(), Timestamp::from_unix_s(1_000));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(clock.now(), Timestamp::from_unix_s(1_060));
    }
}
