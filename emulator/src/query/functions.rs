//! The functions of one row.
//!
//! Source: "Query acceleration SQL language reference", whose examples are tests here.

use super::evaluate::Scope;
use super::sql::{Expr, Function};
use super::value::{Fault, Number, Value};

/// Calls a function. A null among its arguments makes the result null, but for `COALESCE` and
/// `NULLIF`.
///
/// # Errors
/// Whatever the row has no answer for.
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
            (Some(first), Some(second)) => first
                .compare(second)?
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
    Ok(match function {
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
    })
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

/// Counted from 0: the reference takes `23456` out of `123456789` from 1, five characters long.
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
    let characters = characters.map(Value::display);
    let characters = characters.as_deref().unwrap_or(" ");
    let text = text.display();
    let mut text: &str = &text;
    if start {
        text = text.trim_start_matches(|c| characters.contains(c));
    }
    if end {
        text = text.trim_end_matches(|c| characters.contains(c));
    }
    Value::text(text)
}

/// Whether a text is like a pattern: `%` is any characters, `_` is one.
///
/// Goes back to the last `%` only, so that no pattern takes more than the product of both lengths.
pub fn like(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let pattern: Vec<Part> = parts(pattern, escape);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut part) = (0, 0);
    let mut back = None;
    while at < text.len() {
        match pattern.get(part) {
            Some(Part::Any) => {
                back = Some((at, part));
                part += 1;
            }
            Some(Part::One) => (at, part) = (at + 1, part + 1),
            Some(Part::This(c)) if text.get(at) == Some(c) => (at, part) = (at + 1, part + 1),
            _ => match back {
                Some((from, any)) => {
                    (at, part) = (from + 1, any + 1);
                    back = Some((from + 1, any));
                }
                None => return false,
            },
        }
    }
    pattern[part.min(pattern.len())..]
        .iter()
        .all(|part| *part == Part::Any)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Any,
    One,
    This(char),
}

fn parts(pattern: &str, escape: Option<char>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        parts.push(match c {
            c if Some(c) == escape => Part::This(characters.next().unwrap_or(c)),
            '%' => Part::Any,
            '_' => Part::One,
            c => Part::This(c),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn likes_what_fits() {
        for (text, pattern, escape, expected) in [
            ("hello", "h%", None, true),
            ("hello", "%l_o", None, true),
            ("hello", "_ello%", None, true),
            ("hello", "ello", None, false),
            ("", "%", None, true),
            ("", "_", None, false),
            ("50%", "50!%", Some('!'), true),
            ("500", "50!%", Some('!'), false),
            ("aab", "%ab", None, true),
        ] {
            assert_eq!(like(text, pattern, escape), expected, "{text} {pattern}");
        }
    }

    /// The plain definition, by recursion.
    fn fits(text: &[char], pattern: &[Part]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((Part::Any, rest)) => (0..=text.len()).any(|taken| fits(&text[taken..], rest)),
            Some((Part::One, rest)) => !text.is_empty() && fits(&text[1..], rest),
            Some((Part::This(c), rest)) => text.first() == Some(c) && fits(&text[1..], rest),
        }
    }

    proptest! {
        #[test]
        fn is_like_by_definition(text in "[ab]{0,8}", pattern in "[ab%_]{0,6}") {
            let characters: Vec<char> = text.chars().collect();
            let expected = fits(&characters, &parts(&pattern, None));
            prop_assert_eq!(like(&text, &pattern, None), expected);
        }
    }
}
