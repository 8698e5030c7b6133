//! The schedule of cycles (marks), and the delays after failures. Pure.

use std::time::Duration;

use smalt_protocol::Timestamp;

/// Delay after the first failure of a container; doubles with each further failure.
pub const CONTAINER_BACKOFF_MIN: Duration = Duration::from_secs(5);
/// Maximum delay after failures of a container.
pub const CONTAINER_BACKOFF_MAX: Duration = Duration::from_secs(600);

/// How often a cycle starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Interval between marks.
    pub every: Duration,
    /// Whether marks are multiples of `every` (S29); otherwise they count from the last mark.
    pub align: bool,
    /// Each worker starts at a random time up to this long after the mark (DS22).
    pub jitter: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            every: Duration::from_secs(600),
            align: true,
            jitter: Duration::from_secs(5),
        }
    }
}

/// Returns the next mark strictly after `now` (DS22). Missed marks are skipped, never repeated
/// (SL4).
pub fn next_mark(schedule: &Schedule, last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let every = schedule.every.max(Duration::from_secs(1));
    let ticks = u64::try_from(every.as_nanos() / 100).unwrap_or(u64::MAX);
    let origin = match last {
        Some(last) if !schedule.align && last <= now => last,
        _ if !schedule.align => now,
        _ => Timestamp::UNIX_EPOCH,
    };
    let since = now.ticks().saturating_sub(origin.ticks());
    let marks = (since / ticks).saturating_add(1);
    Timestamp::from_ticks(origin.ticks().saturating_add(marks.saturating_mul(ticks)))
}

/// Returns the delay of a container after this many consecutive failures. `spread` in 0.0..=1.0
/// comes from the seeded stream and changes the delay by up to a fifth.
pub fn container_backoff(failures: u32, spread: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let base = CONTAINER_BACKOFF_MIN
        .saturating_mul(1 << doublings)
        .min(CONTAINER_BACKOFF_MAX);
    base.mul_f64(0.8 + 0.4 * spread.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }

    /// DS22: exactly on a mark, the next mark is one full period later.
    #[test]
    fn the_next_mark_is_strictly_later() {
        let aligned = Schedule::default();
        let free = Schedule {
            align: false,
            ..aligned
        };
        for (schedule, last, now, expected) in [
            (
                &aligned,
                None,
                "2026-11-21T10:00:00Z",
                "2026-11-21T10:10:00Z",
            ),
            (
                &aligned,
                None,
                "2026-11-21T10:00:01Z",
                "2026-11-21T10:10:00Z",
            ),
            (
                &aligned,
                None,
                "2026-11-21T10:09:59Z",
                "2026-11-21T10:10:00Z",
            ),
            (&free, None, "2026-11-21T10:00:01Z", "2026-11-21T10:10:01Z"),
            (
                &free,
                Some("2026-11-21T09:55:00Z"),
                "2026-11-21T10:00:00Z",
                "2026-11-21T10:05:00Z",
            ),
            (
                &free,
                Some("2026-11-21T09:00:00Z"),
                "2026-11-21T10:00:00Z",
                "2026-11-21T10:10:00Z",
            ),
        ] {
            assert_eq!(
                next_mark(schedule, last.map(at), at(now)),
                at(expected),
                "{last:?} {now}"
            );
        }
    }

    proptest! {
        #[test]
        fn marks_are_later_by_at_most_a_period(
            every_s in 1u64..100_000, align: bool,
            now_s in 0u64..4_000_000_000, last_s in proptest::option::of(0u64..4_000_000_000),
        ) {
            let every = Duration::from_secs(every_s);
            let schedule = Schedule { every, align, jitter: Duration::ZERO };
            let now = Timestamp::from_unix_s(now_s);
            let mark = next_mark(&schedule, last_s.map(Timestamp::from_unix_s), now);
            prop_assert!(mark > now);
            prop_assert!(mark <= now.plus(schedule.every));
        }

        #[test]
        fn delays_stay_within_bounds(failures: u32, spread in 0.0f64..=1.0) {
            let delay = container_backoff(failures, spread);
            prop_assert!(delay >= CONTAINER_BACKOFF_MIN.mul_f64(0.79));
            prop_assert!(delay <= CONTAINER_BACKOFF_MAX.mul_f64(1.21));
        }
    }
}
