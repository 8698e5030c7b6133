//! Storage calls of the sweeper: rate-limited, counted, and retried after transient failures.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_sleeve::port::PortResult;
use tokio::time::Instant;

use crate::entropy::Entropy;

/// Delay before the first retry; doubles with each further one.
const RETRY_DELAY: Duration = Duration::from_millis(800);
/// Upper limit for the delay that `Retry-After` asks for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Locks a mutex even if a holder panicked: the values inside are counters and sets.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of charged calls: all except deletes.
pub(crate) fn charged(counts: &BTreeMap<&'static str, u64>) -> u64 {
    let charged = counts.iter().filter(|(op, _)| **op != "delete_blob");
    charged.map(|(_, count)| count).sum()
}

pub(crate) struct Calls {
    interval: Duration,
    retries: u32,
    next: Mutex<Option<Instant>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    answered: Mutex<Option<Instant>>,
}

impl Calls {
    pub(crate) fn new(rate_per_s: f64, retries: u32) -> Self {
        let interval = if rate_per_s > 0.0 {
            // Limits the interval to one day: an even slower rate is surely a mistake.
            Duration::from_secs_f64((1.0 / rate_per_s).min(86_400.0))
        } else {
            Duration::ZERO
        };
        Calls {
            interval,
            retries,
            next: Mutex::new(None),
            counts: Mutex::new(BTreeMap::new()),
            answered: Mutex::new(None),
        }
    }

    pub(crate) async fn once<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        self.turn().await;
        *lock(&self.counts).entry(operation).or_insert(0) += 1;
        let result = call.await;
        // A permanent error also shows that the service answered.
        if result
            .as_ref()
            .err()
            .is_none_or(|error| !error.is_transient())
        {
            *lock(&self.answered) = Some(Instant::now());
        }
        result
    }

    pub(crate) fn since_success(&self) -> Option<Duration> {
        lock(&self.answered).map(|at| at.elapsed())
    }

    /// Makes a call and retries it after transient failures. Only for idempotent calls: reads and
    /// conditional writes.
    pub(crate) async fn repeated<T, F: Future<Output = PortResult<T>>>(
        &self,
        entropy: &Entropy,
        operation: &'static str,
        call: impl Fn() -> F,
    ) -> PortResult<T> {
        let mut attempt = 0;
        loop {
            let error = match self.once(operation, call()).await {
                Err(error) if error.is_transient() && attempt < self.retries => error,
                result => return result,
            };
            // Full jitter; `Retry-After` takes precedence.
            let limit = RETRY_DELAY.saturating_mul(1 << attempt.min(6));
            let delay = match error.retry_after {
                Some(wanted) => wanted.min(RETRY_AFTER_MAX),
                None => limit.mul_f64(entropy.fraction()),
            };
            attempt += 1;
            let ms = delay.as_millis() as u64;
            tracing::info!(op = "retry", operation, attempt, ms, %error, "storage call failed");
            tokio::time::sleep(delay).await;
        }
    }

    /// Waits until the rate limit admits this call.
    async fn turn(&self) {
        if self.interval.is_zero() {
            return;
        }
        let slot = {
            let mut next = lock(&self.next);
            let slot = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            *next = Some(slot + self.interval);
            slot
        };
        tokio::time::sleep_until(slot).await;
    }

    /// Returns the number of charged calls so far.
    pub(crate) fn charged(&self) -> u64 {
        charged(&lock(&self.counts))
    }

    /// Returns the number of calls so far, by operation.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.counts).clone()
    }
}
