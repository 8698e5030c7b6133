//! How a server waits when it cannot accept connections: out of file descriptors, above all.

use std::time::Duration;

use tokio::time::Instant;

use super::limits::{ACCEPT_LOG_INTERVAL, ACCEPT_PAUSE_FIRST, ACCEPT_PAUSE_MAX};

/// The errors since a connection was accepted, and what was logged of them.
#[derive(Debug, Default)]
pub(super) struct AcceptErrors {
    /// Zero after a connection was accepted.
    pause: Duration,
    unlogged: u64,
    logged: Option<Instant>,
}

impl AcceptErrors {
    /// How long to wait before the next try.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Notes that a connection was accepted.
    pub(super) fn accepted(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// Notes an error. Returns how many there were since the last line of the log, when it is time
    /// for the next one.
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

    /// A second of errors makes few tries and two lines, which count every error.
    #[tokio::test(start_paused = true)]
    async fn tries_grow_rare_and_lines_come_once_a_second() {
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

    /// A listener that accepts and fails by turns does not write a line each time either.
    #[tokio::test(start_paused = true)]
    async fn a_success_in_between_does_not_bring_more_lines() {
        let mut errors = AcceptErrors::default();
        let lines = (0..1000).filter_map(|_| {
            errors.accepted();
            errors.failed(Instant::now())
        });
        assert_eq!(lines.collect::<Vec<_>>(), [1]);
    }
}
