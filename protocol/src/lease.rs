//! Headers of Lease Blob and Lease Container, parsed but not evaluated.
//!
//! Source: *Lease Blob*. Recordings reject a lease id that is not a GUID with 400
//! `InvalidHeaderValue`, and answer with the canonical form for every accepted form.

use crate::error::StorageError;
use crate::limits::{LEASE_BREAK_PERIOD_S, LEASE_DURATION_INFINITE, LEASE_DURATION_S};

/// The value of `x-ms-lease-action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Takes a lease, or renews the caller's own with another duration.
    Acquire,
    /// Restarts the duration.
    Renew,
    /// Changes the lease id.
    Change,
    /// Ends the lease; requires its id.
    Release,
    /// Ends the lease, now or after a period, without its id.
    Break,
}

/// The value of `x-ms-lease-duration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseDuration {
    /// -1: the lease lasts until it is released or broken.
    Infinite,
    /// 15 to 60 seconds.
    Seconds(u32),
}

/// Parses `x-ms-lease-action`.
///
/// # Errors
/// 400 `MissingRequiredHeader` when absent, 400 `InvalidHeaderValue` for an unknown action.
pub fn parse_action(value: Option<&str>) -> Result<LeaseAction, StorageError> {
    const NAME: &str = "x-ms-lease-action";
    let value = value.ok_or_else(|| StorageError::missing_header(NAME))?;
    match value.trim().to_ascii_lowercase().as_str() {
        "acquire" => Ok(LeaseAction::Acquire),
        "renew" => Ok(LeaseAction::Renew),
        "change" => Ok(LeaseAction::Change),
        "release" => Ok(LeaseAction::Release),
        "break" => Ok(LeaseAction::Break),
        _ => Err(StorageError::invalid_header(NAME, value)),
    }
}

/// Parses `x-ms-lease-duration`, which acquire requires since 2012-02-12.
///
/// # Errors
/// 400 `MissingRequiredHeader` when absent, 400 `InvalidHeaderValue` for anything but -1 and 15 to
/// 60.
pub fn parse_duration(value: Option<&str>) -> Result<LeaseDuration, StorageError> {
    const NAME: &str = "x-ms-lease-duration";
    let value = value.ok_or_else(|| StorageError::missing_header(NAME))?;
    match value.trim().parse::<i64>() {
        Ok(LEASE_DURATION_INFINITE) => Ok(LeaseDuration::Infinite),
        Ok(seconds) if LEASE_DURATION_S.contains(&seconds) => {
            Ok(LeaseDuration::Seconds(seconds.unsigned_abs() as u32))
        }
        _ => Err(StorageError::invalid_header(NAME, value)),
    }
}

/// Parses `x-ms-lease-break-period`, in seconds. Absent is not the same as 0.
///
/// # Errors
/// 400 `InvalidHeaderValue` for anything but 0 to 60.
pub fn parse_break_period(value: Option<&str>) -> Result<Option<u32>, StorageError> {
    let Some(value) = value else { return Ok(None) };
    match value.trim().parse::<i64>() {
        Ok(seconds) if LEASE_BREAK_PERIOD_S.contains(&seconds) => {
            Ok(Some(seconds.unsigned_abs() as u32))
        }
        _ => Err(StorageError::invalid_header(
            "x-ms-lease-break-period",
            value,
        )),
    }
}

/// Parses a lease id from the header of this name (`x-ms-lease-id`, `x-ms-proposed-lease-id`, ...).
/// Returns it in canonical form, with lower-case digits and dashes, so equal ids are equal strings.
///
/// # Errors
/// 400 `InvalidHeaderValue` for anything but a GUID in one of .NET's forms.
pub fn parse_lease_id(header: &str, value: &str) -> Result<String, StorageError> {
    canonical_guid(value).ok_or_else(|| StorageError::invalid_header(header, value))
}

/// Converts a GUID in one of .NET's forms N (32 digits), D (dashes), B (braces), P (parentheses)
/// and X (hexadecimal numbers in braces) to `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
pub fn canonical_guid(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = if text.contains(['x', 'X']) {
        digits_of_numbers(text)?
    } else {
        digits_of_dashes(text)?
    };
    let part = |from: usize, to: usize| digits.get(from..to);
    let parts = [
        part(0, 8)?,
        part(8, 12)?,
        part(12, 16)?,
        part(16, 20)?,
        part(20, 32)?,
    ];
    Some(parts.join("-").to_ascii_lowercase())
}

/// Returns the 32 digits of the forms N, D, B and P.
fn digits_of_dashes(text: &str) -> Option<String> {
    let braced = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let bracketed = text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let bare = braced.or(bracketed).unwrap_or(text);
    let lengths: Vec<usize> = bare.split('-').map(str::len).collect();
    let is_plain = bare.len() == text.len() && lengths == [32];
    let is_hex = bare.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    ((is_plain || lengths == [8, 4, 4, 4, 12]) && is_hex).then(|| bare.replace('-', ""))
}

/// Returns the 32 digits of the form X: `{0x00000000,0x0000,0x0000,{0x00,0x00,...}}`.
fn digits_of_numbers(text: &str) -> Option<String> {
    let (head, bytes) = text
        .strip_prefix('{')?
        .strip_suffix("}}")?
        .split_once('{')?;
    let numbers: Vec<&str> = head
        .strip_suffix(',')?
        .split(',')
        .chain(bytes.split(','))
        .collect();
    let widths: [usize; 11] = [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2];
    if numbers.len() != widths.len() {
        return None;
    }
    let mut digits = String::with_capacity(32);
    for (number, width) in numbers.into_iter().zip(widths) {
        let hex = number.trim();
        let hex = hex.strip_prefix("0x").or_else(|| hex.strip_prefix("0X"))?;
        let fits = (1..=width).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit());
        if !fits {
            return None;
        }
        digits.push_str(&"0".repeat(width - hex.len()));
        digits.push_str(hex);
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use proptest::prelude::*;

    const ID: &str = "ca761232-ed42-11ce-bacd-00aa0057b223";

    #[test]
    fn every_form_of_a_guid_is_the_same_id() {
        for text in [
            ID,
            "CA761232-ED42-11CE-BACD-00AA0057B223",
            "ca761232ed4211cebacd00aa0057b223",
            "{ca761232-ed42-11ce-bacd-00aa0057b223}",
            "(ca761232-ed42-11ce-bacd-00aa0057b223)",
            " ca761232-ed42-11ce-bacd-00aa0057b223 ",
            "{0xca761232,0xed42,0x11ce,{0xba,0xcd,0x0,0xaa,0x00,0x57,0xb2,0x23}}",
        ] {
            assert_eq!(
                parse_lease_id("x-ms-lease-id", text).as_deref(),
                Ok(ID),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_an_invalid_header() {
        for text in [
            "badbadbad",
            "bad_id",
            "",
            "ca761232ed42-11ce-bacd-00aa0057b223",
            "{ca761232ed4211cebacd00aa0057b223}",
            "{ca761232-ed42-11ce-bacd-00aa0057b223",
            "ga761232-ed42-11ce-bacd-00aa0057b223",
            "{0xca761232,0xed42,0x11ce,{0xba,0xcd,0x0,0xaa,0x00,0x57,0xb2}}",
            "{0xca761232f,0xed42,0x11ce,{0xba,0xcd,0x0,0xaa,0x00,0x57,0xb2,0x23}}",
            "äääääääääääääääää",
        ] {
            let error = parse_lease_id("x-ms-proposed-lease-id", text).unwrap_err();
            assert_eq!(
                (error.status(), error.code()),
                (400, ErrorCode::InvalidHeaderValue)
            );
            assert_eq!(error.elements()[0].1, "x-ms-proposed-lease-id");
            assert_eq!(error.elements()[1].1, text);
        }
    }

    #[test]
    fn actions_durations_and_periods() {
        use ErrorCode::{InvalidHeaderValue, MissingRequiredHeader};
        assert_eq!(parse_action(Some("Break")), Ok(LeaseAction::Break));
        for (value, expected) in [
            (None, MissingRequiredHeader),
            (Some("take"), InvalidHeaderValue),
        ] {
            assert_eq!(parse_action(value).unwrap_err().code(), expected);
        }
        for (value, expected) in [
            (Some("-1"), Ok(LeaseDuration::Infinite)),
            (Some("15"), Ok(LeaseDuration::Seconds(15))),
            (Some("60"), Ok(LeaseDuration::Seconds(60))),
            (Some("14"), Err(InvalidHeaderValue)),
            (Some("61"), Err(InvalidHeaderValue)),
            (Some("0"), Err(InvalidHeaderValue)),
            (Some("x"), Err(InvalidHeaderValue)),
            (Some("99999999999999999999"), Err(InvalidHeaderValue)),
            (None, Err(MissingRequiredHeader)),
        ] {
            assert_eq!(
                parse_duration(value).map_err(|e| e.code()),
                expected,
                "{value:?}"
            );
        }
        for (value, expected) in [
            (None, Ok(None)),
            (Some("0"), Ok(Some(0))),
            (Some("60"), Ok(Some(60))),
            (Some("61"), Err(InvalidHeaderValue)),
            (Some("-1"), Err(InvalidHeaderValue)),
            (Some(""), Err(InvalidHeaderValue)),
        ] {
            assert_eq!(
                parse_break_period(value).map_err(|e| e.code()),
                expected,
                "{value:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in "(.{0,40}|[0-9a-fx{}(),-]{30,70})") {
            if let Some(id) = canonical_guid(&text) {
                prop_assert_eq!(canonical_guid(&id), Some(id));
            }
            let _ = (parse_duration(Some(&text)), parse_break_period(Some(&text)));
        }
    }
}
