//! A record of who works on what, and when, for the assertions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smalt::Emulator;
use smalt_protocol::Timestamp;

/// A record of work. Clones share the record.
#[derive(Clone, Debug)]
pub struct Work {
    emulator: Emulator,
    runs: Arc<Mutex<Vec<Run>>>,
}

/// One attempt at one piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What was worked on; for messages, the text.
    pub key: String,
    /// Time at which the attempt began.
    pub begun: Timestamp,
    /// Time at which the attempt ended, successfully or not.
    pub ended: Option<Timestamp>,
    /// Whether the work was done.
    pub done: bool,
}

/// An attempt in progress; it fails on drop.
#[derive(Debug)]
pub struct Running {
    work: Work,
    number: usize,
}

impl Work {
    pub(super) fn new(emulator: Emulator) -> Self {
        Work {
            emulator,
            runs: Arc::default(),
        }
    }

    /// Starts work on `key`; for messages, the text.
    #[must_use = "the work fails when this is dropped"]
    pub fn begin(&self, key: &str) -> Running {
        let mut runs = self.lock();
        runs.push(Run {
            key: key.to_owned(),
            begun: self.emulator.now(),
            ended: None,
            done: false,
        });
        Running {
            work: self.clone(),
            number: runs.len() - 1,
        }
    }

    /// Returns every attempt, ordered by start.
    pub fn runs(&self) -> Vec<Run> {
        self.lock().clone()
    }

    /// Returns when `key` was first done.
    pub fn done_at(&self, key: &str) -> Option<Timestamp> {
        let runs = self.lock();
        let done = runs.iter().filter(|run| run.done && run.key == key);
        done.filter_map(|run| run.ended).min()
    }

    /// Asserts that nothing was worked on by two at once.
    ///
    /// # Panics
    /// With the two attempts that overlap.
    #[track_caller]
    pub fn assert_one_at_a_time(&self) {
        let runs = self.runs();
        for (number, later) in runs.iter().enumerate() {
            let same = runs[..number].iter().filter(|run| run.key == later.key);
            if let Some(earlier) = same.into_iter().find(|run| run.is_running_at(later.begun)) {
                super::fail(format!(
                    "two attempts at {:?} overlap: one from {} to {}, another from {} on",
                    later.key,
                    earlier.begun,
                    earlier.until(),
                    later.begun,
                ));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, number: usize, done: bool) {
        let now = self.emulator.now();
        if let Some(run) = self.lock().get_mut(number)
            && run.ended.is_none()
        {
            run.ended = Some(now);
            run.done = done;
        }
    }
}

impl Run {
    fn is_running_at(&self, at: Timestamp) -> bool {
        self.ended.is_none_or(|ended| ended > at)
    }

    fn until(&self) -> String {
        self.ended
            .map_or_else(|| "now".to_owned(), |at| at.to_string())
    }
}

impl Running {
    /// Marks the work as done; from here on the message may be acknowledged.
    pub fn done(self) {
        self.work.end(self.number, true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.work.end(self.number, false);
    }
}
