//! Values of fields and expressions: conversion and comparison.
//!
//! Source: "Query acceleration SQL language reference", data types; "Data type precedence
//! (Transact-SQL)" for values of different types: a string is converted to the other type.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::json::Json;
use super::moment::Moment;
use super::sql::Type;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// The record has no such field.
    Missing,
    /// SQL null.
    Null,
    /// A truth value.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// A point in time.
    Time(Moment),
    /// A JSON object or array.
    Json(Json<'a>),
}

/// Why a row cannot be evaluated. The row is omitted, and the error is reported to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A value does not have the required type. Name and text are those that Microsoft's SDKs
    /// expect.
    InvalidTypeConversion,
    /// A row of delimited text has fewer fields than the query uses. The name is the one that the
    /// SDKs expect.
    InvalidColumnOrdinal,
    /// A result is out of range. The name is the emulator's own.
    ArithmeticOverflow,
    /// Division by zero. The name is the emulator's own.
    DivideByZero,
    /// The query exceeds its time limit. Name and text are those of the error 500
    /// `OperationTimedOut`, for which it is too late to change the status.
    TimedOut,
    /// A record produces more bytes than are buffered. The name is the emulator's own.
    TooLarge,
}

impl Fault {
    /// Returns the name and description of the error.
    pub fn describe(self) -> (&'static str, &'static str) {
        match self {
            Fault::InvalidTypeConversion => ("InvalidTypeConversion", "Invalid type conversion."),
            Fault::InvalidColumnOrdinal => ("InvalidColumnOrdinal", "Invalid column ordinal."),
            Fault::ArithmeticOverflow => ("ArithmeticOverflow", "Arithmetic overflow."),
            Fault::DivideByZero => ("DivideByZero", "Division by zero."),
            Fault::TimedOut => (
                "OperationTimedOut",
                "Operation could not be completed within the permitted time.",
            ),
            Fault::TooLarge => ("ResultTooLarge", "The results of one record are too large."),
        }
    }

    /// Returns `true` if the error ends the query.
    pub fn is_fatal(self) -> bool {
        matches!(self, Fault::TimedOut | Fault::TooLarge)
    }
}

/// An integer or floating-point number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
}

impl Number {
    /// Converts to a float.
    pub fn float(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(number) => Value::Integer(number),
            Number::Float(number) => Value::Float(number),
        }
    }
}

impl<'a> Value<'a> {
    /// Creates an owned string.
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(Cow::Owned(text.into()))
    }

    /// Returns `true` for null and missing values.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null | Value::Missing)
    }

    /// Returns the length of a string or raw JSON value in bytes; 0 for other values.
    pub fn text_bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Json(json) => json.raw().len(),
            _ => 0,
        }
    }

    /// Detaches the value from its row.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Missing => Value::Missing,
            Value::Null => Value::Null,
            Value::Boolean(value) => Value::Boolean(value),
            Value::Integer(number) => Value::Integer(number),
            Value::Float(number) => Value::Float(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Time(moment) => Value::Time(moment),
            Value::Json(json) => Value::text(json.text()),
        }
    }

    /// Converts to a number: strings are parsed, true is 1.
    pub fn number(&self) -> Result<Number, Fault> {
        match self {
            Value::Integer(number) => Ok(Number::Integer(*number)),
            Value::Float(number) => Ok(Number::Float(*number)),
            Value::Boolean(value) => Ok(Number::Integer(i64::from(*value))),
            Value::Text(text) => parse_number(text).ok_or(Fault::InvalidTypeConversion),
            _ => Err(Fault::InvalidTypeConversion),
        }
    }

    /// Converts to a point in time.
    pub fn moment(&self) -> Result<Moment, Fault> {
        match self {
            Value::Time(moment) => Ok(*moment),
            Value::Text(text) => Moment::parse(text).ok_or(Fault::InvalidTypeConversion),
            _ => Err(Fault::InvalidTypeConversion),
        }
    }

    /// Converts to a truth value: `true` and `false` in any case, `1` and `0`, and numbers, of
    /// which only zero is false.
    pub fn boolean(&self) -> Result<bool, Fault> {
        match self {
            Value::Boolean(value) => Ok(*value),
            Value::Integer(number) => Ok(*number != 0),
            Value::Float(number) => Ok(*number != 0.0),
            Value::Text(text) => match text.trim() {
                text if text.eq_ignore_ascii_case("true") || text == "1" => Ok(true),
                text if text.eq_ignore_ascii_case("false") || text == "0" => Ok(false),
                _ => Err(Fault::InvalidTypeConversion),
            },
            _ => Err(Fault::InvalidTypeConversion),
        }
    }

    /// Formats as text; null and missing values are empty.
    pub fn display(&self) -> Cow<'_, str> {
        match self {
            Value::Missing | Value::Null => Cow::Borrowed(""),
            Value::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Value::Integer(number) => Cow::Owned(number.to_string()),
            Value::Float(number) => Cow::Owned(number.to_string()),
            Value::Text(text) => Cow::Borrowed(text),
            Value::Time(moment) => Cow::Owned(moment.iso()),
            Value::Json(json) => json.text(),
        }
    }

    /// Converts to a type (`CAST`). Null stays null.
    ///
    /// # Errors
    /// [`Fault::InvalidTypeConversion`] if the type cannot represent the value.
    pub fn cast(self, to: Type) -> Result<Value<'a>, Fault> {
        if self.is_null() {
            return Ok(Value::Null);
        }
        Ok(match to {
            Type::Integer => match (&self, self.number()?) {
                (_, Number::Integer(number)) => Value::Integer(number),
                // A float is truncated, but a string with a fraction is not an integer.
                (Value::Float(_), Number::Float(number)) => Value::Integer(truncate(number)?),
                _ => return Err(Fault::InvalidTypeConversion),
            },
            Type::Float => Value::Float(self.number()?.float()),
            Type::Text if matches!(self, Value::Text(_)) => self,
            Type::Text => Value::text(self.display()),
            Type::Timestamp => Value::Time(self.moment()?),
            Type::Boolean => Value::Boolean(self.boolean()?),
        })
    }

    /// Compares two values; `None` if either is null.
    ///
    /// # Errors
    /// [`Fault::InvalidTypeConversion`] if the types cannot be compared.
    pub fn compare(&self, other: &Value<'_>) -> Result<Option<Ordering>, Fault> {
        if self.is_null() || other.is_null() {
            return Ok(None);
        }
        Ok(match (self, other) {
            (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
            (Value::Json(left), Value::Json(right)) => Some(left.text().cmp(&right.text())),
            (Value::Time(_), _) | (_, Value::Time(_)) => Some(self.moment()?.cmp(&other.moment()?)),
            (Value::Boolean(_), Value::Text(_) | Value::Boolean(_))
            | (Value::Text(_), Value::Boolean(_)) => Some(self.boolean()?.cmp(&other.boolean()?)),
            _ => match (self.number()?, other.number()?) {
                (Number::Integer(left), Number::Integer(right)) => Some(left.cmp(&right)),
                (left, right) => left.float().partial_cmp(&right.float()),
            },
        })
    }
}

/// Truncates to an integer, if it fits into 64 bits.
fn truncate(number: f64) -> Result<i64, Fault> {
    let whole = number.trunc();
    // 2^63, the first float beyond the largest integer.
    let beyond = 9_223_372_036_854_775_808.0;
    if whole >= -beyond && whole < beyond {
        Ok(whole as i64)
    } else {
        Err(Fault::InvalidTypeConversion)
    }
}

/// Parses digits with an optional fraction and exponent, ignoring surrounding white space.
fn parse_number(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(Number::Integer(number));
    }
    // Rust also parses `inf` and `nan`, which are not numbers here.
    let is_number = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let number = is_number.then(|| text.parse().ok()).flatten()?;
    Some(Number::Float(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value<'_> {
        Value::Text(Cow::Borrowed(text))
    }

    #[test]
    fn casts_between_types() {
        let time = Moment::parse("2020-02-02").map(Value::Time);
        for (value, to, expected) in [
            (text(" 12 "), Type::Integer, Some(Value::Integer(12))),
            (text("12.5"), Type::Integer, None),
            (text("12.5"), Type::Float, Some(Value::Float(12.5))),
            (text("nan"), Type::Float, None),
            (text(""), Type::Integer, None),
            (Value::Float(-2.9), Type::Integer, Some(Value::Integer(-2))),
            (Value::Float(1e300), Type::Integer, None),
            (Value::Boolean(true), Type::Integer, Some(Value::Integer(1))),
            (text("TRUE"), Type::Boolean, Some(Value::Boolean(true))),
            (text("yes"), Type::Boolean, None),
            (Value::Integer(3), Type::Text, Some(text("3"))),
            (text("2020-02-02T"), Type::Timestamp, time),
            (Value::Integer(3), Type::Timestamp, None),
            (Value::Missing, Type::Integer, Some(Value::Null)),
        ] {
            let shown = format!("{value:?} as {to:?}");
            assert_eq!(value.cast(to).ok(), expected, "{shown}");
        }
    }

    #[test]
    fn text_is_converted_for_comparison() {
        for (left, right, expected) in [
            (
                text("300"),
                Value::Integer(250),
                Ok(Some(Ordering::Greater)),
            ),
            (text("10"), text("9"), Ok(Some(Ordering::Less))),
            (text("2.5"), Value::Integer(2), Ok(Some(Ordering::Greater))),
            (
                text("hello"),
                Value::Integer(1),
                Err(Fault::InvalidTypeConversion),
            ),
            (
                Value::Boolean(false),
                text("False"),
                Ok(Some(Ordering::Equal)),
            ),
            (Value::Null, text("hello"), Ok(None)),
            (
                Value::Integer(1),
                Value::Float(1.0),
                Ok(Some(Ordering::Equal)),
            ),
        ] {
            assert_eq!(left.compare(&right), expected, "{left:?} {right:?}");
        }
    }
}
