//! Estimates the load from recent events; the input of the scaling rules.

use std::time::Duration;

use super::scaling::Load;

/// Handler time assumed before the first measurement.
const HANDLER_TIME_UNKNOWN: Duration = Duration::from_millis(200);
/// Weight of the newest time in hand and handler time.
const HANDLER_WEIGHT: f64 = 0.2;
const ARRIVALS_WEIGHT: f64 = 0.5;

/// Shortest time over which arrivals are counted.
const RATE_WINDOW: Duration = Duration::from_millis(500);

/// Turns events into a [`Load`]. Times count from any fixed moment.
#[derive(Clone, Debug)]
pub struct LoadMeter {
    handler_s: f64,
    in_hand_s: f64,
    measured: bool,
    arrivals_per_s: f64,
    received_since: u64,
    rated_at: Duration,
    in_flight: u32,
    backlog: u64,
    throttled: bool,
}

impl LoadMeter {
    /// Creates a meter without measurements.
    pub fn new(now: Duration) -> Self {
        LoadMeter {
            handler_s: HANDLER_TIME_UNKNOWN.as_secs_f64(),
            in_hand_s: HANDLER_TIME_UNKNOWN.as_secs_f64(),
            measured: false,
            arrivals_per_s: 0.0,
            received_since: 0,
            rated_at: now,
            in_flight: 0,
            backlog: 0,
            throttled: false,
        }
    }

    /// Records a get that asked for `asked` messages and returned `got`. Fewer than `asked` prove
    /// that nothing more is visible; otherwise as many again may be visible.
    pub fn received(&mut self, asked: u32, got: u32) {
        self.in_flight = self.in_flight.saturating_add(got);
        self.received_since += u64::from(got);
        if got < asked {
            self.backlog = 0;
        } else {
            let taken = self.backlog.saturating_sub(u64::from(got));
            self.backlog = taken.max(u64::from(got));
        }
    }

    /// Records that a message was settled `in_hand` after its get; `handler_time` is `None` if the
    /// handler did not run.
    pub fn finished(&mut self, handler_time: Option<Duration>, in_hand: Duration) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(time) = handler_time {
            let weight = if self.measured { HANDLER_WEIGHT } else { 1.0 };
            self.handler_s += weight * (time.as_secs_f64() - self.handler_s);
            self.in_hand_s += weight * (in_hand.as_secs_f64() - self.in_hand_s);
            self.measured = true;
        }
    }

    /// Records the service's count, which includes messages in flight (DL22).
    pub fn depth(&mut self, count: u64) {
        self.backlog = count.saturating_sub(u64::from(self.in_flight));
    }

    /// Records a throttled request.
    pub fn throttled(&mut self) {
        self.throttled = true;
    }

    /// Returns the number of messages in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the estimated number of visible messages.
    pub fn backlog(&self) -> u64 {
        self.backlog
    }

    /// Returns the load at `now` and restarts the counts between two loads.
    pub fn load(&mut self, now: Duration, tasks: u32, requests_per_s: f64) -> Load {
        let passed_s = now.saturating_sub(self.rated_at).as_secs_f64();
        if passed_s >= RATE_WINDOW.as_secs_f64() {
            let rate = self.received_since as f64 / passed_s;
            self.arrivals_per_s += ARRIVALS_WEIGHT * (rate - self.arrivals_per_s);
            self.received_since = 0;
            self.rated_at = now;
        }
        Load {
            arrivals_per_s: self.arrivals_per_s,
            visible_backlog: self.backlog,
            handler_s: self.handler_s,
            in_hand_s: self.in_hand_s,
            in_flight: self.in_flight,
            tasks,
            requests_per_s,
            throttled: std::mem::take(&mut self.throttled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DL22: messages in flight are not waiting, although the service counts them.
    #[test]
    fn dl22_own_messages_are_no_backlog() {
        let mut meter = LoadMeter::new(Duration::ZERO);
        meter.received(8, 8);
        meter.depth(8);
        assert_eq!(meter.backlog(), 0);
        meter.depth(108);
        assert_eq!(meter.backlog(), 100);
        meter.received(8, 3);
        assert_eq!(meter.backlog(), 0, "a short get proves the queue empty");
    }

    /// A full get may be followed by as many messages again, a short one by none.
    #[test]
    fn a_get_updates_the_backlog() {
        for (counted, asked, got, waiting) in [
            (0, 8, 8, 8),
            (100, 8, 8, 92),
            (10, 8, 8, 8),
            (100, 8, 7, 0),
            (100, 8, 0, 0),
        ] {
            let mut meter = LoadMeter::new(Duration::ZERO);
            meter.depth(counted);
            meter.received(asked, got);
            let found = (meter.backlog(), meter.in_flight());
            assert_eq!(found, (waiting, got), "{got} of {asked} and {counted}");
        }
    }

    /// The mean of the previous rate and the rate since the last load, over at least half a second.
    #[test]
    fn arrivals_are_counted_over_the_time_that_passed() {
        for (passed_ms, arrivals_per_s) in [(499, 0.0), (500, 32.0), (2_000, 8.0)] {
            let mut meter = LoadMeter::new(Duration::ZERO);
            meter.received(32, 32);
            let load = meter.load(Duration::from_millis(passed_ms), 1, 500.0);
            assert_eq!(load.arrivals_per_s, arrivals_per_s, "{passed_ms} ms");
        }
    }

    #[test]
    fn rates_and_times_are_smoothed() {
        let mut meter = LoadMeter::new(Duration::ZERO);
        meter.received(32, 32);
        let load = meter.load(Duration::from_secs(1), 1, 500.0);
        assert_eq!((load.arrivals_per_s, load.in_flight), (16.0, 32));
        let s = Duration::from_secs;
        meter.finished(Some(s(2)), s(3));
        meter.finished(Some(s(1)), s(2));
        meter.throttled();
        let load = meter.load(Duration::from_secs(2), 1, 500.0);
        assert_eq!((load.arrivals_per_s, load.in_flight), (8.0, 30));
        assert!((load.handler_s - 1.8).abs() < 1e-9 && load.throttled);
        assert!((load.in_hand_s - 2.8).abs() < 1e-9);
        assert!(!meter.load(Duration::from_secs(3), 1, 500.0).throttled);
    }
}
