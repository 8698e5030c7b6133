//! The pauses and log lines of a server that cannot accept connections, mostly for lack of file
//! descriptors.

use std::time::Duration;

use tokio::time::Instant;

use super::limits::{ACCEPT_LOG_INTERVAL, ACCEPT_PAUSE_FIRST, ACCEPT_PAUSE_MAX};

/// Errors since the last accepted connection, and which of them were logged.
#[derive(Debug, Default)]
pub(super) struct AcceptErrors {
    /// Zero after an accepted connection.
    pause: Duration,
    unlogged: u64,
    logged: Option<Instant>,
}

impl AcceptErrors {
    /// Returns how long to wait before the next try.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    pub(super) fn accepted(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// Records an error. Returns the number of errors since the last log line when the next line is
    /// due.
    pub(super) fn failed(&mut self, now: Instant) -> Option<u64> {
        self.pause = (self.pause * 2).clamp(ACCEPT_PAUSE_FIRST, ACCEPT_PAUSE_MAX);
        self.unlogged += 1;
        let is_due = |last| now.duration_since(last) >= ACCEPT_LOG_INTERVAL;
        if !self.logged.is_none_or(is_due) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of errors cause fewer than 40 tries and about ten log lines, which count every
    /// error.
    #[tokio::test(start_paused = true)]
    async fn errors_slow_down_tries_and_log_once_a_second() {
        let mut errors = AcceptErrors::default();
        let mut lines = Vec::new();
        let (mut tries, start) = (0, Instant::now());
        while start.elapsed() <= Duration::from_secs(10) {
            tokio::time::sleep(errors.pause()).await;
            tries += 1;
            lines.extend(errors.failed(Instant::now()));
        }
        assert!((10..40).contains(&tries), "{tries}");
        assert!((9..=11).contains(&lines.len()), "{lines:?}");
        let told: u64 = lines.iter().sum();
        assert!(
            told <= tries && tries <= told + errors.unlogged,
            "{lines:?}"
        );
        errors.accepted();
        assert_eq!(errors.pause(), Duration::ZERO);
        errors.failed(Instant::now());
        assert_eq!(errors.pause(), ACCEPT_PAUSE_FIRST);
    }

    /// Alternating successes and errors do not log a line for each error.
    #[tokio::test(start_paused = true)]
    async fn a_success_in_between_adds_no_log_lines() {
        let mut errors = AcceptErrors::default();
        let lines = (0..1000).filter_map(|_| {
            errors.accepted();
            errors.failed(Instant::now())
        });
        assert_eq!(lines.collect::<Vec<_>>(), [1]);
    }
}
