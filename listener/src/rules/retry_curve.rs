//! How long a failed message stays hidden before its next attempt.

use std::time::Duration;

/// Longest visibility timeout of an update (Update Message: 7 days).
pub const VISIBILITY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest visibility timeout of a get (Get Messages: 1 s).
pub const VISIBILITY_MIN: Duration = Duration::from_secs(1);
/// Distance that an update keeps from a message's expiry: times on the wire have whole seconds, and
/// an update must not hide a message beyond its expiry.
pub const EXPIRY_MARGIN: Duration = Duration::from_secs(2);

/// Returns the delay after the attempt number `dequeue_count` (1 for the first) by the configured
/// curve, whose last value repeats. A delay requested by the handler wins. The result is in whole
/// seconds, at most seven days.
pub fn retry_delay(curve: &[Duration], dequeue_count: u32, asked: Option<Duration>) -> Duration {
    let attempt = usize::try_from(dequeue_count.max(1) - 1).unwrap_or(usize::MAX);
    let by_curve = || curve.get(attempt).or(curve.last()).copied();
    let delay = asked.or_else(by_curve).unwrap_or(Duration::ZERO);
    ceil_s(delay).min(VISIBILITY_MAX)
}

/// Shortens `wanted` to end before the message expires; `None` if too little time is left for any
/// update to be accepted.
pub fn within_life(wanted: Duration, life_left: Option<Duration>) -> Option<Duration> {
    let Some(left) = life_left else {
        return Some(wanted);
    };
    let most = floor_s(left.saturating_sub(EXPIRY_MARGIN));
    (most >= VISIBILITY_MIN).then(|| wanted.min(most))
}

fn ceil_s(d: Duration) -> Duration {
    Duration::from_secs(d.as_secs().saturating_add(u64::from(d.subsec_nanos() > 0)))
}

fn floor_s(d: Duration) -> Duration {
    Duration::from_secs(d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn the_curve_by_attempt() {
        let curve = [S(1), S(10), S(60)];
        let table = [
            (0, None, 1),
            (1, None, 1),
            (2, None, 10),
            (3, None, 60),
            (4, None, 60),
            (u32::MAX, None, 60),
            (2, Some(S(7)), 7),
            (1, Some(S(0)), 0),
            (1, Some(Duration::from_millis(1500)), 2),
            (1, Some(S(u64::MAX)), 7 * 24 * 3600),
        ];
        for (count, asked, wanted_s) in table {
            assert_eq!(
                retry_delay(&curve, count, asked),
                S(wanted_s),
                "{count} {asked:?}"
            );
        }
        assert_eq!(retry_delay(&[], 3, None), S(0));
    }

    #[test]
    fn an_update_ends_before_the_message_does() {
        assert_eq!(within_life(S(60), None), Some(S(60)));
        assert_eq!(within_life(S(60), Some(S(100))), Some(S(60)));
        assert_eq!(within_life(S(60), Some(S(30))), Some(S(28)));
        assert_eq!(within_life(S(60), Some(S(3))), Some(S(1)));
        assert_eq!(within_life(S(60), Some(S(2))), None);
        assert_eq!(within_life(S(0), Some(S(9))), Some(S(0)));
    }

    proptest! {
        /// LS7: Azure accepts the timeout for every curve, count and requested delay.
        #[test]
        fn ls7_the_delay_is_acceptable(
            curve in prop::collection::vec(any::<u64>(), 0..5), count: u32, asked: Option<u64>,
        ) {
            let curve: Vec<_> = curve.into_iter().map(Duration::from_millis).collect();
            let d = retry_delay(&curve, count, asked.map(Duration::from_millis));
            prop_assert!(d <= VISIBILITY_MAX && d.subsec_nanos() == 0);
        }
    }
}
