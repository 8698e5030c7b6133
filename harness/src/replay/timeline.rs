//! The time of a recording at a target whose clock cannot be set: every date is shifted.
//!
//! Requests are sent at the recorded pace, later than they were recorded by a constant offset. A
//! target falls behind when it answers more slowly than the service did, and by fractions of a
//! second, because recordings contain whole seconds only; from then on the offset is larger.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::dates;

/// Seconds from the recording beyond which a date is not shifted (ten years): it is as far away at
/// any time.
const FAR_S: u64 = 10 * 365 * 24 * 3_600;
/// Seconds by which a target may fall behind before the offset changes: the clocks of the service
/// differed by more.
const BEHIND_S_MAX: u64 = 1;

/// The offset between recorded and live times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Recorded time of the first request.
    start: Timestamp,
    /// Latest recorded time so far.
    latest: Timestamp,
    /// Offsets in whole seconds, each valid until the next.
    offsets_s: Vec<i64>,
}

impl Timeline {
    /// Starts when the first request, recorded at `start`, is sent.
    pub fn new(start: Timestamp, now: Timestamp) -> Timeline {
        let start = start.floor_s();
        Timeline {
            start,
            latest: start,
            offsets_s: vec![seconds_between(start, now)],
        }
    }

    /// Returns the live time for a recorded one.
    pub fn time(&self, recorded: Timestamp) -> Timestamp {
        let latest = self.offsets_s.last().copied().unwrap_or_default();
        self.moved(recorded, latest)
    }

    /// Returns how long to wait before the request that was recorded at this time: as long as the
    /// recording waited since the previous request, whatever the target took. So everything has
    /// expired that had expired in the recording, and nothing else.
    pub fn follow(&mut self, recorded: Timestamp, now: Timestamp) -> Duration {
        let wait = recorded.floor_s().since(self.latest);
        self.latest = self.latest.max(recorded.floor_s());
        let then = now.plus(wait);
        if then.since(self.time(self.latest)).as_secs() > BEHIND_S_MAX {
            self.offsets_s.push(seconds_between(self.latest, then));
        }
        wait
    }

    /// Shifts the dates in a text by the current offset.
    pub fn text(&self, recorded: &str) -> String {
        dates::in_text(recorded, |time| self.time(time))
    }

    /// Shifts the dates in a text by every offset that may have applied to it. Returns only texts
    /// that differ from the recorded one.
    pub fn texts(&self, recorded: &str) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for offset_s in self.offsets_s.iter().rev() {
            let text = dates::in_text(recorded, |time| self.moved(time, *offset_s));
            if text != recorded && !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    fn moved(&self, time: Timestamp, offset_s: i64) -> Timestamp {
        let apart = time.since(self.start).max(self.start.since(time));
        if apart.as_secs() > FAR_S {
            return time;
        }
        if offset_s < 0 {
            time.minus(Duration::from_secs(offset_s.unsigned_abs()))
        } else {
            time.plus_s(offset_s.unsigned_abs())
        }
    }
}

/// Returns the whole seconds from one time to another; negative when `to` is earlier.
fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    let s = |later: Timestamp, earlier: Timestamp| {
        let s = later.floor_s().since(earlier.floor_s()).as_secs();
        i64::try_from(s).unwrap_or(i64::MAX)
    };
    s(to, from) - s(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 09 Sep 2001 01:46:40 GMT.
    const RECORDED_S: u64 = 1_000_000_000;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_unix_s(RECORDED_S + second)
    }

    #[test]
    fn all_dates_shift_by_the_same_offset() {
        for now in [at(3_600), at(0), at(0).minus(Duration::from_secs(7_200))] {
            let timeline = Timeline::new(at(0), now.plus(Duration::from_millis(700)));
            assert_eq!(timeline.time(at(0)), now);
            assert_eq!(timeline.time(at(5)), now.plus_s(5));
            let ago = Duration::from_secs(60);
            assert_eq!(timeline.time(at(0).minus(ago)), now.minus(ago));
        }
    }

    #[test]
    fn distant_dates_stay() {
        let timeline = Timeline::new(at(0), at(3_600));
        for far in [
            "9999-12-31T23:59:59Z",
            "2030-01-01T00:00:00Z",
            "1601-01-01T00:00:00Z",
        ] {
            assert_eq!(timeline.text(far), far);
            assert_eq!(timeline.texts(far), [""; 0]);
        }
        assert_eq!(
            timeline.text("2010-01-01T00:00:00Z"),
            "2010-01-01T01:00:00Z"
        );
    }

    #[test]
    fn the_recorded_pace_is_kept() {
        let mut timeline = Timeline::new(at(0), at(100));
        let half = Duration::from_millis(500);
        for (recorded, now, wait_s) in [
            (at(0), at(100), 0),
            (at(2), at(100).plus(half), 2),
            (at(2), at(102).plus(half), 0),
            // A recorded time that goes backwards does not move the clock.
            (at(1), at(102).plus(half), 0),
            (at(60), at(103), 58),
        ] {
            let wait = timeline.follow(recorded, now);
            assert_eq!(wait.as_secs(), wait_s, "{recorded}");
            assert_eq!(timeline.time(at(0)), at(100));
        }
    }

    #[test]
    fn a_slow_target_shifts_later_dates_and_earlier_offsets_still_count() {
        let mut timeline = Timeline::new(at(0), at(100));
        assert_eq!(timeline.follow(at(1), at(105)).as_secs(), 1);
        assert_eq!(timeline.time(at(1)), at(106));
        assert_eq!(timeline.follow(at(2), at(106)).as_secs(), 1);
        let texts = timeline.texts(&at(0).iso_s());
        assert_eq!(texts, [at(105).iso_s(), at(100).iso_s()]);
    }
}
