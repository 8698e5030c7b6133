//! When the lock of a message is renewed: after half of its visibility timeout, sooner after a
//! failed attempt.

use std::time::Duration;

/// Shortest pause between two attempts to renew the same message.
pub const RENEW_RETRY_MIN: Duration = Duration::from_millis(200);
/// A failed renewal is retried after this part of the remaining time, so that several attempts fit.
const RETRY_PART: u32 = 8;

/// Returns the pause from a grant of `visibility` to its renewal.
pub fn renew_after(visibility: Duration) -> Duration {
    visibility / 2
}

/// Returns the pause after a failed attempt with `remaining` of the grant left. The pause shortens
/// as time runs out. It never exceeds the delay that the service asked for, nor half of
/// `remaining`: a lock that expires while waiting as asked is still lost.
pub fn retry_after(remaining: Duration, asked: Option<Duration>) -> Duration {
    let speed_up = (remaining / RETRY_PART).max(RENEW_RETRY_MIN);
    match asked {
        Some(asked) => asked
            .max(RENEW_RETRY_MIN)
            .min(remaining / 2)
            .max(RENEW_RETRY_MIN),
        None => speed_up,
    }
}

/// Returns the shortest remaining visibility with which a handler may start: a quarter of the
/// timeout, at most 5 s (LS4).
pub fn min_start(visibility: Duration) -> Duration {
    (visibility / 4).min(Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_then_faster() {
        let s = Duration::from_secs;
        assert_eq!(renew_after(s(60)), s(30));
        assert_eq!(retry_after(s(24), None), s(3));
        assert_eq!(retry_after(s(1), None), RENEW_RETRY_MIN);
        assert_eq!(retry_after(s(24), Some(s(5))), s(5));
        assert_eq!(retry_after(s(24), Some(s(600))), s(12));
        assert_eq!(min_start(s(60)), s(5));
        assert_eq!(min_start(s(4)), s(1));
    }

    proptest! {
        /// However long an outage lasts, at least five attempts are made before a grant of eight
        /// seconds or more expires.
        #[test]
        fn several_attempts_fit(remaining_s in 8_u64..604_800) {
            let mut left = Duration::from_secs(remaining_s);
            let mut attempts = 0;
            while !left.is_zero() {
                left = left.saturating_sub(retry_after(left, None));
                attempts += 1;
                prop_assert!(attempts < 1000);
            }
            prop_assert!(attempts >= 5);
        }
    }
}
