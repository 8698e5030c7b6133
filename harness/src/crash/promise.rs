//! What the two storage modes promise about an acknowledged operation, and the checks of it.
//!
//! *Durable*: it exists. *Fast*: it exists once it is older than an interval; a kill takes the end
//! of the history, the same for all connections. Everything else (C2 to C8) is the same.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use smalt::store::{FAST_LOSS_MS_MAX, StoreConfig};
use smalt::{Builder, Clock};

use super::history::{Cut, History};
use super::property::{Flaw, Property};

/// Milliseconds in addition to the interval: a thread of sled rolls the buffer every interval,
/// another one writes it, and before its pause the first one syncs the file. So a write waits for
/// an interval, or for a sync that takes longer; then for a buffer of up to half a megabyte to be
/// written. On a system with enough processors (otherwise the beat stands still) that takes a few
/// milliseconds; a disk may take a hundred for a sync.
const SLACK_MS: u64 = 100;

/// A storage mode and its promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum Promise {
    /// No acknowledged operation is lost.
    #[default]
    Durable,
    /// The last interval before a kill may be lost, from its end.
    Fast,
}

/// Acknowledged operations that a kill took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lost {
    /// Number of operations.
    pub operations: u64,
    /// Age of the oldest of them at the kill, in milliseconds.
    pub age_ms_max: u64,
}

impl Lost {
    /// Adds the losses of another kill.
    pub fn add(&mut self, other: Lost) {
        self.operations += other.operations;
        self.age_ms_max = self.age_ms_max.max(other.age_ms_max);
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} acknowledged operations were lost, the oldest {} ms before the kill; at most {} ms \
             are allowed",
            self.operations,
            self.age_ms_max,
            Promise::Fast.loss_ms_max()
        )
    }
}

impl Promise {
    /// Returns the value of `--mode`.
    pub fn mode(self) -> &'static str {
        match self {
            Promise::Durable => "durable",
            Promise::Fast => "fast",
        }
    }

    /// Returns the greatest age in milliseconds of an acknowledged operation that may be missing
    /// after a kill.
    pub fn loss_ms_max(self) -> u64 {
        match self {
            Promise::Durable => 0,
            Promise::Fast => FAST_LOSS_MS_MAX + SLACK_MS,
        }
    }

    /// Configures a store in this mode.
    pub fn store(self, dir: &Path, clock: Clock) -> StoreConfig {
        match self {
            Promise::Durable => StoreConfig::durable(dir, clock),
            Promise::Fast => StoreConfig::fast(dir, clock),
        }
    }

    /// Configures an emulator in this mode.
    pub fn emulator(self, builder: Builder, dir: &Path) -> Builder {
        match self {
            Promise::Durable => builder.durable(dir),
            Promise::Fast => builder.fast(dir),
        }
    }

    /// Returns what a kill took of these histories, and adds flaws for what it must not have taken.
    pub fn lost(self, all: &[(&History, Cut)], flaws: &mut Vec<Flaw>) -> Lost {
        let mut lost = Lost::default();
        for (history, cut) in all {
            lost.operations += history.lost(*cut) as u64;
            lost.age_ms_max = lost.age_ms_max.max(history.age_ms(*cut));
            flaws.extend(self.age(history, *cut));
        }
        flaws.extend(order(all));
        lost
    }

    /// C1: checks that the missing part of a connection's history is not too old.
    pub fn age(self, history: &History, cut: Cut) -> Option<Flaw> {
        let lost = history.steps.get(cut.last)?;
        let age_ms = history.age_ms(cut);
        (self == Promise::Durable || age_ms > self.loss_ms_max()).then(|| {
            let text = format!(
                "{:?}, acknowledged {age_ms} ms before the kill, is lost, and {} after it",
                lost.op,
                history.steps.len() - cut.last - 1
            );
            Flaw::new(Property::C1, text)
        })
    }
}

/// C1: checks that the lost operations are the end of one order of commits. An operation that was
/// sent after the acknowledgement of another one, by any connection, came after it and does not
/// exist without it.
pub fn order(all: &[(&History, Cut)]) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    for (later, there) in all {
        let Some(begun) = there.first.checked_sub(1).and_then(|at| later.begun(at)) else {
            continue;
        };
        for (earlier, missing) in all {
            if let Some(lost) = earlier.steps.get(missing.last)
                && lost.done < begun
            {
                let there = later.op(there.first - 1);
                let text = format!("{there:?} exists, but {:?} before it does not", lost.op);
                flaws.push(Flaw::new(Property::C1, text));
            }
        }
    }
    flaws
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::history::tests::{delete, history};

    /// A connection with this many operations, each ten milliseconds after the previous one.
    fn one(count: u64, first_place: u64) -> History {
        let mut all = history((0..count).map(|n| (delete(n), "")).collect());
        for (step, n) in all.steps.iter_mut().zip(0_u64..) {
            (step.begun, step.done) = (first_place + 10 * n, first_place + 10 * n + 1);
            step.at_ms = 10 * n;
        }
        all.until_ms = 10 * (count - 1);
        all
    }

    fn exactly(count: usize) -> Cut {
        Cut {
            first: count,
            last: count,
        }
    }

    #[test]
    fn an_old_acknowledged_operation_must_exist() {
        let all = one(100, 0);
        let allowed = usize::try_from(Promise::Fast.loss_ms_max() / 10).unwrap();
        let ok = |promise: Promise, lost| promise.age(&all, exactly(100 - lost)).is_none();
        assert!(ok(Promise::Fast, 0) && ok(Promise::Fast, 1));
        assert!(ok(Promise::Fast, allowed) && !ok(Promise::Fast, allowed + 2));
        assert!(!ok(Promise::Fast, 100));
        assert!(ok(Promise::Durable, 0) && !ok(Promise::Durable, 1));
        // An operation whose loss is not certain does not count as missing.
        let unclear = Cut {
            first: 0,
            last: 100,
        };
        assert_eq!(Promise::Fast.age(&all, unclear), None);
    }

    #[test]
    fn losses_are_the_end_for_all_connections() {
        // The nth operation of the second connection begins when the nth of the first is
        // acknowledged.
        let (a, b) = (one(10, 0), one(10, 5));
        let flaws = |a_has, b_has| order(&[(&a, exactly(a_has)), (&b, exactly(b_has))]).len();
        assert_eq!(flaws(10, 10), 0);
        assert_eq!(flaws(5, 5), 0);
        assert_eq!(flaws(6, 5), 0);
        assert_eq!(flaws(5, 6), 1, "the sixth of b came after the sixth of a");
        assert_eq!(flaws(7, 5), 1, "the seventh of a came after the sixth of b");
        assert_eq!(flaws(0, 10), 1);
        // A connection without operations proves nothing.
        let idle = history(Vec::new());
        assert_eq!(order(&[(&a, exactly(3)), (&idle, exactly(0))]).len(), 0);
    }
}
