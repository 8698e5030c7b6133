//! Delays between attempts, as pure functions of a seeded stream of jitter.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Number of attempts and the delays between them (failure policy of the workers: five attempts,
/// 0.8 s doubling, full jitter, `Retry-After` takes precedence).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Maximum number of attempts, including the first; at least one. Default 5.
    pub tries_max: u32,
    /// Maximum delay before the second attempt; doubles with each further one. Default 0.8 s.
    pub base_delay: Duration,
    /// Maximum delay of all, also for `Retry-After`: a longer one ends the call, and the error
    /// contains it. Default 60 s.
    pub delay_max: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        RetrySettings {
            tries_max: 5,
            base_delay: Duration::from_millis(800),
            delay_max: Duration::from_secs(60),
        }
    }
}

impl RetrySettings {
    /// Returns the delay after `failed` attempts (1 for the first), or `None` to give up. `dice` is
    /// uniform in `0.0..1.0` (full jitter); the delay that the service asks for is used exactly.
    pub(crate) fn delay(
        &self,
        failed: u32,
        retry_after: Option<Duration>,
        dice: f64,
    ) -> Option<Duration> {
        if failed >= self.tries_max {
            return None;
        }
        match retry_after {
            Some(asked) if asked > self.delay_max => None,
            Some(asked) => Some(asked),
            None => Some(self.ceiling(failed).mul_f64(dice.clamp(0.0, 1.0))),
        }
    }

    /// Returns the maximum delay after `failed` attempts.
    fn ceiling(&self, failed: u32) -> Duration {
        let doubled = 2u32.saturating_pow(failed.saturating_sub(1));
        self.base_delay.saturating_mul(doubled).min(self.delay_max)
    }
}

/// A seeded stream of jitter.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<ChaCha8Rng>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(Mutex::new(ChaCha8Rng::seed_from_u64(seed)))
    }

    /// Returns the next number, uniform in `0.0..=1.0`.
    pub(crate) fn roll(&self) -> f64 {
        let mut dice = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f64::from(dice.next_u32()) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delays_double_up_to_the_last_attempt() {
        let settings = RetrySettings::default();
        let waits: Vec<_> = (1..=5)
            .map(|failed| settings.delay(failed, None, 1.0))
            .collect();
        let expected = [800, 1600, 3200, 6400].map(|ms| Some(Duration::from_millis(ms)));
        assert_eq!(waits[..4], expected);
        assert_eq!(waits[4], None);
    }

    #[test]
    fn retry_after_sets_the_delay() {
        let settings = RetrySettings::default();
        let asked = |seconds| settings.delay(1, Some(Duration::from_secs(seconds)), 0.5);
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(0), Some(Duration::ZERO));
        assert_eq!(asked(60), Some(Duration::from_secs(60)));
        assert_eq!(asked(61), None);
        assert_eq!(settings.delay(5, Some(Duration::ZERO), 0.5), None);
    }

    proptest! {
        #[test]
        fn delays_stay_in_bounds(failed in any::<u32>(), dice in any::<f64>(), tries in 1u32..) {
            let settings = RetrySettings { tries_max: tries, ..RetrySettings::default() };
            let dice = if dice.is_nan() { 0.0 } else { dice };
            if let Some(wait) = settings.delay(failed, None, dice) {
                prop_assert!(failed < tries);
                prop_assert!(wait <= settings.delay_max);
            }
        }
    }
}
