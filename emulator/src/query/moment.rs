//! Timestamps of the query language: parsing ISO 8601 of any precision, arithmetic and formatting.
//!
//! Source: "Query acceleration SQL language reference", date functions; W3C's note on formats of
//! date and time.

use smalt_protocol::Timestamp;
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

use super::sql::DatePart;

/// A point in time with its original UTC offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(OffsetDateTime);

const MINUTES_PER_HOUR: i32 = 60;
const SECONDS_PER_MINUTE: i32 = 60;
const MONTHS_PER_YEAR: i64 = 12;

impl Moment {
    /// Converts a timestamp; `None` if it cannot be represented.
    pub fn of(now: Timestamp) -> Option<Self> {
        Self::parse(&now.iso_ticks())
    }

    /// Parses times such as `2007T`, `2007-02`, `2007-02-23T12:14Z`,
    /// `2007-02-23T12:14:33.079-08:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, rest) = match text.split_once(['T', 't', ' ']) {
            Some((date, rest)) => (date, rest),
            None => (text, ""),
        };
        let (time, offset) = split_offset(rest)?;
        let moment = PrimitiveDateTime::new(parse_date(date)?, parse_time(time)?);
        Some(Moment(moment.assume_offset(offset)))
    }

    /// Adds a quantity of a date part; `None` on overflow.
    pub fn plus(self, part: DatePart, quantity: i64) -> Option<Self> {
        let duration = match part {
            DatePart::Year => return self.plus_months(quantity.checked_mul(MONTHS_PER_YEAR)?),
            DatePart::Month => return self.plus_months(quantity),
            DatePart::Day => Duration::days(checked(quantity, 86_400)?),
            DatePart::Hour | DatePart::TimezoneHour => Duration::hours(checked(quantity, 3_600)?),
            DatePart::Minute | DatePart::TimezoneMinute => {
                Duration::minutes(checked(quantity, 60)?)
            }
            DatePart::Second => Duration::seconds(quantity),
        };
        self.0.checked_add(duration).map(Moment)
    }

    /// Adds days, including fractions; `None` on overflow.
    pub fn plus_days(self, days: f64) -> Option<Self> {
        let duration = Duration::checked_seconds_f64(days * 86_400.0)?;
        self.0.checked_add(duration).map(Moment)
    }

    /// Adds months and keeps the day and time; uses the last day of the month if the day does not
    /// exist.
    fn plus_months(self, months: i64) -> Option<Self> {
        let date = self.0.date();
        let month =
            i64::from(date.year()) * MONTHS_PER_YEAR + i64::from(u8::from(date.month())) - 1;
        let month = month.checked_add(months)?;
        let year = i32::try_from(month.div_euclid(MONTHS_PER_YEAR)).ok()?;
        let number = u8::try_from(month.rem_euclid(MONTHS_PER_YEAR) + 1).ok()?;
        let month = Month::try_from(number).ok()?;
        let day = date.day().min(month.length(year));
        let date = Date::from_calendar_date(year, month, day).ok()?;
        Some(Moment(self.0.replace_date(date)))
    }

    /// Returns the number of whole parts until `later`; negative if it is earlier.
    pub fn until(self, later: Moment, part: DatePart) -> i64 {
        let seconds = (later.0 - self.0).whole_seconds();
        match part {
            DatePart::Year => self.months_until(later) / MONTHS_PER_YEAR,
            DatePart::Month => self.months_until(later),
            DatePart::Day => seconds / 86_400,
            DatePart::Hour | DatePart::TimezoneHour => seconds / 3_600,
            DatePart::Minute | DatePart::TimezoneMinute => seconds / 60,
            DatePart::Second => seconds,
        }
    }

    fn months_until(self, later: Moment) -> i64 {
        if later < self {
            return -later.months_until(self);
        }
        let count = |moment: OffsetDateTime| {
            i64::from(moment.year()) * MONTHS_PER_YEAR + i64::from(u8::from(moment.month()))
        };
        let there = later.0.to_offset(self.0.offset());
        let months = count(there) - count(self.0);
        let is_whole = self
            .plus_months(months)
            .is_some_and(|reached| reached <= later);
        months - i64::from(!is_whole)
    }

    /// Returns one part of the time.
    pub fn part(self, part: DatePart) -> i64 {
        let offset_minutes = i64::from(self.0.offset().whole_minutes());
        let minutes_per_hour = i64::from(MINUTES_PER_HOUR);
        match part {
            DatePart::Year => self.0.year().into(),
            DatePart::Month => u8::from(self.0.month()).into(),
            DatePart::Day => self.0.day().into(),
            DatePart::Hour => self.0.hour().into(),
            DatePart::Minute => self.0.minute().into(),
            DatePart::Second => self.0.second().into(),
            DatePart::TimezoneHour => offset_minutes / minutes_per_hour,
            DatePart::TimezoneMinute => offset_minutes % minutes_per_hour,
        }
    }

    /// Returns the milliseconds since 1970.
    pub fn unix_ms(self) -> i64 {
        i64::try_from(self.0.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Formats as ISO 8601, with the fraction only as long as necessary.
    pub fn iso(self) -> String {
        let mut text = self.format("yyyy-MM-ddTHH:mm:ss").unwrap_or_default();
        let fraction = format!("{:09}", self.0.nanosecond());
        let fraction = fraction.trim_end_matches('0');
        if !fraction.is_empty() {
            text.push('.');
            text.push_str(fraction);
        }
        text.push_str(&self.offset(3, true));
        text
    }

    /// Formats by a pattern such as `MMMM d, y`. Other characters, `T` and text in single quotes
    /// are literal. Returns `None` for an unknown letter.
    pub fn format(self, pattern: &str) -> Option<String> {
        let mut text = String::new();
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            if first == '\'' {
                let end = rest[1..].find('\'')?;
                text.push_str(&rest[1..=end]);
                rest = &rest[end + 2..];
                continue;
            }
            let count = rest.chars().take_while(|c| *c == first).count();
            if first.is_ascii_alphabetic() && first != 'T' {
                text.push_str(&self.field(first, count)?);
            } else {
                text.extend(std::iter::repeat_n(first, count));
            }
            rest = &rest[count * first.len_utf8()..];
        }
        Some(text)
    }

    fn field(self, letter: char, count: usize) -> Option<String> {
        let number = |value: u32| match count {
            1 => Some(value.to_string()),
            2 => Some(format!("{value:02}")),
            _ => None,
        };
        let (hour, month) = (self.0.hour(), self.0.month());
        match (letter, count) {
            ('y', 2) => Some(format!("{:02}", self.0.year().rem_euclid(100))),
            ('y', 1 | 4) => Some(format!("{:04}", self.0.year())),
            ('M', 3) => Some(month.to_string().chars().take(3).collect()),
            ('M', 4) => Some(month.to_string()),
            ('M', _) => number(u8::from(month).into()),
            ('d', _) => number(self.0.day().into()),
            ('a', 1) => Some(if hour < 12 { "AM" } else { "PM" }.to_owned()),
            ('h', _) => number(u32::from((hour + 11) % 12 + 1)),
            ('H', _) => number(hour.into()),
            ('m', _) => number(self.0.minute().into()),
            ('s', _) => number(self.0.second().into()),
            ('S', 1..=9) => Some(format!("{:09}", self.0.nanosecond())[..count].to_owned()),
            ('X', 1..=5) => Some(self.offset(count, true)),
            ('x', 1..=5) => Some(self.offset(count, false)),
            _ => None,
        }
    }

    /// Formats the offset as `+04`, `+0430` or `+04:30`, by the number of letters; as `Z` for UTC
    /// if `has_z`.
    fn offset(self, letters: usize, has_z: bool) -> String {
        let minutes = i32::from(self.0.offset().whole_minutes());
        if minutes == 0 && has_z {
            return "Z".to_owned();
        }
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, rest) = (
            minutes.abs() / MINUTES_PER_HOUR,
            minutes.abs() % MINUTES_PER_HOUR,
        );
        match letters {
            1 => format!("{sign}{hours:02}"),
            2 | 4 => format!("{sign}{hours:02}{rest:02}"),
            _ => format!("{sign}{hours:02}:{rest:02}"),
        }
    }
}

/// Returns the quantity, or `None` if its seconds overflow.
fn checked(quantity: i64, seconds: i64) -> Option<i64> {
    quantity.checked_mul(seconds).map(|_| quantity)
}

fn number<T: std::str::FromStr>(text: &str, digits: usize) -> Option<T> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let year = number(parts.next()?, 4)?;
    let month: u8 = parts.next().map_or(Some(1), |part| number(part, 2))?;
    let day = parts.next().map_or(Some(1), |part| number(part, 2))?;
    if parts.next().is_some() {
        return None;
    }
    Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()
}

fn parse_time(text: &str) -> Option<Time> {
    if text.is_empty() {
        return Some(Time::MIDNIGHT);
    }
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = parts.next().unwrap_or("00");
    if parts.next().is_some() {
        return None;
    }
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    // Digits beyond nanoseconds are dropped.
    let nanoseconds: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let nanosecond = is_fraction.then(|| nanoseconds.parse().ok()).flatten()?;
    Time::from_hms_nano(hour, minute, number(second, 2)?, nanosecond).ok()
}

/// Splits the time of day and the offset; without an offset the time is UTC.
fn split_offset(text: &str) -> Option<(&str, UtcOffset)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, UtcOffset::UTC));
    }
    let Some(at) = text.find(['+', '-']) else {
        return Some((text, UtcOffset::UTC));
    };
    let (time, offset) = text.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes): (i32, i32) = (number(hours, 2)?, number(minutes, 2)?);
    let minutes = sign * (hours * MINUTES_PER_HOUR + minutes);
    let offset = UtcOffset::from_whole_seconds(minutes * SECONDS_PER_MINUTE).ok()?;
    (!time.is_empty()).then_some((time, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        Moment::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn reads_and_writes_iso_8601() {
        for (text, iso) in [
            ("2007T", "2007-01-01T00:00:00Z"),
            ("2007-02", "2007-02-01T00:00:00Z"),
            ("2010-01-01T", "2010-01-01T00:00:00Z"),
            ("1969-07-20T20:18Z", "1969-07-20T20:18:00Z"),
            ("2017-01-02T03:04:05.006Z", "2017-01-02T03:04:05.006Z"),
            ("2018-11-09T01:00:23-08:00", "2018-11-09T01:00:23-08:00"),
        ] {
            assert_eq!(moment(text).iso(), iso);
        }
        for wrong in [
            "",
            "07",
            "2007-13",
            "2007-02-30",
            "2007-01-01T25:00Z",
            "2007-01-01T1:00",
            "x",
        ] {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn adds_and_subtracts_date_parts() {
        let leap = moment("2020-01-31T10:00:00Z");
        assert_eq!(
            leap.plus(DatePart::Month, 1),
            Moment::parse("2020-02-29T10:00Z")
        );
        assert_eq!(
            leap.plus(DatePart::Year, -1),
            Moment::parse("2019-01-31T10:00Z")
        );
        assert_eq!(
            leap.plus(DatePart::Minute, 1),
            Moment::parse("2020-01-31T10:01Z")
        );
        for quantity in [i64::MAX, i64::MIN] {
            assert_eq!(leap.plus(DatePart::Day, quantity), None);
            assert_eq!(leap.plus(DatePart::Year, quantity), None);
        }
        // The example of the language reference; the times are 14 h 30 min apart.
        let (from, to) = ("2018-11-09T00:00+05:30", "2018-11-09T01:00:23-08:00");
        assert_eq!(moment(from).until(moment(to), DatePart::Hour), 14);
        assert_eq!(
            moment("2020-01-31").until(moment("2020-02-29"), DatePart::Month),
            1
        );
        assert_eq!(
            moment("2020-01-31").until(moment("2020-02-28"), DatePart::Month),
            0
        );
        assert_eq!(
            moment("2021-01-02").until(moment("2020-01-01"), DatePart::Year),
            -1
        );
    }

    #[test]
    fn extracts_parts_and_formats_patterns() {
        let time = moment("1969-07-05T09:08:07.06+05:30");
        for (part, expected) in [
            (DatePart::Year, 1969),
            (DatePart::Second, 7),
            (DatePart::TimezoneHour, 5),
            (DatePart::TimezoneMinute, 30),
        ] {
            assert_eq!(time.part(part), expected);
        }
        for (pattern, expected) in [
            ("MMMM d, y", Some("July 5, 1969")),
            ("yy-MM-dd MMM", Some("69-07-05 Jul")),
            ("h:mm a H HH", Some("9:08 AM 9 09")),
            ("s ss S SSS", Some("7 07 0 060")),
            ("X XX xxx x", Some("+05 +0530 +05:30 +05")),
            ("yyyy'q'", Some("1969q")),
            ("Q", None),
            ("yyy", None),
            ("'open", None),
        ] {
            assert_eq!(time.format(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
