//! The time of a recording at a target whose clock nobody can set: every date is moved.
//!
//! Requests are sent at the recorded pace, by so many seconds later than they were recorded. A
//! target falls behind where it answers more slowly than the service did, and by parts of seconds,
//! as recordings know whole ones only: from there on the dates are moved by more.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::dates;

/// What lies farther from the recording than ten years holds, or does not, at any time.
const FAR_S: u64 = 10 * 365 * 24 * 3_600;
/// A target may fall behind by so much before the dates are moved anew: the clocks of the service
/// lay farther apart.
const BEHIND_S_MAX: u64 = 1;

/// How much later than recorded everything happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The recorded time of the first request.
    start: Timestamp,
    /// That of the latest so far.
    latest: Timestamp,
    /// In whole seconds, each one valid until the next was.
    offsets_s: Vec<i64>,
}

impl Timeline {
    /// The first request, recorded at `start`, is sent now.
    pub fn new(start: Timestamp, now: Timestamp) -> Timeline {
        let start = start.floor_s();
        Timeline {
            start,
            latest: start,
            offsets_s: vec![seconds_between(start, now)],
        }
    }

    /// When something happens now that was recorded at this time.
    pub fn time(&self, recorded: Timestamp) -> Timestamp {
        let latest = self.offsets_s.last().copied().unwrap_or_default();
        self.moved(recorded, latest)
    }

    /// How long to wait before the request that was recorded at this time: as long as passed in the
    /// recording since the one before, however long that took here. What was to end meanwhile has
    /// ended, and nothing else.
    pub fn follow(&mut self, recorded: Timestamp, now: Timestamp) -> Duration {
        let wait = recorded.floor_s().since(self.latest);
        self.latest = self.latest.max(recorded.floor_s());
        let then = now.plus(wait);
        if then.since(self.time(self.latest)).as_secs() > BEHIND_S_MAX {
            self.offsets_s.push(seconds_between(self.latest, then));
        }
        wait
    }

    /// A text with its dates as they are now.
    pub fn text(&self, recorded: &str) -> String {
        dates::in_text(recorded, |time| self.time(time))
    }

    /// The same for every time at which the text may have come to be: before the target fell behind
    /// and after. Only what differs from the recorded text.
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

/// Whole seconds from one time to another, later or earlier one.
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
    fn everything_is_later_or_earlier_by_the_same() {
        for now in [at(3_600), at(0), at(0).minus(Duration::from_secs(7_200))] {
            let timeline = Timeline::new(at(0), now.plus(Duration::from_millis(700)));
            assert_eq!(timeline.time(at(0)), now);
            assert_eq!(timeline.time(at(5)), now.plus_s(5));
            let ago = Duration::from_secs(60);
            assert_eq!(timeline.time(at(0).minus(ago)), now.minus(ago));
        }
    }

    #[test]
    fn what_lies_far_off_stays() {
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
            // A recorded clock that goes back does not.
            (at(1), at(102).plus(half), 0),
            (at(60), at(103), 58),
        ] {
            let wait = timeline.follow(recorded, now);
            assert_eq!(wait.as_secs(), wait_s, "{recorded}");
            assert_eq!(timeline.time(at(0)), at(100));
        }
    }

    #[test]
    fn a_slow_target_moves_the_rest_and_what_came_before_still_counts() {
        let mut timeline = Timeline::new(at(0), at(100));
        assert_eq!(timeline.follow(at(1), at(105)).as_secs(), 1);
        assert_eq!(timeline.time(at(1)), at(106));
        assert_eq!(timeline.follow(at(2), at(106)).as_secs(), 1);
        let texts = timeline.texts(&at(0).iso_s());
        assert_eq!(texts, [at(105).iso_s(), at(100).iso_s()]);
    }
}
