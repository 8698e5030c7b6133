//! Scalar functions.
//!
//! Source: "Query acceleration SQL language reference", whose examples are tests here.

use std::collections::BTreeSet;

use super::evaluate::Scope;
use super::sql::{Expr, Function};
use super::value::{Fault, Number, Value};

/// Calls a function. A null argument makes the result null, except for `COALESCE` and `NULLIF`.
///
/// # Errors
/// Fails if the arguments are invalid or too large.
pub fn call<'a>(
    scope: &Scope<'a>,
    function: Function,
    arguments: &'a [Expr],
) -> Result<Value<'a>, Fault> {
    if function == Function::Coalesce {
        return coalesce(scope, arguments);
    }
    let mut values = arguments.iter().map(|argument| scope.value(argument));
    let values = [
        values.next().transpose()?,
        values.next().transpose()?,
        values.next().transpose()?,
    ];
    let [first, second, third] = &values;
    if function == Function::NullIf {
        let is_equal = match (first, second) {
            (Some(first), Some(second)) => scope
                .compare(first, second)?
                .is_some_and(std::cmp::Ordering::is_eq),
            _ => false,
        };
        let [first, ..] = values;
        return Ok(first.filter(|_| !is_equal).unwrap_or(Value::Null));
    }
    if values.iter().flatten().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let none = Value::Null;
    let (first, second) = (first.as_ref().unwrap_or(&none), second.as_ref());
    let value = match function {
        Function::CharLength => {
            let length = first.display().chars().count();
            Value::Integer(i64::try_from(length).unwrap_or(i64::MAX))
        }
        Function::Lower => Value::text(first.display().to_lowercase()),
        Function::Upper => Value::text(first.display().to_uppercase()),
        Function::Substring => substring(first, second.unwrap_or(&none), third.as_ref())?,
        Function::Trim(start, end) => trim(first, second, start, end),
        Function::DateAdd(part) => {
            let Number::Integer(quantity) = first.number()? else {
                return Err(Fault::InvalidTypeConversion);
            };
            let time = second.unwrap_or(&none).moment()?;
            let later = time.plus(part, quantity);
            Value::Time(later.ok_or(Fault::ArithmeticOverflow)?)
        }
        Function::DateDiff(part) => {
            let (from, to) = (first.moment()?, second.unwrap_or(&none).moment()?);
            Value::Integer(from.until(to, part))
        }
        Function::Extract(part) => Value::Integer(first.moment()?.part(part)),
        Function::ToString => {
            let pattern = second.unwrap_or(&none).display();
            let text = first.moment()?.format(&pattern);
            Value::text(text.ok_or(Fault::InvalidTypeConversion)?)
        }
        Function::ToTimestamp => Value::Time(first.moment()?),
        Function::UtcNow => Value::Time(scope.now),
        Function::NullIf | Function::Coalesce => Value::Null,
    };
    scope.meter.made(&value)?;
    Ok(value)
}

fn coalesce<'a>(scope: &Scope<'a>, arguments: &'a [Expr]) -> Result<Value<'a>, Fault> {
    for argument in arguments {
        let value = scope.value(argument)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

/// Positions count from 0: in the reference, five characters of `123456789` from position 1 are
/// `23456`.
fn substring<'a>(
    text: &Value<'_>,
    first: &Value<'_>,
    count: Option<&Value<'_>>,
) -> Result<Value<'a>, Fault> {
    let whole = |value: &Value<'_>| match value.number()? {
        Number::Integer(number) => Ok(number),
        Number::Float(_) => Err(Fault::InvalidTypeConversion),
    };
    let first = whole(first)?;
    let end = match count {
        Some(count) => first.saturating_add(whole(count)?),
        None => i64::MAX,
    };
    let at = |position: i64| usize::try_from(position.max(0)).unwrap_or(usize::MAX);
    let (first, end) = (at(first), at(end));
    let text = text.display();
    let taken = text.chars().skip(first).take(end.saturating_sub(first));
    Ok(Value::text(taken.collect::<String>()))
}

fn trim<'a>(text: &Value<'_>, characters: Option<&Value<'_>>, start: bool, end: bool) -> Value<'a> {
    let characters: BTreeSet<char> = match characters {
        Some(characters) => characters.display().chars().collect(),
        None => BTreeSet::from([' ']),
    };
    let text = text.display();
    let mut text: &str = &text;
    if start {
        text = text.trim_start_matches(|c| characters.contains(&c));
    }
    if end {
        text = text.trim_end_matches(|c| characters.contains(&c));
    }
    Value::text(text)
}
