//! The circuit breaker: stops a sweep that would remove suspiciously many blobs.
//!
//! It is checked before a page is claimed, over the removals of this cycle, those in flight and
//! those of the page, so nothing beyond the limit is ever started (SS10 allows one page beyond).

use std::fmt;

/// Limits of one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Maximum number of blobs that one cycle may remove over all containers; 0 means no limit.
    pub max_per_cycle: u64,
    /// Maximum fraction (0.0 to 1.0) of a container's listed blobs that one cycle may remove. The
    /// default 1.0 means no limit, because a container of dead letters is rightly emptied as a
    /// whole.
    pub max_fraction: f64,
}

/// The fraction is checked only after this many blobs of a container were listed: of three blobs,
/// two may be removed.
pub const FRACTION_SAMPLE_MIN: u64 = 100;

impl Default for Guard {
    fn default() -> Self {
        Guard {
            max_per_cycle: 0,
            max_fraction: 1.0,
        }
    }
}

/// Removals of a cycle so far, including those in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burden {
    /// Blobs removed or in flight, over all containers.
    pub cycle_removed: u64,
    /// Blobs removed or in flight in this container.
    pub container_removed: u64,
    /// Blobs listed in this container.
    pub container_seen: u64,
}

/// The limit that a page would exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trip {
    /// [`Guard::max_per_cycle`] would be exceeded.
    Count {
        /// Configured limit.
        max_per_cycle: u64,
        /// Blobs removed or in flight in this cycle.
        removed: u64,
        /// Blobs that the page would remove.
        due: u64,
    },
    /// [`Guard::max_fraction`] would be exceeded.
    Fraction {
        /// Configured limit.
        max_fraction: f64,
        /// Blobs removed, including those of the page.
        removed: u64,
        /// Blobs listed, including those of the page.
        seen: u64,
    },
}

impl fmt::Display for Trip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trip::Count {
                max_per_cycle,
                removed,
                due,
            } => write!(
                f,
                "guard.max_per_cycle is {max_per_cycle}: {removed} removed in this cycle, and \
                 {due} of the next page would be removed"
            )?,
            Trip::Fraction {
                max_fraction,
                removed,
                seen,
            } => write!(
                f,
                "guard.max_fraction is {max_fraction}: {removed} of {seen} blobs seen in it would \
                 be removed"
            )?,
        }
        f.write_str("; --approve lifts the limits for one run")
    }
}

impl Guard {
    /// Returns the exceeded limit if a page with `seen` blobs, of which `due` would be removed,
    /// must not be started.
    pub fn judge(&self, so_far: Burden, seen: u64, due: u64) -> Option<Trip> {
        if due == 0 {
            return None;
        }
        let over_count =
            self.max_per_cycle > 0 && so_far.cycle_removed.saturating_add(due) > self.max_per_cycle;
        let all_seen = so_far.container_seen.saturating_add(seen);
        let all_removed = so_far.container_removed.saturating_add(due);
        let over_fraction = all_seen >= FRACTION_SAMPLE_MIN
            && all_removed as f64 > self.max_fraction * all_seen as f64;
        if over_count {
            return Some(Trip::Count {
                max_per_cycle: self.max_per_cycle,
                removed: so_far.cycle_removed,
                due,
            });
        }
        over_fraction.then_some(Trip::Fraction {
            max_fraction: self.max_fraction,
            removed: all_removed,
            seen: all_seen,
        })
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
                guard.judge(burden, seen, due).is_some(),
                expected,
                "{burden:?} {seen} {due}"
            );
        }
    }

    /// The message names the limit, the numbers and the remedy.
    #[test]
    fn trip_message_names_reason_and_remedy() {
        let guard = Guard {
            max_per_cycle: 10,
            max_fraction: 0.5,
        };
        let so_far = Burden {
            cycle_removed: 4,
            container_removed: 4,
            container_seen: 100,
        };
        for (seen, due, parts) in [
            (
                7,
                7,
                ["guard.max_per_cycle is 10", "4 removed", "7 of the next"],
            ),
            (0, 6, ["", "", ""]),
        ] {
            let trip = guard.judge(so_far, seen, due).map(|trip| trip.to_string());
            let all = trip.as_deref().unwrap_or_default();
            assert!(parts.iter().all(|part| all.contains(part)), "{all}");
            assert_eq!(all.contains("--approve"), !parts[0].is_empty());
        }
        let fraction = Guard {
            max_per_cycle: 0,
            ..guard
        };
        let trip = fraction.judge(so_far, 100, 99).unwrap().to_string();
        assert!(
            trip.contains("guard.max_fraction is 0.5: 103 of 200"),
            "{trip}"
        );
    }
}
