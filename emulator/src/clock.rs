//! The one source of time. Everything else takes `now` as a value.
//!
//! A [`Clock`] reads a base (the system's time, tokio's, or nothing at all for a manual clock) and
//! adds what the control endpoint did to it: an offset, or a freeze. Under tokio's paused time a
//! [`Clock::tokio`] moves the service together with the workers and their sleeps.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use smalt_protocol::Timestamp;
use tokio::time::Instant;

/// A clock that can be set, advanced, frozen and run. Clones share their state.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    state: RwLock<State>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    Tokio { started: Instant },
    Manual,
}

/// What was done to the clock: it shows `shown` at the base's `at`, and stands or runs from there.
#[derive(Clone, Copy, Debug)]
struct State {
    shown: Timestamp,
    at: Timestamp,
    running: bool,
}

/// What the control endpoint tells about the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The emulator's time.
    pub now: Timestamp,
    /// Whether it moves by itself.
    pub running: bool,
    /// Whether it shows the wall's time: never set, advanced or frozen.
    pub is_wall: bool,
}

impl Clock {
    /// The latest time that it can be set or moved to: 9000-01-01. ETags and ids are times that go
    /// on, and times end with the year 9999.
    pub const LATEST: Timestamp = Timestamp::UNIX_EPOCH.plus_s(221_845_392_000);

    /// The machine's time.
    pub fn system() -> Self {
        let now = wall();
        Self::new(
            Source::System,
            State {
                shown: now,
                at: now,
                running: true,
            },
        )
    }

    /// Tokio's time, starting at `start`: with paused time it moves only when the runtime is idle.
    pub fn tokio(start: Timestamp) -> Self {
        let state = State {
            shown: start,
            at: Timestamp::UNIX_EPOCH,
            running: true,
        };
        Self::new(
            Source::Tokio {
                started: Instant::now(),
            },
            state,
        )
    }

    /// Stands at `start` until it is set or advanced.
    pub fn manual(start: Timestamp) -> Self {
        let state = State {
            shown: start,
            at: Timestamp::UNIX_EPOCH,
            running: false,
        };
        Self::new(Source::Manual, state)
    }

    fn new(source: Source, state: State) -> Self {
        Clock(Arc::new(Inner {
            source,
            state: RwLock::new(state),
        }))
    }

    /// The emulator's time.
    pub fn now(&self) -> Timestamp {
        let state = self.0.state.read();
        if !state.running {
            return state.shown;
        }
        state.shown.plus(self.base().since(state.at))
    }

    /// The wall's time, for the skew check of signed requests. A clock without a wall of its own
    /// (tokio's, manual) is its own wall.
    pub fn wall(&self) -> Timestamp {
        match self.0.source {
            Source::System => wall(),
            Source::Tokio { .. } | Source::Manual => self.now(),
        }
    }

    /// Whether waiting must hold tokio's clock (it would jump in the middle of a commit).
    pub fn follows_tokio(&self) -> bool {
        matches!(self.0.source, Source::Tokio { .. })
    }

    /// Shows `to` from now on, at most [`Clock::LATEST`].
    pub fn set(&self, to: Timestamp) {
        let to = to.min(Self::LATEST);
        self.change(|state, at| {
            *state = State {
                shown: to,
                at,
                running: state.running,
            }
        });
    }

    /// Moves forward by `by`.
    pub fn advance(&self, by: Duration) {
        let now = self.now();
        self.set(now.plus(by));
    }

    /// Stands still at the time that it shows.
    pub fn freeze(&self) {
        let now = self.now();
        self.change(|state, at| {
            *state = State {
                shown: now,
                at,
                running: false,
            }
        });
    }

    /// Moves by itself again, from the time that it shows. A manual clock has nothing to follow.
    pub fn run(&self) {
        let now = self.now();
        let can_run = !matches!(self.0.source, Source::Manual);
        self.change(|state, at| {
            *state = State {
                shown: now,
                at,
                running: can_run,
            }
        });
    }

    /// Shows `now`, and runs or stands from there.
    pub fn show(&self, now: Timestamp, running: bool) {
        self.set(now);
        match running {
            true => self.run(),
            false => self.freeze(),
        }
    }

    /// Shows the wall's time again, if that is what it is based on.
    pub fn follow_wall(&self) {
        if matches!(self.0.source, Source::System) {
            self.change(|state, at| {
                *state = State {
                    shown: at,
                    at,
                    running: true,
                }
            });
        }
    }

    /// Another clock that shows the same time, and is moved by itself from now on.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.0.source, *self.0.state.read())
    }

    /// Time and mode.
    pub fn reading(&self) -> Reading {
        let state = *self.0.state.read();
        let is_wall =
            matches!(self.0.source, Source::System) && state.running && state.shown == state.at;
        Reading {
            now: self.now(),
            running: state.running,
            is_wall,
        }
    }

    fn base(&self) -> Timestamp {
        match self.0.source {
            Source::System => wall(),
            Source::Tokio { started } => Timestamp::from_unix(started.elapsed()),
            Source::Manual => Timestamp::UNIX_EPOCH,
        }
    }

    fn change(&self, change: impl FnOnce(&mut State, Timestamp)) {
        let at = self.base();
        change(&mut self.0.state.write(), at);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this module is the emulator's source of time"
)]
fn wall() -> Timestamp {
    Timestamp::from_unix(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_stands_until_moved() {
        let start = Timestamp::from_unix_s(1_000);
        let clock = Clock::manual(start);
        assert_eq!(clock.now(), start);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), start.plus_s(5));
        clock.run();
        assert_eq!(clock.now(), start.plus_s(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_moves_with_the_sleep_of_a_test() {
        let start = Timestamp::from_unix_s(1_000);
        let clock = Clock::tokio(start);
        tokio::time::sleep(Duration::from_secs(7 * 86_400)).await;
        assert_eq!(clock.now(), start.plus_s(7 * 86_400));
        clock.freeze();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), start.plus_s(7 * 86_400));
        clock.run();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), start.plus_s(7 * 86_400 + 1));
    }

    #[test]
    fn a_system_clock_is_the_wall_until_it_is_set() {
        let clock = Clock::system();
        assert!(clock.reading().is_wall);
        clock.advance(Duration::from_secs(3_600));
        assert!(!clock.reading().is_wall);
        assert!(clock.now() > clock.wall());
    }
}
