//! Durations as people write them: `250ms`, `30s`, `5m`, `2h`, `7d`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// Milliseconds in each unit.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads a whole number and its unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number = number.parse::<u64>().ok();
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    match (number, unit) {
        (Some(number), Some((_, ms))) => number
            .checked_mul(*ms)
            .map(Duration::from_millis)
            .ok_or_else(|| format!("`{text}` is too long")),
        _ => Err(format!(
            "`{text}` is no duration: write 250ms, 30s, 5m, 2h or 7d"
        )),
    }
}

/// A duration in the largest unit that leaves no rest.
pub fn text(duration: Duration) -> String {
    let ms = duration.as_millis();
    let mut units = UNITS.iter().rev();
    let unit = units.find(|(_, unit)| ms > 0 && ms.is_multiple_of(u128::from(*unit)));
    match unit {
        Some((name, unit)) => format!("{}{name}", ms / u128::from(*unit)),
        None => "0s".to_owned(),
    }
}

/// A duration in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Human(pub Duration);

impl<'de> Deserialize<'de> for Human {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Human).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let table = [
            ("250ms", 250),
            ("30s", 30_000),
            ("5 m", 300_000),
            ("2h", 7_200_000),
        ];
        for (text, ms) in table {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)));
        }
        for bad in [
            "",
            "5",
            "s",
            "-1s",
            "1.5s",
            "1w",
            "5 minutes",
            "99999999999999999999s",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("18446744073709551615d").is_err());
    }

    #[test]
    fn what_is_shown_can_be_read() {
        for (ms, shown) in [
            (0, "0s"),
            (250, "250ms"),
            (90_000, "90s"),
            (172_800_000, "2d"),
        ] {
            let duration = Duration::from_millis(ms);
            assert_eq!(text(duration), shown);
            assert_eq!(parse(shown), Ok(duration));
        }
    }
}
