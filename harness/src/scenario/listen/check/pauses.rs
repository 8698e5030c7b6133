//! How long a task may pause between two gets.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::pace::{Pace, SLACK};
use crate::scenario::listen::Mode;

/// While deletes wait for a token as well, one request in this many is a get.
const FETCH_SHARE: usize = 16;

impl Pace<'_> {
    /// LS8: returns the shortest and the longest pause of a task that is alone, after so many empty
    /// gets.
    pub(super) fn pause(&self, empty_gets: (u32, bool)) -> (Duration, Duration) {
        match self.plan.shape.mode {
            Mode::Poll(_) => self.idle_pause(empty_gets),
            Mode::Sentinel => self.idle_pause((0, false)),
            Mode::Trigger(watchdog_s) => {
                let watchdog = Duration::from_secs(u64::from(watchdog_s));
                (watchdog.saturating_sub(SLACK), watchdog)
            }
        }
    }

    /// LS9: returns how long the requests that a life has sent since then may have kept a get from
    /// its token: deletes and renewals go first, except for one request in [`FETCH_SHARE`].
    pub(super) fn overtaking(&self, sent: &[Timestamp], since: Timestamp) -> Duration {
        let sent = sent.iter().rev().take_while(|sent| **sent > since);
        let ahead = sent.count().min(FETCH_SHARE);
        Duration::from_secs(ahead as u64) / self.plan.shape.rate_per_s.max(1)
    }

    /// LS8: returns the shortest and the longest pause after so many empty gets in a row.
    pub(super) fn idle_pause(&self, (empty_gets, are_all): (u32, bool)) -> (Duration, Duration) {
        let (min_ms, max_ms) = self.plan.shape.idle_ms;
        let before = empty_gets.saturating_sub(1).min(30);
        let grown = |step_ms: u64| min_ms + step_ms * ((1 << before) - 1);
        // The longest pause is random within the last tenth.
        let least_ms = grown(80).min(max_ms - (max_ms - min_ms) / 10);
        let most_ms = if are_all {
            grown(120).min(max_ms)
        } else {
            max_ms
        };
        (
            Duration::from_millis(least_ms),
            Duration::from_millis(most_ms),
        )
    }

    /// Returns the longest wait of a get for its token.
    pub(super) fn token_wait(&self) -> Duration {
        Duration::from_secs(FETCH_SHARE as u64) / self.plan.shape.request_rate().max(1)
    }
}
