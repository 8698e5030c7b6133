//! Keeps a target's clock at the time of the recording: by setting it or by waiting.

use std::time::Duration;

use smalt::Clock;
use smalt_protocol::Timestamp;

use super::timeline::Timeline;
use crate::target::{Target, TargetError};

/// Longest time for which a target is told to wait at once.
const WAIT_AT_ONCE: Duration = Duration::from_secs(60);

/// The clock of a target while one recording is played.
pub struct Pace {
    /// Latest known time of the target.
    now: Timestamp,
    /// Set where the clock cannot be set to the recorded time.
    own: Option<Own>,
}

struct Own {
    clock: Clock,
    /// Set from the first interaction on.
    timeline: Option<Timeline>,
    /// Waiting time that is left.
    wait_left: Duration,
    /// Whether the recording went on for longer than the waiting time.
    is_left_behind: bool,
}

impl Pace {
    /// Starts a recording at `start`. `own_clock` is the target's clock if it cannot be set; the
    /// total waiting time is then at most `wait_max`.
    pub fn new(own_clock: Option<Clock>, start: Timestamp, wait_max: Duration) -> Pace {
        let own = own_clock.map(|clock| Own {
            clock,
            timeline: None,
            wait_left: wait_max,
            is_left_behind: false,
        });
        let now = own.as_ref().map_or(start, |own| own.clock.now());
        Pace { now, own }
    }

    /// Returns the target's time.
    pub fn now(&mut self) -> Timestamp {
        if let Some(own) = &self.own {
            self.now = own.clock.now();
        }
        self.now
    }

    /// Returns how the recording's dates are shifted; `None` where the clock can be set.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.own.as_ref()?.timeline.as_ref()
    }

    /// Returns the waiting time that is left.
    pub fn wait_left(&self) -> Duration {
        self.own
            .as_ref()
            .map_or(Duration::ZERO, |own| own.wait_left)
    }

    /// Sets the clock for a resource that is created beforehand, if it can be set.
    pub async fn prepare(
        &mut self,
        target: &dyn Target,
        time: Timestamp,
    ) -> Result<(), TargetError> {
        match self.own {
            None => self.set(target, time).await,
            Some(_) => Ok(()),
        }
    }

    /// Advances the clock to a recorded time. Returns `false` when that is too far ahead of a clock
    /// that cannot be set; then no later time can be reached either.
    pub async fn reach(
        &mut self,
        target: &dyn Target,
        time: Timestamp,
    ) -> Result<bool, TargetError> {
        match &mut self.own {
            None => self.set(target, time).await.map(|()| true),
            Some(own) => own.reach(target, time).await,
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

    /// A target that shows at once the time for which it is told to wait.
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
