//! The circuit breaker of deletions: a sweep that would remove suspiciously much stops instead.
//!
//! Judged before a page is claimed, over what this cycle has removed, what is in flight and what
//! the page would remove: nothing beyond the limit is ever started (SS10 allows one page beyond).

use crate::planted::planted;

/// Limits of one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Most blobs that one cycle may remove over all containers; 0 for no limit.
    pub max_per_cycle: u64,
    /// Largest part of the blobs seen in a container that one cycle may remove, 0.0 to 1.0. A
    /// container of dead letters is rightly emptied as a whole, so the default is 1.0: no limit.
    pub max_fraction: f64,
}

/// A fraction is judged once this many blobs of a container were seen: of three blobs two may go.
pub const FRACTION_SAMPLE_MIN: u64 = 100;

impl Default for Guard {
    fn default() -> Self {
        Guard {
            max_per_cycle: 0,
            max_fraction: 1.0,
        }
    }
}

/// What a cycle has done so far, in flight included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burden {
    /// Removed or in flight, over all containers.
    pub cycle_removed: u64,
    /// Removed or in flight in this container.
    pub container_removed: u64,
    /// Seen in this container.
    pub container_seen: u64,
}

impl Guard {
    /// Whether a page of `seen` blobs of which `due` would go must not be started.
    pub fn trips(&self, so_far: Burden, seen: u64, due: u64) -> bool {
        if due == 0 {
            return false;
        }
        let over_count = self.max_per_cycle > 0
            && !planted("guard-never-trips")
            && so_far.cycle_removed.saturating_add(due) > self.max_per_cycle;
        let all_seen = so_far.container_seen.saturating_add(seen);
        let all_removed = so_far.container_removed.saturating_add(due);
        let over_fraction = all_seen >= FRACTION_SAMPLE_MIN
            && all_removed as f64 > self.max_fraction * all_seen as f64;
        over_count || over_fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_would_cross_a_limit_is_not_started() {
        let count = Guard {
            max_per_cycle: 10,
            ..Guard::default()
        };
        let fraction = Guard {
            max_fraction: 0.5,
            ..Guard::default()
        };
        let so_far = |cycle_removed, container_removed, container_seen| Burden {
            cycle_removed,
            container_removed,
            container_seen,
        };
        for (guard, burden, seen, due, expected) in [
            (count, so_far(0, 0, 0), 10, 10, false),
            (count, so_far(1, 0, 0), 10, 10, true),
            (count, so_far(99, 0, 0), 10, 0, false),
            (fraction, so_far(0, 0, 0), 10, 10, false),
            (fraction, so_far(0, 0, 0), 100, 50, false),
            (fraction, so_far(0, 0, 0), 100, 51, true),
            (fraction, so_far(0, 0, 100), 100, 100, false),
            (Guard::default(), so_far(0, 900, 900), 100, 100, false),
        ] {
            assert_eq!(
                guard.trips(burden, seen, due),
                expected,
                "{burden:?} {seen} {due}"
            );
        }
    }
}
