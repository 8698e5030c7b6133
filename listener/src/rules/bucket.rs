//! The arithmetic of a token bucket for the requests to one queue; it does not wait itself.
//!
//! A queue has a request target (500/s in the source article, 2,000/s today; beyond it the service
//! answers 503). All requests to the queue draw from one bucket (LS9, DL14). A 503 halves the rate;
//! time without a 503 restores it gradually.

use std::time::Duration;

/// Factor of the rate after a throttled answer.
const DECREASE: f64 = 0.5;
/// A burst of 503s within this time counts as one throttle.
const DECREASE_EVERY: Duration = Duration::from_secs(1);
/// Share of the configured rate that is regained per second without throttling.
const RECOVERY_PER_S: f64 = 0.05;
/// The rate never falls below this share of the configured rate.
const FLOOR_SHARE: f64 = 0.02;

/// The state of a bucket. Times count from any fixed moment.
#[derive(Clone, Debug)]
pub struct Bucket {
    setting_per_s: f64,
    rate_per_s: f64,
    tokens: f64,
    at: Duration,
    throttled_at: Option<Duration>,
}

impl Bucket {
    /// Creates a full bucket of `per_second` requests. Its burst is a tenth of a second's requests,
    /// at least one.
    pub fn new(per_second: u32, now: Duration) -> Self {
        let setting = f64::from(per_second.max(1));
        Bucket {
            setting_per_s: setting,
            rate_per_s: setting,
            tokens: burst(setting),
            at: now,
            throttled_at: None,
        }
    }

    /// Takes one token, or returns the time until one is available. `ahead` counts the requests to
    /// serve first.
    pub fn take(&mut self, now: Duration, ahead: usize) -> Result<(), Duration> {
        self.refill(now);
        if self.tokens >= 1.0 && ahead == 0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - self.tokens).max(0.0) + ahead as f64;
        // Rounded up, so that the token is available at the end of the wait.
        let wait = Duration::from_secs_f64(missing / self.rate_per_s) + Duration::from_millis(1);
        Err(wait)
    }

    /// Lowers the rate after a 503.
    pub fn throttled(&mut self, now: Duration) {
        self.refill(now);
        let recently = self
            .throttled_at
            .is_some_and(|at| now.saturating_sub(at) < DECREASE_EVERY);
        if recently {
            return;
        }
        self.throttled_at = Some(now);
        self.rate_per_s = (self.rate_per_s * DECREASE).max(self.setting_per_s * FLOOR_SHARE);
        self.tokens = self.tokens.min(burst(self.rate_per_s));
    }

    /// Returns the requests per second that are currently allowed.
    pub fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }

    fn refill(&mut self, now: Duration) {
        let passed_s = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        let recovered = self.rate_per_s + self.setting_per_s * RECOVERY_PER_S * passed_s;
        self.tokens = (self.tokens + self.rate_per_s * passed_s).min(burst(self.rate_per_s));
        self.rate_per_s = recovered.min(self.setting_per_s);
    }
}

fn burst(rate_per_s: f64) -> f64 {
    (rate_per_s / 10.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_throttle_halves_once_and_quiet_time_restores() {
        let mut bucket = Bucket::new(500, ms(0));
        bucket.throttled(ms(0));
        bucket.throttled(ms(10));
        assert!((250.0..251.0).contains(&bucket.rate_per_s()));
        bucket.throttled(ms(1100));
        assert!(bucket.rate_per_s() < 140.0);
        let _ = bucket.take(ms(60_000), 0);
        assert_eq!(bucket.rate_per_s(), 500.0);
        for second in 0..100 {
            bucket.throttled(ms(60_000 + second * 1000));
        }
        assert!(bucket.rate_per_s() >= 10.0, "never stops altogether");
    }

    #[test]
    fn requests_ahead_are_waited_for() {
        let mut bucket = Bucket::new(1, ms(0));
        assert!(bucket.take(ms(0), 1).is_err());
        assert!(bucket.take(ms(0), 0).is_ok());
        assert!(bucket.take(ms(0), 0).unwrap_err() >= ms(1000));
    }

    /// The missing tokens divided by the rate, plus the millisecond of rounding.
    #[test]
    fn a_wait_ends_when_the_token_is_there() {
        for (at_ms, ahead, wait_ms) in [(0, 0, 101), (50, 0, 51), (50, 2, 251), (100, 1, 101)] {
            let mut bucket = Bucket::new(10, ms(0));
            bucket.take(ms(0), 0).expect("its burst is one token");
            let wait = bucket.take(ms(at_ms), ahead).unwrap_err();
            assert_eq!(wait, ms(wait_ms), "{at_ms} ms, {ahead} ahead");
        }
    }

    #[test]
    fn the_burst_is_a_tenth_of_a_second() {
        for (per_second, at_once) in [(1, 1), (10, 1), (20, 2), (500, 50)] {
            let mut bucket = Bucket::new(per_second, ms(0));
            for rested_until_ms in [0, 60_000] {
                let mut takes = (0..1000).map(|_| bucket.take(ms(rested_until_ms), 0));
                let passed = takes.position(|taken| taken.is_err());
                assert_eq!(passed, Some(at_once), "{per_second} a second");
            }
        }
    }

    /// DL14: 503s within one second count once; in that second 5 % of the configured rate return.
    #[test]
    fn a_second_throttle_counts_after_a_second() {
        for (again_ms, rate_per_s) in [(0, 250.0), (999, 274.975), (1000, 137.5)] {
            let mut bucket = Bucket::new(500, ms(0));
            bucket.throttled(ms(0));
            bucket.throttled(ms(again_ms));
            let off = (bucket.rate_per_s() - rate_per_s).abs();
            assert!(off < 1e-9, "{again_ms}: {}", bucket.rate_per_s());
        }
    }

    proptest! {
        /// LS9: a series of requests at any speed never exceeds rate and burst.
        #[test]
        fn ls9_never_more_than_the_rate(
            rate in 1_u32..5000, steps in prop::collection::vec(0_u64..500, 1..300),
        ) {
            let mut bucket = Bucket::new(rate, ms(0));
            let (mut now, mut passed) = (0, 0_u32);
            for step in steps {
                now += step;
                while bucket.take(ms(now), 0).is_ok() {
                    passed += 1;
                }
            }
            let rate = f64::from(rate);
            let allowed = rate * (now as f64 / 1000.0) + (rate / 10.0).max(1.0);
            prop_assert!(f64::from(passed) <= allowed + 1e-6);
        }
    }
}
