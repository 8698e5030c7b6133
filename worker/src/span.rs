//! Durations in the forms `30s`, `10m`, `1h30m`, `7d`, and ISO 8601 `P7D`, `PT90M`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Maximum duration: a thousand years. A longer one is surely a mistake.
const LONGEST: Duration = Duration::from_secs(1_000 * 365 * 86_400);

/// The string is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration; use 30s, 10m, 1h30m, 7d or ISO 8601 such as P7D")]
pub struct InvalidSpan(pub String);

/// A duration in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).map(Span).map_err(de::Error::custom)
    }
}

/// Parses either form. The short form allows spaces between a number and its unit.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(smalt_worker::span::parse("10m"), Ok(Duration::from_secs(600)));
/// assert_eq!(smalt_worker::span::parse("P1DT2H"), Ok(Duration::from_secs(93_600)));
/// ```
pub fn parse(text: &str) -> Result<Duration, InvalidSpan> {
    let trimmed = text.trim();
    let read = match trimmed.strip_prefix('P') {
        Some(_) => parse_iso8601(trimmed),
        None => parse_short(trimmed),
    };
    read.ok_or_else(|| InvalidSpan(text.to_owned()))
}

/// Parses an ISO 8601 duration of weeks, days, hours, minutes and seconds. Rejects years and
/// months, which have no fixed length: no blob should be lost over the length of February.
pub fn parse_iso8601(text: &str) -> Option<Duration> {
    let rest = text.strip_prefix('P')?;
    if rest.contains(char::is_whitespace) {
        return None;
    }
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let days = sum(date, &[("W", 604_800_000), ("D", 86_400_000)])?;
    let clock = sum(time, &[("H", 3_600_000), ("M", 60_000), ("S", 1_000)])?;
    bounded(days.checked_add(clock)?)
}

fn parse_short(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    const UNITS: [(&str, u64); 6] = [
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    bounded(sum(text, &UNITS)?)
}

/// Adds up `<number><unit>` parts. Each unit may occur once, in the order of the table.
fn sum(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let mut rest = text;
    let mut next_unit = 0;
    let mut total_ms: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value: u64 = rest.get(..digits)?.parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let at = units
            .iter()
            .position(|(name, _)| *name == &rest[..letters])?;
        if at < next_unit {
            return None;
        }
        next_unit = at + 1;
        rest = &rest[letters..];
        total_ms = total_ms.checked_add(value.checked_mul(units[at].1)?)?;
    }
    Some(total_ms)
}

fn bounded(ms: u64) -> Option<Duration> {
    let span = Duration::from_millis(ms);
    (span <= LONGEST).then_some(span)
}

/// Formats as the short form, `1h30m`, `45s` or `250ms`, which [`parse`] accepts.
pub fn format(span: Duration) -> String {
    let mut rest_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if rest_ms == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, ms) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ] {
        let count = rest_ms / ms;
        rest_ms %= ms;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_parsed_and_other_texts_rejected() {
        for (text, expected_ms) in [
            ("30s", Some(30_000)),
            ("250ms", Some(250)),
            ("5 m", Some(300_000)),
            ("1w", Some(604_800_000)),
            ("10m", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("7d", Some(604_800_000)),
            ("100ms", Some(100)),
            ("0s", Some(0)),
            ("P7D", Some(604_800_000)),
            ("P1W", Some(604_800_000)),
            ("PT1H30M", Some(5_400_000)),
            ("P1DT1S", Some(86_401_000)),
            ("", None),
            ("P", None),
            ("PT", None),
            ("P1DT", None),
            ("P1M", None),
            ("P1Y", None),
            ("PT1D", None),
            ("5", None),
            ("s", None),
            ("-5s", None),
            ("-1s", None),
            ("1.5s", None),
            ("1 0s", None),
            ("5 minutes", None),
            ("P7 D", None),
            ("18446744073709551615d", None),
            ("1s1m", None),
            ("99999999999999999999s", None),
            ("9999999999d", None),
        ] {
            let read = parse(text).ok().map(|d| d.as_millis() as u64);
            assert_eq!(read, expected_ms, "{text}");
        }
    }

    #[test]
    fn the_short_form_names_each_unit_once() {
        for (ms, shown) in [
            (0, "0s"),
            (250, "250ms"),
            (90_000, "1m30s"),
            (172_800_000, "2d"),
            (5_400_000, "1h30m"),
        ] {
            assert_eq!(format(Duration::from_millis(ms)), shown);
        }
    }

    proptest! {
        #[test]
        fn formatted_durations_parse_to_the_same_value(ms in 0u64..10_000_000_000) {
            let span = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format(span)), Ok(span));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,30}") {
            let _ = parse(&text);
        }
    }
}
