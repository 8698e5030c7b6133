//! How a target's clock keeps up with a recording: set, or waited for.

use std::time::Duration;

use smalt::Clock;
use smalt_protocol::Timestamp;

use super::timeline::Timeline;
use crate::target::{Target, TargetError};

/// A target waits no longer than this when it is told a time.
const WAIT_AT_ONCE: Duration = Duration::from_secs(60);

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
        let (mut reached, due) = (now, now.plus(wait));
        while reached < due {
            reached = reached.plus(WAIT_AT_ONCE).min(due);
            target.set_clock(reached).await?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::target::About;
    use crate::wire::{Answer, Request};

    /// Its clock shows at once what it is told to wait for.
    struct Waiting {
        about: About,
        clock: Clock,
        waited_s: Mutex<Vec<u64>>,
    }

    #[async_trait]
    impl Target for Waiting {
        fn about(&self) -> &About {
            &self.about
        }

        async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
            let waited = now.since(self.clock.now());
            self.waited_s.lock().unwrap().push(waited.as_secs());
            self.clock.set(now);
            Ok(())
        }

        async fn call(&self, request: Request) -> Result<Answer, TargetError> {
            Err(TargetError::Call(request.url))
        }
    }

    #[tokio::test]
    async fn steps_are_waited_for_until_the_time_is_used_up() {
        let start = Timestamp::from_unix_s(1_000_000_000);
        let clock = Clock::manual(start.plus_s(500_000));
        let target = Waiting {
            about: About::by_host("waiting"),
            clock: clock.clone(),
            waited_s: Mutex::default(),
        };
        let mut pace = Pace::new(Some(clock), start, Duration::from_secs(100));
        for (recorded_s, is_reached) in
            [(0, true), (2, true), (90, true), (101, false), (101, false)]
        {
            let reached = pace.reach(&target, start.plus_s(recorded_s)).await;
            assert_eq!(reached, Ok(is_reached), "{recorded_s}");
        }
        assert_eq!(*target.waited_s.lock().unwrap(), [2, 60, 28]);
        assert_eq!(pace.now(), start.plus_s(500_090));
        assert_eq!(pace.wait_left(), Duration::from_secs(10));
        let timeline = pace.timeline().unwrap();
        assert_eq!(timeline.time(start), start.plus_s(500_000));
    }
}
