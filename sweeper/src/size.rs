//! Sizes as people write them: `500B`, `45KiB`, `1GiB`.

/// Text that is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size: a whole number with B, KiB, MiB, GiB or TiB")]
pub struct InvalidSize(pub String);

/// The bytes that it means.
///
/// ```
/// assert_eq!(smalt_sweeper::size::parse("45KiB"), Ok(46_080));
/// assert!(smalt_sweeper::size::parse("45").is_err());
/// ```
pub fn parse(text: &str) -> Result<u64, InvalidSize> {
    const UNITS: [(&str, u64); 5] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("B", 1),
    ];
    let wrong = || InvalidSize(text.to_owned());
    let read = |(unit, factor): &(&str, u64)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*factor)
    };
    UNITS.iter().find_map(read).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        for (text, bytes) in [("0B", 0), ("45KiB", 46_080), ("1TiB", 1 << 40)] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "45",
            "KiB",
            "-1B",
            "1.5KiB",
            "45 KiB",
            "1KB",
            "99999999TiB",
        ] {
            assert_eq!(parse(text), Err(InvalidSize(text.to_owned())), "{text}");
        }
    }
}
