//! The only source of time. All other code takes `now` as a value.
//!
//! A [`Clock`] reads a base (the system's time, tokio's, or none for a manual clock) and adds the
//! changes of the control endpoint: an offset, or a freeze. With tokio's paused time, a
//! [`Clock::tokio`] moves the service together with the workers and their sleeps.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use smalt_protocol::Timestamp;
use tokio::time::Instant;

/// A clock that can be set, advanced, frozen and resumed. Clones share their state.
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

/// The state of a clock: it shows `shown` when the base shows `at`, and stands or runs from there.
#[derive(Clone, Copy, Debug)]
struct State {
    shown: Timestamp,
    at: Timestamp,
    running: bool,
}

/// The state of the clock as the control endpoint returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The emulator's time.
    pub now: Timestamp,
    /// Whether the clock moves by itself.
    pub running: bool,
    /// Whether the clock shows the system's time, that is, was never set, advanced or frozen.
    pub is_wall: bool,
}

impl Clock {
    /// The latest time that the clock can be set to: 9000-01-01. ETags and ids need later
    /// timestamps, and timestamps end with the year 9999.
    pub const LATEST: Timestamp = Timestamp::UNIX_EPOCH.plus_s(221_845_392_000);

    /// Creates a clock that follows the system's time.
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

    /// Creates a clock that follows tokio's time and starts at `start`. With paused time it moves
    /// only when the runtime is idle.
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

    /// Creates a clock that stays at `start` until it is set or advanced.
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

    /// Returns the emulator's time.
    pub fn now(&self) -> Timestamp {
        let state = self.0.state.read();
        if !state.running {
            return state.shown;
        }
        state.shown.plus(self.base().since(state.at))
    }

    /// Returns the system's time, for the skew check of signed requests. A tokio or manual clock
    /// returns its own time.
    pub fn wall(&self) -> Timestamp {
        match self.0.source {
            Source::System => wall(),
            Source::Tokio { .. } | Source::Manual => self.now(),
        }
    }

    /// Returns whether a wait must stop tokio's clock, which would otherwise jump during a commit.
    pub fn follows_tokio(&self) -> bool {
        matches!(self.0.source, Source::Tokio { .. })
    }

    /// Sets the clock to `to`, at most [`Clock::LATEST`].
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

    /// Advances the clock by `by`.
    pub fn advance(&self, by: Duration) {
        let now = self.now();
        self.set(now.plus(by));
    }

    /// Stops the clock at its current time.
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

    /// Resumes the clock from its current time. A manual clock stays where it is.
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

    /// Sets the clock to `now`, running or stopped.
    pub fn show(&self, now: Timestamp, running: bool) {
        self.set(now);
        match running {
            true => self.run(),
            false => self.freeze(),
        }
    }

    /// Follows the system's time again, if that is the clock's base.
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

    /// Returns an independent clock that shows the same time.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.0.source, *self.0.state.read())
    }

    /// Returns time and mode.
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
    fn manual_clock_stands_until_moved() {
        let start = Timestamp::from_unix_s(1_000);
        let clock = Clock::manual(start);
        assert_eq!(clock.now(), start);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), start.plus_s(5));
        clock.run();
        assert_eq!(clock.now(), start.plus_s(5));
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_moves_with_the_sleep_of_a_test() {
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
    fn system_clock_shows_system_time_until_it_is_set() {
        let clock = Clock::system();
        assert!(clock.reading().is_wall);
        clock.advance(Duration::from_secs(3_600));
        assert!(!clock.reading().is_wall);
        assert!(clock.now() > clock.wall());
    }
}
