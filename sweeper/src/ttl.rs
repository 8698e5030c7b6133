//! Parses the `TimeToLive` metadata value.
//!
//! RFC 3339 is parsed strictly and independently of any culture (DS14): a time without a zone, a
//! day and month in national order, or a bare date is rejected. A blob with such a value is
//! reported, never deleted. Further formats are accepted only if configured. `P7D` counts from
//! Last-Modified.

use std::str::FromStr;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_worker::span;

/// A parsed `TimeToLive` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeToLive {
    /// Due at this instant.
    At(Timestamp),
    /// Due this long after the blob's Last-Modified.
    AfterLastModified(Duration),
}

impl TimeToLive {
    /// Returns the instant at which the blob is due.
    pub fn due(self, last_modified: Timestamp) -> Timestamp {
        match self {
            TimeToLive::At(instant) => instant,
            TimeToLive::AfterLastModified(span) => last_modified.plus(span),
        }
    }
}

/// A text format for instants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TtlFormat {
    /// `2026-11-21T10:00:00Z`, `2026-11-21T10:00:00.5+01:00`: the recommended format.
    Rfc3339,
    /// `Sat, 21 Nov 2026 10:00:00 GMT`.
    Rfc1123,
    /// Whole seconds since 1970.
    UnixSeconds,
    /// A pattern of `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss` and literal characters, in UTC.
    Pattern(String),
}

impl TtlFormat {
    /// Returns an instant in this format.
    pub fn example(&self) -> String {
        match self {
            TtlFormat::Rfc3339 => "2026-11-21T10:00:00Z".to_owned(),
            TtlFormat::Rfc1123 => "Sat, 21 Nov 2026 10:00:00 GMT".to_owned(),
            TtlFormat::UnixSeconds => "1795255200".to_owned(),
            TtlFormat::Pattern(pattern) => {
                let fields = FIELDS.iter().zip(["2026", "11", "21", "10", "00", "00"]);
                fields.fold(pattern.clone(), |text, (field, value)| {
                    text.replace(field, value)
                })
            }
        }
    }
}

/// Lists what a time to live may be, with an example of each.
pub fn examples(formats: &[TtlFormat]) -> String {
    let formats = formats
        .iter()
        .map(|format| format!(", `{}`", format.example()));
    format!("`P7D`{}", formats.collect::<String>())
}

impl std::fmt::Display for TtlFormat {
    /// Writes the name used in the configuration.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TtlFormat::Rfc3339 => "rfc3339",
            TtlFormat::Rfc1123 => "rfc1123",
            TtlFormat::UnixSeconds => "unix",
            TtlFormat::Pattern(pattern) => pattern,
        })
    }
}

/// The format name is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a TTL format; use rfc3339, rfc1123, unix or a pattern with yyyy, MM and dd, \
     such as `dd.MM.yyyy HH:mm:ss`"
)]
pub struct UnknownFormat(pub String);

impl FromStr for TtlFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "rfc3339" => Ok(TtlFormat::Rfc3339),
            "rfc1123" => Ok(TtlFormat::Rfc1123),
            "unix" => Ok(TtlFormat::UnixSeconds),
            pattern if ["yyyy", "MM", "dd"].iter().all(|f| pattern.contains(f)) => {
                Ok(TtlFormat::Pattern(pattern.to_owned()))
            }
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}

/// Parses a `TimeToLive` value. Returns `None` if no configured format matches; the caller reports
/// it.
pub fn parse(text: &str, formats: &[TtlFormat]) -> Option<TimeToLive> {
    read(text, formats).map(|(ttl, _)| ttl)
}

/// Parses as [`parse`] does, and returns the format that matched, or `None` for an ISO 8601
/// duration.
pub fn read<'a>(
    text: &str,
    formats: &'a [TtlFormat],
) -> Option<(TimeToLive, Option<&'a TtlFormat>)> {
    let text = text.trim();
    if text.starts_with('P') {
        let span = span::parse_iso8601(text)?;
        return Some((TimeToLive::AfterLastModified(span), None));
    }
    formats.iter().find_map(|format| {
        let at = parse_instant(text, format)?;
        Some((TimeToLive::At(at), Some(format)))
    })
}

fn parse_instant(text: &str, format: &TtlFormat) -> Option<Timestamp> {
    match format {
        TtlFormat::Rfc3339 => parse_rfc3339(text),
        TtlFormat::Rfc1123 => Timestamp::parse_rfc1123(text),
        TtlFormat::UnixSeconds => parse_unix(text),
        TtlFormat::Pattern(pattern) => parse_pattern(text, pattern),
    }
}

/// Requires date, `T`, time with seconds, and zone (RFC 3339 section 5.6).
fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    const SHAPE: &[u8; 19] = b"dddd-dd-ddTdd:dd:dd";
    let (date_time, tail) = text.split_at_checked(SHAPE.len())?;
    let shaped = SHAPE.iter().zip(date_time.as_bytes());
    let fits = shaped.into_iter().all(|(shape, byte)| match shape {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't'),
        literal => literal == byte,
    });
    let zone = match tail.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            (1..=9).contains(&digits).then(|| &fraction[digits..])?
        }
        None => tail,
    };
    (fits && is_zone(zone)).then(|| Timestamp::parse_iso(text))?
}

fn is_zone(zone: &str) -> bool {
    let bytes = zone.as_bytes();
    let number = |at: usize| -> Option<u32> { zone.get(at..at + 2)?.parse().ok() };
    match bytes {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit())
                && number(1).is_some_and(|hour| hour < 24)
                && number(4).is_some_and(|minute| minute < 60)
        }
        _ => false,
    }
}

fn parse_unix(text: &str) -> Option<Timestamp> {
    let digits = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok().map(Timestamp::from_unix_s))?
}

/// Fields of a pattern.
const FIELDS: [&str; 6] = ["yyyy", "MM", "dd", "HH", "mm", "ss"];

fn parse_pattern(text: &str, pattern: &str) -> Option<Timestamp> {
    let mut found = ["0000", "01", "01", "00", "00", "00"];
    let (mut text, mut pattern) = (text, pattern);
    while !pattern.is_empty() {
        if let Some(at) = FIELDS.iter().position(|f| pattern.starts_with(f)) {
            let width = FIELDS[at].len();
            let digits = text.get(..width)?;
            if !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            found[at] = digits;
            text = &text[width..];
            pattern = &pattern[width..];
        } else {
            let literal = pattern.chars().next()?;
            text = text.strip_prefix(literal)?;
            pattern = &pattern[literal.len_utf8()..];
        }
    }
    let [year, month, day, hour, minute, second] = found;
    let iso = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    text.is_empty().then(|| Timestamp::parse_iso(&iso))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_format_reads_its_example() {
        let names = ["rfc3339", "rfc1123", "unix", "dd.MM.yyyy HH:mm:ss"];
        for name in names {
            let format: TtlFormat = name.parse().unwrap();
            let example = format.example();
            let read = due(&example, &[name]);
            assert_eq!(read.as_deref(), Some("2026-11-21T10:00:00Z"), "{example}");
        }
        let formats = [TtlFormat::Rfc3339, TtlFormat::UnixSeconds];
        assert_eq!(
            examples(&formats),
            "`P7D`, `2026-11-21T10:00:00Z`, `1795255200`"
        );
    }

    fn due(text: &str, formats: &[&str]) -> Option<String> {
        let formats: Vec<TtlFormat> = formats.iter().map(|f| f.parse().unwrap()).collect();
        let modified = Timestamp::parse_iso("2026-01-01T00:00:00Z").unwrap();
        parse(text, &formats).map(|ttl| ttl.due(modified).iso_s())
    }

    /// DS14: no culture or zone shifts a date; anything other than RFC 3339 is rejected.
    #[test]
    fn rfc3339_is_parsed_strictly() {
        for (text, expected) in [
            ("2026-11-21T10:00:00Z", Some("2026-11-21T10:00:00Z")),
            ("2026-11-21t10:00:00z", Some("2026-11-21T10:00:00Z")),
            ("2026-11-21T10:00:00.25Z", Some("2026-11-21T10:00:00Z")),
            ("2026-11-21T10:00:00+02:00", Some("2026-11-21T08:00:00Z")),
            ("2026-11-21T10:00:00-02:00", Some("2026-11-21T12:00:00Z")),
            ("P7D", Some("2026-01-08T00:00:00Z")),
            ("PT1H", Some("2026-01-01T01:00:00Z")),
            ("2026-11-21T10:00:00", None),
            ("2026-11-21T10:00Z", None),
            ("2026-11-21", None),
            ("2026-11-21 10:00:00Z", None),
            ("2026-11-21T10:00:00.Z", None),
            ("2026-11-21T10:00:00+0200", None),
            // time-numoffset: hour 00 to 23, minute 00 to 59.
            ("2026-11-21T10:00:00+23:59", Some("2026-11-20T10:01:00Z")),
            ("2026-11-21T10:00:00+24:00", None),
            ("2026-11-21T10:00:00+25:00", None),
            ("2026-11-21T10:00:00-00:60", None),
            ("2026-11-21T10:00:00é", None),
            ("2026-11-21T10:00:0é", None),
            ("2026-02-29T10:00:00Z", None),
            ("01/02/2026 10:00:00", None),
            ("21.11.2026 10:00:00", None),
            ("1795255200", None),
            ("P1M", None),
            ("never", None),
            ("", None),
        ] {
            assert_eq!(due(text, &["rfc3339"]).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn further_formats_are_read_only_when_configured() {
        for (text, format, expected) in [
            (
                "Sat, 21 Nov 2026 10:00:00 GMT",
                "rfc1123",
                "2026-11-21T10:00:00Z",
            ),
            ("1795255200", "unix", "2026-11-21T10:00:00Z"),
            (
                "21.11.2026 10:00:00",
                "dd.MM.yyyy HH:mm:ss",
                "2026-11-21T10:00:00Z",
            ),
            ("20261121", "yyyyMMdd", "2026-11-21T00:00:00Z"),
        ] {
            assert_eq!(due(text, &["rfc3339"]), None, "{text}");
            assert_eq!(due(text, &["rfc3339", format]).as_deref(), Some(expected));
        }
        assert!("dd.MM".parse::<TtlFormat>().is_err());
        assert_eq!(due("21.11.2026 10:00:00x", &["dd.MM.yyyy HH:mm:ss"]), None);
    }

    /// Only whole seconds: a value in milliseconds would never be due.
    #[test]
    fn seconds_since_1970_are_digits_and_at_most_twelve() {
        for (text, expected) in [
            ("0", Some("1970-01-01T00:00:00Z")),
            ("1795255200", Some("2026-11-21T10:00:00Z")),
            ("001795255200", Some("2026-11-21T10:00:00Z")),
            ("1795255200000", None),
            ("+1795255200", None),
            ("-1", None),
            ("1795255200.5", None),
            ("", None),
        ] {
            assert_eq!(due(text, &["unix"]).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn formats_display_as_in_the_configuration() {
        for name in ["rfc3339", "rfc1123", "unix", "dd.MM.yyyy HH:mm:ss"] {
            assert_eq!(name.parse::<TtlFormat>().unwrap().to_string(), name);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,40}", pattern in "[yMdHms.é ]{0,20}") {
            let _ = parse(&text, &[TtlFormat::Rfc3339, TtlFormat::Rfc1123]);
            let _ = parse(&text, &[TtlFormat::UnixSeconds, TtlFormat::Pattern(pattern)]);
        }

        #[test]
        fn formatted_timestamps_parse_to_the_same_value(unix_s in 0u64..4_000_000_000) {
            let t = Timestamp::from_unix_s(unix_s);
            prop_assert_eq!(parse(&t.iso_s(), &[TtlFormat::Rfc3339]), Some(TimeToLive::At(t)));
        }
    }
}
