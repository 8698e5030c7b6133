//! The sequence number of a page blob: conditions on it, and ways to change it.
//!
//! Sources: "Put Page", "Set Blob Properties". The number belongs to the client: the service only
//! stores and compares it.

use smalt_protocol::{ErrorCode, StorageError};

/// The header with the sequence number.
pub const NAME: &str = "x-ms-blob-sequence-number";
/// The largest sequence number. "Put Blob".
const MAX: u64 = i64::MAX as u64;

/// Parses a sequence number.
///
/// # Errors
/// 400 `InvalidHeaderValue` for anything but a number from 0 to 2^63 - 1.
pub fn parse(text: &str) -> Result<u64, StorageError> {
    let number = text.trim().parse().ok().filter(|number| *number <= MAX);
    number.ok_or_else(|| StorageError::invalid_header(NAME, text))
}

/// Conditions of a page write, all of which must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Accepts numbers less than or equal to this.
    pub le: Option<u64>,
    /// Accepts numbers less than this.
    pub lt: Option<u64>,
    /// Accepts only this number.
    pub eq: Option<u64>,
}

impl Conditions {
    /// Parses the values of `x-ms-if-sequence-number-le`, `-lt` and `-eq`.
    ///
    /// # Errors
    /// 400 `InvalidInput` for an invalid sequence number, as recorded for -1.
    pub fn parse([le, lt, eq]: [Option<&str>; 3]) -> Result<Self, StorageError> {
        let number = |text: Option<&str>| {
            let text = text.filter(|text| !text.is_empty());
            text.map(|text| parse(text).map_err(|_| StorageError::new(ErrorCode::InvalidInput)))
                .transpose()
        };
        Ok(Conditions {
            le: number(le)?,
            lt: number(lt)?,
            eq: number(eq)?,
        })
    }

    /// Checks the current number of a blob.
    ///
    /// # Errors
    /// 412 `SequenceNumberConditionNotMet`.
    pub fn check(&self, number: u64) -> Result<(), StorageError> {
        let holds = self.le.is_none_or(|most| number <= most)
            && self.lt.is_none_or(|end| number < end)
            && self.eq.is_none_or(|wanted| number == wanted);
        if holds {
            Ok(())
        } else {
            Err(ErrorCode::SequenceNumberConditionNotMet.into())
        }
    }
}

/// `x-ms-sequence-number-action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets the larger of the current number and this one.
    Max(u64),
    /// Sets this number.
    Update(u64),
    /// Adds one.
    Increment,
}

impl Action {
    /// Parses an action and its number.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for an unknown action, for an invalid number, and for any number
    /// with an increment; 400 `MissingRequiredHeader` for the other two without a number.
    pub fn parse(action: &str, number: Option<&str>) -> Result<Self, StorageError> {
        let given = || parse(number.ok_or_else(|| StorageError::missing_header(NAME))?);
        match action.to_ascii_lowercase().as_str() {
            "max" => given().map(Action::Max),
            "update" => given().map(Action::Update),
            "increment" => match number {
                None => Ok(Action::Increment),
                Some(number) => Err(StorageError::invalid_header(NAME, number)),
            },
            _ => Err(StorageError::invalid_header(
                "x-ms-sequence-number-action",
                action,
            )),
        }
    }

    /// Returns the new number.
    ///
    /// # Errors
    /// 409 `SequenceNumberIncrementTooLarge`.
    pub fn apply(self, number: u64) -> Result<u64, StorageError> {
        match self {
            Action::Max(other) => Ok(number.max(other)),
            Action::Update(new) => Ok(new),
            Action::Increment if number < MAX => Ok(number + 1),
            Action::Increment => Err(ErrorCode::SequenceNumberIncrementTooLarge.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_or_not() {
        for (given, number, expected) in [
            ([None, None, None], 7, Ok(())),
            ([Some("7"), None, None], 7, Ok(())),
            ([Some("6"), None, None], 7, Err(412)),
            ([None, Some("8"), None], 7, Ok(())),
            ([None, Some("7"), None], 7, Err(412)),
            ([None, None, Some("7")], 7, Ok(())),
            ([None, None, Some("8")], 7, Err(412)),
            ([Some("7"), Some("8"), Some("6")], 7, Err(412)),
            ([Some("-1"), None, None], 7, Err(400)),
            ([None, Some("many"), None], 7, Err(400)),
            ([None, None, Some("9223372036854775808")], 7, Err(400)),
        ] {
            let judged = Conditions::parse(given).and_then(|c| c.check(number));
            assert_eq!(judged.map_err(|e| e.status()), expected, "{given:?}");
        }
    }

    #[test]
    fn actions_follow_the_table() {
        const LARGEST: &str = "9223372036854775807";
        for (action, number, now, expected) in [
            ("max", Some("9"), 7, Ok(9)),
            ("Max", Some("5"), 7, Ok(7)),
            ("update", Some("5"), 7, Ok(5)),
            ("update", Some(LARGEST), 7, Ok(MAX)),
            ("increment", None, 7, Ok(8)),
            (
                "increment",
                None,
                MAX,
                Err(ErrorCode::SequenceNumberIncrementTooLarge),
            ),
            (
                "increment",
                Some("1"),
                7,
                Err(ErrorCode::InvalidHeaderValue),
            ),
            ("max", None, 7, Err(ErrorCode::MissingRequiredHeader)),
            ("update", Some("-1"), 7, Err(ErrorCode::InvalidHeaderValue)),
            ("double", Some("1"), 7, Err(ErrorCode::InvalidHeaderValue)),
        ] {
            let new = Action::parse(action, number).and_then(|action| action.apply(now));
            assert_eq!(new.map_err(|e| e.code()), expected, "{action} {number:?}");
        }
    }
}
