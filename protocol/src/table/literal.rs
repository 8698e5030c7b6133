//! Values as strings: the content of Atom elements, JSON strings and filter literals.
//!
//! Source: *Understanding the Table Service Data Model*; recordings for dates and numbers.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::table::value::{EdmType, Value};
use crate::time::Timestamp;

/// Significant digits of a number where they are enough to read it back exactly.
const DIGITS: usize = 15;
/// Significant digits that are always enough.
const DIGITS_EXACT: usize = 17;
/// The smallest decimal exponent that is written in plain notation.
const EXPONENT_PLAIN_MIN: i32 = -4;

/// Parses a value of this type; returns `None` for a malformed value.
pub fn read(edm: EdmType, text: &str) -> Option<Value> {
    Some(match edm {
        EdmType::Binary => Value::Binary(STANDARD.decode(text).ok()?),
        EdmType::Boolean => Value::Boolean(boolean(text)?),
        EdmType::DateTime => Value::DateTime(instant(text)?),
        EdmType::Double => Value::Double(double(text)?),
        EdmType::Guid => Value::Guid(guid(text)?),
        EdmType::Int32 => Value::Int32(whole(text)?.parse().ok()?),
        EdmType::Int64 => Value::Int64(whole(text)?.parse().ok()?),
        EdmType::String => Value::String(text.to_owned()),
    })
}

/// Writes a value so that [`read`] parses it back.
pub fn write(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Binary(bytes) => STANDARD.encode(bytes).into(),
        Value::Boolean(flag) => if *flag { "true" } else { "false" }.into(),
        Value::DateTime(instant) => date_time(*instant).into(),
        Value::Double(number) => number_text(*number).into(),
        Value::Guid(guid) => guid.hyphenated().to_string().into(),
        Value::Int32(number) => number.to_string().into(),
        Value::Int64(number) => number.to_string().into(),
        Value::String(text) => text.into(),
    }
}

/// Writes an `Edm.DateTime` as recorded: `2013-08-22T00:20:16.3134645Z`, without trailing zeros of
/// the fraction, and without the point if the fraction is zero.
pub fn date_time(instant: Timestamp) -> String {
    let mut text = instant.iso_ticks();
    text.pop();
    text.truncate(text.trim_end_matches('0').len());
    if text.ends_with('.') {
        text.pop();
    }
    text.push('Z');
    text
}

/// Writes an `Edm.Double` as .NET does: `200.23`, `3`, `1.5E+20`, `1E-06`, `NaN`, `Infinity`. Uses
/// fifteen digits if they are enough to read the number back and seventeen otherwise, without
/// trailing zeros.
pub fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let short = scientific(number, DIGITS);
    if short.parse() == Ok(number) {
        return plain(&short, DIGITS);
    }
    plain(&scientific(number, DIGITS_EXACT), DIGITS_EXACT)
}

/// Writes `1.50000e20` with this number of digits.
fn scientific(number: f64, digits: usize) -> String {
    format!("{number:.*e}", digits - 1)
}

/// Converts to plain notation if the exponent is small.
fn plain(scientific: &str, digits: usize) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let all: String = mantissa.chars().filter(|c| *c != '.').collect();
    let significant = all.trim_end_matches('0');
    let (whole, fraction) = if exponent < EXPONENT_PLAIN_MIN || exponent >= digits as i32 {
        let (whole, fraction) = significant.split_at(1);
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        let size = exponent.unsigned_abs();
        return format!(
            "{sign}{}E{exponent_sign}{size:02}",
            joined(whole.to_owned(), fraction)
        );
    } else if exponent < 0 {
        let zeros = exponent.unsigned_abs() as usize - 1;
        ("0".to_owned(), "0".repeat(zeros) + significant)
    } else {
        let places = exponent as usize + 1;
        let padded = format!("{significant:0<places$}");
        let (whole, fraction) = padded.split_at(places);
        (whole.to_owned(), fraction.to_owned())
    };
    format!("{sign}{}", joined(whole, &fraction))
}

fn joined(whole: String, fraction: &str) -> String {
    if fraction.is_empty() {
        whole
    } else {
        whole + "." + fraction
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

/// Parses a time; one without a zone is in UTC.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    let has_zone = text
        .split_once(['T', 't'])
        .is_none_or(|(_, time)| time.contains(['Z', 'z', '+', '-']));
    if has_zone {
        Timestamp::parse_iso(text)
    } else {
        Timestamp::parse_iso(&format!("{text}Z"))
    }
}

/// Parses a number, including the names of infinities and NaN in JSON and XML.
pub(crate) fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ => {
            let shape = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let number: f64 = text.chars().all(shape).then(|| text.parse().ok())??;
            number.is_finite().then_some(number)
        }
    }
}

/// Parses only the hyphenated form.
pub(crate) fn guid(text: &str) -> Option<Uuid> {
    (text.len() == uuid::fmt::Hyphenated::LENGTH)
        .then(|| Uuid::try_parse(text).ok())
        .flatten()
}

/// Returns the text if it has only digits and an optional minus: unlike `parse`, rejects a plus.
fn whole(text: &str) -> Option<&str> {
    (!text.starts_with('+')).then_some(text)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates values of every type, with dates in the range that may be stored.
    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let dates = Timestamp::WINDOWS_EPOCH.ticks()..=Timestamp::MAX.ticks();
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            dates.prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
            any::<f64>().prop_map(Value::Double),
            any::<u128>().prop_map(|bits| Value::Guid(Uuid::from_u128(bits))),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            ".{0,20}".prop_map(Value::String),
        ]
    }

    #[test]
    fn numbers_are_written_as_recorded_and_as_dot_net_does() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (3.1, "3.1"),
            (200.23, "200.23"),
            (1234.1234, "1234.1234"),
            (-0.5, "-0.5"),
            (0.00001, "1E-05"),
            (0.0001, "0.0001"),
            (0.000012345, "1.2345E-05"),
            (1e14, "100000000000000"),
            (1e15, "1E+15"),
            (1.5e20, "1.5E+20"),
            (1e100, "1E+100"),
            (0.1 + 0.2, "0.30000000000000004"),
            (12_345_678_901_234_568.0, "12345678901234568"),
            (f64::MAX, "1.7976931348623157E+308"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }

    #[test]
    fn literals_are_parsed_or_rejected() {
        for (edm, text, good) in [
            (EdmType::Boolean, "true", true),
            (EdmType::Boolean, "yes", false),
            (EdmType::Int32, "2147483647", true),
            (EdmType::Int32, "2147483648", false),
            (EdmType::Int32, "+1", false),
            (EdmType::Int32, "1.0", false),
            (EdmType::Int64, "-9223372036854775808", true),
            (EdmType::Int64, "9223372036854775808", false),
            (EdmType::Double, "1e400", false),
            (EdmType::Double, "-INF", true),
            (EdmType::Double, "infinity", false),
            (EdmType::Double, "", false),
            (EdmType::Double, "nan", false),
            (EdmType::Guid, "c9da6455-213d-42c9-9a79-3e9149a57833", true),
            (EdmType::Guid, "c9da6455213d42c99a793e9149a57833", false),
            (
                EdmType::Guid,
                "{9da6455-213d-42c9-9a79-3e9149a57833}",
                false,
            ),
            (EdmType::DateTime, "1992-12-20T21:55:00", true),
            (EdmType::DateTime, "1973-10-04T00:00:00.000000Z", true),
            (EdmType::DateTime, "1973-10-04", true),
            (EdmType::DateTime, "4.10.1973", false),
            (EdmType::Binary, "YmluYXJ5", true),
            (EdmType::Binary, "YmluYXJ", false),
            (EdmType::String, "", true),
        ] {
            assert_eq!(read(edm, text).is_some(), good, "{edm} {text}");
        }
    }

    proptest! {
        #[test]
        fn any_value_parses_back(value in any_value()) {
            let read = read(value.edm_type(), &write(&value));
            let expected = match value {
                Value::Double(0.0) => Value::Double(0.0),
                Value::Double(number) if number.is_nan() => Value::Double(f64::NAN),
                value => value,
            };
            prop_assert_eq!(read, Some(expected));
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,40}") {
            for edm in EdmType::ALL {
                let _ = read(edm, &text);
            }
        }
    }
}
