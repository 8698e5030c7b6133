//! Byte sizes in settings: `500B`, `45KiB`, `1GiB`.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes per unit. `B` is a suffix of all other units, so it comes last.
const UNITS: [(&str, u64); 5] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("B", 1),
];

/// A number of bytes.
///
/// ```
/// use smalt_protocol::Size;
///
/// assert_eq!("45KiB".parse(), Ok(Size(46_080)));
/// let error = "45".parse::<Size>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid size `45`: use a whole number with B, KiB, MiB, GiB or TiB"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A string that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid size `{0}`: use a whole number with B, KiB, MiB, GiB or TiB")]
pub struct InvalidSize(pub String);

impl FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let read = |(unit, bytes): &(&str, u64)| {
            let digits = text.strip_suffix(unit)?;
            // `parse` accepts a sign, which a size must not have.
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            let number: u64 = digits.parse().ok().filter(|_| is_number)?;
            number.checked_mul(*bytes).map(Size)
        };
        let size = UNITS.iter().find_map(read);
        size.ok_or_else(|| InvalidSize(text.to_owned()))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}B", self.0))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_require_a_unit() {
        let table = [
            ("0B", 0),
            ("1000B", 1000),
            ("45KiB", 46_080),
            ("64MiB", 67_108_864),
            ("3GiB", 3 << 30),
            ("1TiB", 1 << 40),
        ];
        for (text, bytes) in table {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in [
            "",
            "45",
            "KiB",
            "-1B",
            "+1B",
            "1.5KiB",
            "45 KiB",
            "45kb",
            "1KB",
            "99999999TiB",
        ] {
            let error = InvalidSize(text.to_owned());
            assert_eq!(text.parse::<Size>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_size_deserializes_from_a_string() {
        let size: Size = serde_json::from_str("\"45KiB\"").unwrap();
        assert_eq!(size, Size(46_080));
        let error = serde_json::from_str::<Size>("\"45\"").unwrap_err();
        assert!(error.to_string().contains("invalid size `45`"), "{error}");
    }
}
