//! Points in time, and how Azure Storage writes them.
//!
//! A [`Timestamp`] counts ticks of 100 ns since 0001-01-01T00:00:00Z. Azure's ETags are such counts
//! in hexadecimal, and its snapshot ids are such times with seven fractional digits, so one type
//! serves as clock, ETag, snapshot id and version id.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Ticks in a second: one tick is 100 ns.
pub const TICKS_PER_SECOND: u64 = 10_000_000;
/// Ticks from 0001-01-01 to the Unix epoch.
pub const UNIX_EPOCH_TICKS: u64 = 621_355_968_000_000_000;
/// Seconds in a day.
pub const DAY_S: u64 = 86_400;
const DAYS_FROM_0001_TO_1970: i64 = 719_162;

/// A point in time, in 100 ns ticks since 0001-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

/// A date and time of day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    ticks: u32,
}

impl Civil {
    /// Writes `00:57:59`.
    fn push_time_of_day(&self, text: &mut String) {
        push_digits::<2>(text, self.hour);
        text.push(':');
        push_digits::<2>(text, self.minute);
        text.push(':');
        push_digits::<2>(text, self.second);
    }
}

impl Timestamp {
    /// The last time that Azure can represent, used as "never expires":
    /// 9999-12-31T23:59:59.9999999Z.
    pub const MAX: Timestamp = Timestamp(3_155_378_975_999_999_999);
    /// 0001-01-01T00:00:00Z, the first time.
    pub const MIN: Timestamp = Timestamp(0);
    /// 1601-01-01T00:00:00Z, the epoch of Windows file times. "FILETIME structure".
    pub const WINDOWS_EPOCH: Timestamp = Timestamp(504_911_232_000_000_000);
    /// 1970-01-01T00:00:00Z, the Unix epoch.
    pub const UNIX_EPOCH: Timestamp = Timestamp(UNIX_EPOCH_TICKS);

    /// Returns the time as Windows counts it: ticks since 1601; 0 for earlier times.
    pub const fn filetime(self) -> u64 {
        self.0.saturating_sub(Self::WINDOWS_EPOCH.0)
    }

    /// Converts ticks since 0001-01-01; values beyond the year 9999 become [`Timestamp::MAX`].
    pub const fn from_ticks(ticks: u64) -> Self {
        if ticks > Self::MAX.0 {
            Self::MAX
        } else {
            Timestamp(ticks)
        }
    }

    /// Returns the ticks since 0001-01-01.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Converts whole seconds since the Unix epoch.
    pub const fn from_unix_s(seconds: u64) -> Self {
        Self::from_ticks(UNIX_EPOCH_TICKS.saturating_add(seconds.saturating_mul(TICKS_PER_SECOND)))
    }

    /// Converts a duration since the Unix epoch.
    pub fn from_unix(since_epoch: Duration) -> Self {
        Self::UNIX_EPOCH.plus(since_epoch)
    }

    /// Returns the whole seconds since the Unix epoch, 0 before it.
    pub const fn unix_s(self) -> u64 {
        self.0.saturating_sub(UNIX_EPOCH_TICKS) / TICKS_PER_SECOND
    }

    /// Adds a duration; the result is at most [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let ticks = u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX);
        Self::from_ticks(self.0.saturating_add(ticks))
    }

    /// Adds seconds; the result is at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn plus_s(self, seconds: u64) -> Self {
        Self::from_ticks(
            self.0
                .saturating_add(seconds.saturating_mul(TICKS_PER_SECOND)),
        )
    }

    /// Adds ticks; the result is at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn plus_ticks(self, ticks: u64) -> Self {
        Self::from_ticks(self.0.saturating_add(ticks))
    }

    /// Subtracts a duration; the result is at least [`Timestamp::MIN`].
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let ticks = u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_sub(ticks))
    }

    /// Returns the duration since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let ticks = self.0.saturating_sub(earlier.0);
        Duration::new(
            ticks / TICKS_PER_SECOND,
            (ticks % TICKS_PER_SECOND) as u32 * 100,
        )
    }

    /// Rounds down to a whole second, the precision of an RFC 1123 header.
    #[must_use]
    pub const fn floor_s(self) -> Self {
        Timestamp(self.0 - self.0 % TICKS_PER_SECOND)
    }

    /// Returns `Thu, 09 May 2019 00:57:59 GMT`, as in `Date` and `Last-Modified`.
    pub fn rfc1123(self) -> String {
        const DAY: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        const MONTH: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let c = self.civil();
        let day = DAY[(self.0 / TICKS_PER_SECOND / DAY_S % 7) as usize];
        let month = MONTH[c.month as usize - 1];
        let mut text = String::with_capacity("Thu, 09 May 2019 00:57:59 GMT".len());
        text.extend([day, ", "]);
        push_digits::<2>(&mut text, c.day);
        text.extend([" ", month, " "]);
        push_digits::<4>(&mut text, c.year);
        text.push(' ');
        c.push_time_of_day(&mut text);
        text.push_str(" GMT");
        text
    }

    /// Returns `2019-05-09T00:57:59.1234567Z`, as in snapshot ids, version ids and error times.
    pub fn iso_ticks(self) -> String {
        let mut text = self.iso_head();
        text.push('.');
        push_digits::<7>(&mut text, self.civil().ticks);
        text.push('Z');
        text
    }

    /// Returns `2019-05-09T00:57:59Z`.
    pub fn iso_s(self) -> String {
        let mut text = self.iso_head();
        text.push('Z');
        text
    }

    fn iso_head(self) -> String {
        let c = self.civil();
        let mut text = String::with_capacity("2019-05-09T00:57:59.1234567Z".len());
        push_digits::<4>(&mut text, c.year);
        text.push('-');
        push_digits::<2>(&mut text, c.month);
        text.push('-');
        push_digits::<2>(&mut text, c.day);
        text.push('T');
        c.push_time_of_day(&mut text);
        text
    }

    /// Parses an RFC 1123 date (`Thu, 09 May 2019 00:57:59 GMT`). Returns `None` for anything else.
    pub fn parse_rfc1123(text: &str) -> Option<Self> {
        const MONTH: [&str; 12] = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ];
        let rest = text.trim().split_once(',').map(|(_, rest)| rest.trim())?;
        let mut parts = rest.split_ascii_whitespace();
        let day = number(parts.next()?)?;
        let name = parts.next()?.to_ascii_lowercase();
        let month = MONTH.iter().position(|m| *m == name)? as u32 + 1;
        let year = i64::from(number(parts.next()?)?);
        let mut time = parts.next()?.split(':');
        let (hour, minute, second) = (
            number(time.next()?)?,
            number(time.next()?)?,
            number(time.next()?)?,
        );
        if time.next().is_some() || !matches!(parts.next(), Some("GMT" | "UTC" | "+0000")) {
            return None;
        }
        from_civil(Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ticks: 0,
        })
    }

    /// Parses a time with date, time of day and zone, such as the time of a snapshot or version:
    /// `2019-10-02T16:42:30.9555693Z`.
    pub fn parse_whole(text: &str) -> Option<Self> {
        let is_whole = text.contains(['T', 't']) && text.ends_with(['Z', 'z']);
        Self::parse_iso(text).filter(|_| is_whole)
    }

    /// Parses the ISO 8601 forms of the SAS and ACL documents: a date, `..hh:mmZ`, `..hh:mm:ssZ`,
    /// or with one to seven fractional digits. Also accepts a numeric offset (`+01:00`). Returns
    /// `None` for anything else.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, time) = match text.split_once(['T', 't']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [.., b'-', _, _, b'-', _, _] = date.as_bytes() else {
            return None;
        };
        let (year, month, day) = (
            number(date.get(..4)?)?,
            number(date.get(5..7)?)?,
            number(date.get(8..10)?)?,
        );
        if date.len() != 10 {
            return None;
        }
        let mut civil = Civil {
            year: i64::from(year),
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            ticks: 0,
        };
        let Some(time) = time else {
            return from_civil(civil);
        };
        let (clock, offset_s) = split_zone(time)?;
        let mut parts = clock.split(':');
        civil.hour = number(parts.next()?)?;
        civil.minute = number(parts.next()?)?;
        if let Some(second) = parts.next() {
            let (whole, fraction) = second.split_once('.').unwrap_or((second, ""));
            civil.second = number(whole)?;
            civil.ticks = fraction_ticks(fraction)?;
        }
        if parts.next().is_some() {
            return None;
        }
        let local = from_civil(civil)?;
        let shift = Duration::from_secs(offset_s.unsigned_abs());
        Some(if offset_s > 0 {
            local.minus(shift)
        } else {
            local.plus(shift)
        })
    }

    fn civil(self) -> Civil {
        let seconds = self.0 / TICKS_PER_SECOND;
        let (year, month, day) = date_of((seconds / DAY_S) as i64);
        let in_day = (seconds % DAY_S) as u32;
        Civil {
            year,
            month,
            day,
            hour: in_day / 3_600,
            minute: in_day / 60 % 60,
            second: in_day % 60,
            ticks: (self.0 % TICKS_PER_SECOND) as u32,
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iso_ticks())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iso_ticks())
    }
}

/// Writes a number with leading zeros. Every answer has several dates, and the standard library's
/// formatting took a tenth of the time of an answer.
fn push_digits<const DIGITS: usize>(text: &mut String, number: impl Into<i64>) {
    let mut number = number.into();
    let mut digits = [0; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text.extend(digits.map(char::from));
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() || text.len() > 4 {
        return None;
    }
    text.bytes().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u32::from(byte - b'0'))
    })
}

fn fraction_ticks(fraction: &str) -> Option<u32> {
    if fraction.is_empty() {
        return Some(0);
    }
    let digits = fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit());
    let seven: String = fraction.chars().chain("0000000".chars()).take(7).collect();
    digits.then(|| seven.parse().ok()).flatten()
}

/// Splits `12:30:00Z` or `12:30:00+01:00` into the time of day and the offset in seconds.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (clock, zone) = time.split_at(at);
    let (hours, minutes) = zone[1..].split_once(':')?;
    let offset_s = i64::from(number(hours)? * 3_600 + number(minutes)? * 60);
    Some((
        clock,
        if zone.starts_with('-') {
            -offset_s
        } else {
            offset_s
        },
    ))
}

/// Converts a day counted from 0001-01-01 to a date (Howard Hinnant's civil-from-days, eras of 400
/// years).
fn date_of(days_since_0001: i64) -> (i64, u32, u32) {
    let z = days_since_0001 - DAYS_FROM_0001_TO_1970 + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_to(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted_month = i64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 + DAYS_FROM_0001_TO_1970
}

fn from_civil(c: Civil) -> Option<Timestamp> {
    let in_range = (1..=9999).contains(&c.year)
        && (1..=12).contains(&c.month)
        && c.day >= 1
        && c.hour < 24
        && c.minute < 60
        && c.second < 60;
    if !in_range {
        return None;
    }
    let days = days_to(c.year, c.month, c.day);
    // A day that the month does not have converts back to another date.
    if date_of(days) != (c.year, c.month, c.day) {
        return None;
    }
    let seconds = days as u64 * DAY_S
        + u64::from(c.hour) * 3_600
        + u64::from(c.minute) * 60
        + u64::from(c.second);
    Some(Timestamp(seconds * TICKS_PER_SECOND + u64::from(c.ticks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_and_parses_known_dates() {
        let t = Timestamp::from_unix_s(1_557_363_479);
        assert_eq!(t.rfc1123(), "Thu, 09 May 2019 00:57:59 GMT");
        assert_eq!(t.iso_s(), "2019-05-09T00:57:59Z");
        assert_eq!(
            Timestamp::parse_rfc1123("Thu, 09 May 2019 00:57:59 GMT"),
            Some(t)
        );
        assert_eq!(Timestamp::parse_iso("2019-05-09T00:57:59Z"), Some(t));
        assert_eq!(Timestamp::parse_iso("2019-05-09T01:57:59+01:00"), Some(t));
        assert_eq!(Timestamp::MAX.iso_ticks(), "9999-12-31T23:59:59.9999999Z");
        assert_eq!(Timestamp::MAX.rfc1123(), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(Timestamp::MIN.iso_s(), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn parses_the_forms_of_the_acl_document() {
        for (text, expected) in [
            ("2019-05-09", Some("2019-05-09T00:00:00.0000000Z")),
            ("2019-05-09T10:20Z", Some("2019-05-09T10:20:00.0000000Z")),
            (
                "2019-05-09T10:20:30.5Z",
                Some("2019-05-09T10:20:30.5000000Z"),
            ),
            (
                "2019-05-09T10:20:30.1234567Z",
                Some("2019-05-09T10:20:30.1234567Z"),
            ),
            ("2019-02-29", None),
            ("2019-13-01", None),
            ("19-0005-09", None),
            ("2019-05-0ü", None),
            ("2019-05-09T10:20", None),
            ("2019-05-09T24:00Z", None),
            ("09.05.2019", None),
            ("", None),
        ] {
            assert_eq!(
                Timestamp::parse_iso(text)
                    .map(Timestamp::iso_ticks)
                    .as_deref(),
                expected
            );
        }
    }

    proptest! {
        #[test]
        fn both_forms_parse_back(ticks in 0..=Timestamp::MAX.ticks()) {
            let t = Timestamp::from_ticks(ticks);
            prop_assert_eq!(Timestamp::parse_iso(&t.iso_ticks()), Some(t));
            prop_assert_eq!(Timestamp::parse_rfc1123(&t.rfc1123()), Some(t.floor_s()));
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,40}") {
            let _ = Timestamp::parse_iso(&text);
            let _ = Timestamp::parse_rfc1123(&text);
        }
    }
}
