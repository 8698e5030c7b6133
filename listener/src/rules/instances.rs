//! How many instances of a listener should run (L10 to L12).
//!
//! Tasks follow the load within seconds and cost nothing by themselves. Instances take minutes to
//! start and are paid for while they run, so they follow three slower measures: the length of the
//! queue, the age of its oldest message, and the processor time of the instances.

use std::time::Duration;

use super::scaling::Highest;

/// The load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Look {
    /// Approximate number of messages in the queue, hidden ones included.
    pub depth: u64,
    /// Age of the oldest visible message; zero if none is visible.
    pub oldest_age: Duration,
    /// Instances that work.
    pub ready: u32,
    /// Instances that are starting.
    pub starting: u32,
    /// Mean share of its processor that a working instance uses, from 0 to 1.
    pub processor: f64,
}

/// Settings of the agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Smallest number of instances.
    pub min: u32,
    /// Largest number of instances.
    pub max: u32,
    /// Messages in the queue for which one instance suffices.
    pub depth_per_instance: u64,
    /// Age from which a message waits for too long.
    pub age_max: Duration,
    /// Share of its processor that an instance should use at most; the rest is headroom.
    pub processor_max: f64,
    /// Time for which fewer instances must be wanted before any is stopped.
    pub cooldown: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            min: 1,
            max: 20,
            depth_per_instance: 1_000,
            age_max: Duration::from_secs(60),
            processor_max: 0.7,
            cooldown: Duration::from_secs(300),
        }
    }
}

/// Chooses the number of instances: more at once, fewer after the cooldown.
#[derive(Clone, Debug)]
pub struct InstanceRule {
    bounds: Bounds,
    highest: Highest,
}

impl InstanceRule {
    /// Creates a rule without history.
    pub fn new(bounds: Bounds) -> Self {
        InstanceRule {
            bounds,
            highest: Highest::default(),
        }
    }

    /// Returns the number of instances to run from `now` on, counted from any fixed moment.
    pub fn target(&mut self, now: Duration, look: &Look) -> u32 {
        let wished = wish(&self.bounds, look);
        self.highest.of(now, self.bounds.cooldown, wished)
    }
}

/// Returns the largest of what length, age and processor time ask for. Messages that wait for too
/// long ask for one instance more than there are, once those that are starting have started.
fn wish(bounds: &Bounds, look: &Look) -> u32 {
    let by_depth = look.depth.div_ceil(bounds.depth_per_instance.max(1));
    let is_late = look.oldest_age > bounds.age_max;
    let by_age = match (is_late, look.starting) {
        (true, 0) => look.ready.saturating_add(1),
        (true, _) => look.ready.saturating_add(look.starting),
        (false, _) => 0,
    };
    let used = f64::from(look.ready) * look.processor.max(0.0);
    // A float cast saturates.
    let by_processor = (used / bounds.processor_max.max(0.01)).ceil() as u32;
    let wished = u32::try_from(by_depth).unwrap_or(u32::MAX);
    let most = bounds.max.max(1);
    let wished = wished.max(by_age).max(by_processor);
    wished.clamp(bounds.min.min(most), most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(depth: u64, age_s: u64, (ready, starting): (u32, u32), processor: f64) -> Look {
        Look {
            depth,
            oldest_age: Duration::from_secs(age_s),
            ready,
            starting,
            processor,
        }
    }

    /// L11: length, age and processor time each ask for instances.
    #[test]
    fn l11_each_measure_asks_for_instances() {
        let bounds = Bounds::default();
        for (seen, wanted) in [
            (look(0, 0, (1, 0), 0.0), 1),
            (look(1_000, 0, (1, 0), 0.1), 1),
            (look(1_001, 0, (1, 0), 0.1), 2),
            (look(u64::MAX, 0, (1, 0), 0.1), 20),
            (look(5, 61, (3, 0), 0.1), 4),
            (look(5, 61, (3, 2), 0.1), 5),
            (look(5, 60, (3, 0), 0.1), 1),
            (look(5, 0, (4, 0), 0.7), 4),
            (look(5, 0, (4, 0), 0.9), 6),
            (look(5, 0, (4, 0), f64::NAN), 1),
        ] {
            assert_eq!(wish(&bounds, &seen), wanted, "{seen:?}");
        }
    }

    #[test]
    fn instances_stop_only_after_the_cooldown() {
        let mut rule = InstanceRule::new(Bounds::default());
        let s = Duration::from_secs;
        let (busy, calm) = (look(5_000, 0, (1, 0), 0.5), look(0, 0, (5, 0), 0.0));
        assert_eq!(rule.target(s(0), &busy), 5);
        assert_eq!(rule.target(s(299), &calm), 5);
        assert_eq!(rule.target(s(301), &calm), 1);
    }

    proptest! {
        #[test]
        fn numbers_stay_within_the_bounds(
            depth: u64, age_s in 0_u64..100_000, ready: u32, starting: u32, processor: f64,
        ) {
            let look = look(depth, age_s, (ready, starting), processor);
            let wished = wish(&Bounds::default(), &look);
            prop_assert!((1..=20).contains(&wished));
        }
    }
}
