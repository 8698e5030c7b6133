//! Delays of an idle or failing poller: randomised, exponential, without overflow.
//!
//! The formula is the seed's (L27), `min + step * (2^k - 1) * U[0.8, 1.2]`, at most `max`, computed
//! in saturating integers. The end of the curve is random as well, within the last tenth below
//! `max`: two tasks that have fallen into step diverge again, however long they idle (DL5). The
//! seed's own arithmetic overflowed at `k = 25` and killed the last poller after 22 idle seconds
//! (DL4); here every `k` of `u64` gives a delay in `[min, max]` (LS8).

use std::time::Duration;

/// Growth per idle poll, from the source article (L27: jitter of 80..120 ms per unit).
pub const IDLE_STEP: Duration = Duration::from_millis(100);
/// First unit of the error back-off (D4: 0.8 s, doubled).
pub const ERROR_STEP: Duration = Duration::from_millis(800);
/// Longest delay after transient errors.
pub const ERROR_MAX: Duration = Duration::from_secs(30);
/// Delay between attempts while the credential is refused (D4: "retry each minute").
pub const DENIED_DELAY: Duration = Duration::from_secs(60);

/// Smallest jitter factor, in thousandths (L27: 0.8).
pub const JITTER_MIN_PERMILLE: u32 = 800;
/// Largest jitter factor, in thousandths (L27: 1.2).
pub const JITTER_MAX_PERMILLE: u32 = 1200;

/// The end of the curve varies by at most one part in this many of its span.
const END_SPREAD_PARTS: u32 = 10;

/// Beyond this exponent no duration can grow further (2^64 ns is 584 years).
const EXPONENT_CAP: u64 = 64;

/// A randomised exponential curve between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    step: Duration,
}

impl Backoff {
    /// Creates a curve from `min` to `max`; a `max` below `min` counts as `min`.
    pub fn new(min: Duration, max: Duration, step: Duration) -> Self {
        let max = max.max(min);
        Backoff { min, max, step }
    }

    /// Creates the curve for failed requests. Its first delay is above zero whatever the idle
    /// interval is (DL24).
    pub fn for_errors() -> Self {
        Backoff::new(ERROR_STEP / 2, ERROR_MAX, ERROR_STEP)
    }

    /// Returns the delay after the `k`-th empty or failed attempt in a row, with `k` counted from
    /// 0.
    ///
    /// `jitter_permille` is a random factor in thousandths, clamped to 800..=1200.
    pub fn delay(&self, k: u64, jitter_permille: u32) -> Duration {
        let jitter = jitter_permille.clamp(JITTER_MIN_PERMILLE, JITTER_MAX_PERMILLE);
        let exponent = u32::try_from(k.min(EXPONENT_CAP)).unwrap_or(64);
        let units = (1_u128 << exponent) - 1;
        let delta_ns = self
            .step
            .as_nanos()
            .saturating_mul(units)
            .saturating_mul(u128::from(jitter))
            / 1000;
        let delta = Duration::from_nanos(u64::try_from(delta_ns).unwrap_or(u64::MAX));
        self.min.saturating_add(delta).min(self.end(jitter))
    }

    /// Returns the end of the curve: `max` for the largest jitter, a tenth of the span less for the
    /// smallest. An interval with equal bounds stays constant.
    fn end(&self, jitter_permille: u32) -> Duration {
        let below = JITTER_MAX_PERMILLE.saturating_sub(jitter_permille);
        let range = JITTER_MAX_PERMILLE - JITTER_MIN_PERMILLE;
        let spread = (self.max - self.min) / END_SPREAD_PARTS;
        self.max.saturating_sub(spread / range * below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// L27: 100 ms times two to the power of the empty gets, less one, and at most a second.
    #[test]
    fn l27_the_seeds_curve_is_reproduced() {
        let idle = Backoff::new(Duration::ZERO, Duration::from_secs(1), IDLE_STEP);
        let ms: Vec<u128> = (0..4).map(|k| idle.delay(k, 1000).as_millis()).collect();
        assert_eq!(ms, [0, 100, 300, 700]);
        assert_eq!(idle.delay(4, 1200), Duration::from_secs(1));
    }

    /// DL5: different random numbers give different delays at the end of the curve, too.
    #[test]
    fn dl5_the_longest_delay_is_random() {
        let idle = Backoff::new(Duration::from_millis(100), ERROR_MAX, IDLE_STEP);
        let delays: Vec<Duration> = (JITTER_MIN_PERMILLE..=JITTER_MAX_PERMILLE)
            .map(|jitter| idle.delay(u64::MAX, jitter))
            .collect();
        assert!(delays.is_sorted_by(|a, b| a < b), "all different");
        assert_eq!(delays.last(), Some(&ERROR_MAX));
        assert!(delays.first() >= Some(&(ERROR_MAX * 9 / 10)));
        let second = Duration::from_secs(1);
        let fixed = Backoff::new(second, second, IDLE_STEP);
        assert_eq!(fixed.delay(9, JITTER_MIN_PERMILLE), second);
    }

    /// DL4: the seed's cast turned negative at 25 for every jitter.
    #[test]
    fn dl4_the_exponent_that_killed_the_last_poller() {
        let idle = Backoff::new(Duration::ZERO, Duration::from_secs(1), IDLE_STEP);
        for k in [24, 25, 31, 32, 63, 64, 65, u64::MAX - 1, u64::MAX] {
            assert_eq!(idle.delay(k, 1200), Duration::from_secs(1), "k = {k}");
            assert_eq!(idle.delay(k, 800), Duration::from_millis(900), "k = {k}");
        }
    }

    /// DL24: the error curve starts at half of its first unit; D4: 0.8 s, doubled.
    #[test]
    fn dl24_errors_always_wait() {
        for (k, jitter, wanted_ms) in [
            (0, 800, 400),
            (0, 1200, 400),
            (1, 1000, 1_200),
            (2, 1000, 2_800),
            (1, 800, 1_040),
            (u64::MAX, 1200, 30_000),
        ] {
            let delay = Backoff::for_errors().delay(k, jitter);
            assert_eq!(delay.as_millis(), wanted_ms, "{k} at {jitter}");
        }
    }

    proptest! {
        /// LS8: the delay lies in [min, max] for every k, jitter and setting.
        #[test]
        fn ls8_delay_is_always_within_bounds(
            k: u64, jitter: u32, min_ns: u64, span_ns: u64, step_ns: u64,
        ) {
            let min = Duration::from_nanos(min_ns);
            let max = min.saturating_add(Duration::from_nanos(span_ns));
            let delay = Backoff::new(min, max, Duration::from_nanos(step_ns)).delay(k, jitter);
            prop_assert!(min <= delay && delay <= max);
        }

        /// A longer idle time never shortens the delay.
        #[test]
        fn delay_never_shrinks(k in 0_u64..200, jitter in 800_u32..=1200) {
            let idle = Backoff::new(Duration::from_millis(100), ERROR_MAX, IDLE_STEP);
            prop_assert!(idle.delay(k, jitter) <= idle.delay(k + 1, jitter));
        }
    }
}
