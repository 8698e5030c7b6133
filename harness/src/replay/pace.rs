//! How a target's clock keeps up with a recording: set, or waited for.

use std::time::Duration;

use smalt::Clock;
use smalt_protocol::Timestamp;

use super::target::{Target, TargetError};
use super::timeline::Timeline;

/// A target's clock while one recording is played.
pub struct Pace {
    /// The target's time, as far as it is known.
    now: Timestamp,
    kind: Kind,
}

enum Kind {
    /// It is set to the recorded time.
    Set,
    /// It goes by itself.
    Own(Box<Own>),
}

struct Own {
    clock: Clock,
    /// From the first interaction on.
    timeline: Option<Timeline>,
    /// How long may still be waited.
    wait_left: Duration,
    /// The recording's time went on for longer.
    is_left_behind: bool,
}

impl Pace {
    /// A recording begins at `start`, on a target with this clock of its own, if it has one, which
    /// is waited for no longer than `wait_max` altogether.
    pub fn new(own_clock: Option<Clock>, start: Timestamp, wait_max: Duration) -> Pace {
        match own_clock {
            None => Pace {
                now: start,
                kind: Kind::Set,
            },
            Some(clock) => Pace {
                now: clock.now(),
                kind: Kind::Own(Box::new(Own {
                    clock,
                    timeline: None,
                    wait_left: wait_max,
                    is_left_behind: false,
                })),
            },
        }
    }

    /// The target's time.
    pub fn now(&mut self) -> Timestamp {
        if let Kind::Own(own) = &self.kind {
            self.now = own.clock.now();
        }
        self.now
    }

    /// How the recording's dates are moved, if they are.
    pub fn timeline(&self) -> Option<&Timeline> {
        match &self.kind {
            Kind::Set => None,
            Kind::Own(own) => own.timeline.as_ref(),
        }
    }

    /// What of the time to wait was not used up.
    pub fn wait_left(&self) -> Duration {
        match &self.kind {
            Kind::Set => Duration::ZERO,
            Kind::Own(own) => own.wait_left,
        }
    }

    /// Sets the clock for what is made beforehand, if it can be set.
    ///
    /// # Errors
    /// When it refuses.
    pub async fn prepare(
        &mut self,
        target: &dyn Target,
        time: Timestamp,
    ) -> Result<(), TargetError> {
        match self.kind {
            Kind::Set => self.set(target, time).await,
            Kind::Own(_) => Ok(()),
        }
    }

    /// Brings the clock to a recorded time. `false` when that lies too far ahead of a clock that
    /// cannot be set: then nothing later can be reached either.
    ///
    /// # Errors
    /// When the clock cannot be set.
    pub async fn reach(
        &mut self,
        target: &dyn Target,
        time: Timestamp,
    ) -> Result<bool, TargetError> {
        match &mut self.kind {
            Kind::Set => self.set(target, time).await.map(|()| true),
            Kind::Own(own) => own.reach(target, time).await,
        }
    }

    async fn set(&mut self, target: &dyn Target, time: Timestamp) -> Result<(), TargetError> {
        self.now = self.now.max(time);
        target.set_clock(self.now).await
    }
}

impl Own {
    async fn reach(&mut self, target: &dyn Target, time: Timestamp) -> Result<bool, TargetError> {
        if self.is_left_behind {
            return Ok(false);
        }
        let now = self.clock.now();
        let first = || Timeline::new(time, now);
        let timeline = self.timeline.get_or_insert_with(first);
        let wait = timeline.follow(time, now);
        let Some(left) = self.wait_left.checked_sub(wait) else {
            self.is_left_behind = true;
            return Ok(false);
        };
        self.wait_left = left;
        if !wait.is_zero() {
            target.set_clock(now.plus(wait)).await?;
        }
        Ok(true)
    }
}
