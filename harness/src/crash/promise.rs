//! What the two modes promise of an acknowledged operation, and who decides by it.
//!
//! *Durable*: it is there. *Fast*: it is there once it is older than an interval; what a kill takes
//! is the end of the history, the same for all connections. All else (C2 to C7) is alike.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use smalt::store::{FAST_LOSS_MS_MAX, StoreConfig};
use smalt::{Builder, Clock};

use super::history::{Cut, History};
use super::property::{Flaw, Property};

/// Beside the interval, in milliseconds: a thread of sled rolls the buffer every interval, another
/// one writes it, and before its pause the first one syncs the file. So a write waits an interval,
/// or a sync that takes longer; then for a buffer of up to half a megabyte to be written. On a
/// system that is not short of processors (the beat stands still otherwise) that is a few
/// milliseconds; a disk may take a hundred for a sync.
const SLACK_MS: u64 = 100;

/// The promise of a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub enum Promise {
    /// Nothing that was acknowledged is lost.
    #[default]
    Durable,
    /// The last interval before a kill may be lost, from its end.
    Fast,
}

/// What a kill took of what had been acknowledged.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lost {
    /// So many operations.
    pub operations: u64,
    /// The age of the oldest of them.
    pub age_ms_max: u64,
}

impl Lost {
    /// What several kills took.
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
    /// The value of `--mode`.
    pub fn mode(self) -> &'static str {
        match self {
            Promise::Durable => "durable",
            Promise::Fast => "fast",
        }
    }

    /// How old an acknowledged operation is at most that may be missing after a kill.
    pub fn loss_ms_max(self) -> u64 {
        match self {
            Promise::Durable => 0,
            Promise::Fast => FAST_LOSS_MS_MAX + SLACK_MS,
        }
    }

    /// A store in this mode.
    pub fn store(self, dir: &Path, clock: Clock) -> StoreConfig {
        match self {
            Promise::Durable => StoreConfig::durable(dir, clock),
            Promise::Fast => StoreConfig::fast(dir, clock),
        }
    }

    /// An emulator in this mode.
    pub fn emulator(self, builder: Builder, dir: &Path) -> Builder {
        match self {
            Promise::Durable => builder.durable(dir),
            Promise::Fast => builder.fast(dir),
        }
    }

    /// What a kill took of these, and what it must not have taken.
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

    /// C1: what is missing of a connection's history may be missing.
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

/// C1: what is lost is the end of one order of commits. An operation that was sent after another
/// one had been acknowledged came after it, whoever sent it, and is not there without it.
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
                let text = format!("{there:?} is there, and {:?} before it is not", lost.op);
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

    /// One who did so many operations, each ten milliseconds after the one before.
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
    fn an_old_acknowledgement_is_there() {
        let all = one(100, 0);
        let allowed = usize::try_from(Promise::Fast.loss_ms_max() / 10).unwrap();
        let ok = |promise: Promise, lost| promise.age(&all, exactly(100 - lost)).is_none();
        assert!(ok(Promise::Fast, 0) && ok(Promise::Fast, 1));
        assert!(ok(Promise::Fast, allowed) && !ok(Promise::Fast, allowed + 2));
        assert!(!ok(Promise::Fast, 100));
        assert!(ok(Promise::Durable, 0) && !ok(Promise::Durable, 1));
        // Whoever cannot be told to be missing is not missed.
        let unclear = Cut {
            first: 0,
            last: 100,
        };
        assert_eq!(Promise::Fast.age(&all, unclear), None);
    }

    #[test]
    fn what_is_lost_is_the_end_for_all() {
        // The nth of the second begins when the nth of the first has been acknowledged.
        let (a, b) = (one(10, 0), one(10, 5));
        let flaws = |a_has, b_has| order(&[(&a, exactly(a_has)), (&b, exactly(b_has))]).len();
        assert_eq!(flaws(10, 10), 0);
        assert_eq!(flaws(5, 5), 0);
        assert_eq!(flaws(6, 5), 0);
        assert_eq!(flaws(5, 6), 1, "the sixth of b came after the sixth of a");
        assert_eq!(flaws(7, 5), 1, "the seventh of a came after the sixth of b");
        assert_eq!(flaws(0, 10), 1);
        // One who did nothing is no witness.
        let idle = history(Vec::new());
        assert_eq!(order(&[(&a, exactly(3)), (&idle, exactly(0))]).len(), 0);
    }
}
