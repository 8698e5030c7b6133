//! Evaluates expressions for a row.
//!
//! Source: "Query acceleration SQL language reference". Logic is three-valued: a condition that is
//! null does not select the row.

use std::cmp::Ordering;

use super::functions;
use super::like::like;
use super::meter::Meter;
use super::moment::Moment;
use super::row::Row;
use super::sql::{Comparison, DatePart, Expr, Literal, Operator};
use super::value::{Fault, Number, Value};

/// The context of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The current row.
    pub row: Row<'a>,
    /// Time of the query.
    pub now: Moment,
    /// Counts the cost of the record.
    pub meter: &'a Meter,
}

impl<'a> Scope<'a> {
    /// Returns `true` if the condition is true; null counts as false.
    ///
    /// # Errors
    /// Fails if the expression cannot be evaluated for this row.
    pub fn holds(&self, condition: &'a Expr) -> Result<bool, Fault> {
        Ok(self.truth(condition)? == Some(true))
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// Fails if the expression cannot be evaluated for this row.
    pub fn value(&self, expr: &'a Expr) -> Result<Value<'a>, Fault> {
        let value = self.evaluate(expr)?;
        self.meter.expression(&value)?;
        Ok(value)
    }

    /// Compares two values with [`Value::compare`] and counts the cost: the length of the shorter
    /// of two strings, or of the whole text beside another type.
    ///
    /// # Errors
    /// Fails if the values cannot be compared or the record takes too many steps.
    pub fn compare(&self, left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Fault> {
        self.meter.step(match (left, right) {
            (Value::Text(left), Value::Text(right)) => left.len().min(right.len()),
            _ => left.text_bytes().saturating_add(right.text_bytes()),
        })?;
        left.compare(right)
    }

    fn evaluate(&self, expr: &'a Expr) -> Result<Value<'a>, Fault> {
        Ok(match expr {
            Expr::Literal(literal) => constant(literal),
            Expr::Field(name, steps) => self.made(self.row.field(name, steps, self.meter)?)?,
            Expr::Ordinal(ordinal) => self.made(self.row.at(*ordinal)?)?,
            Expr::And(all) => self.several(all, false)?,
            Expr::Or(all) => self.several(all, true)?,
            Expr::Not(one) => truth(self.truth(one)?.map(|value| !value)),
            Expr::Negate(one) => self.negated(one)?,
            Expr::Arithmetic(first, rest) => {
                let first = self.value(first)?;
                rest.iter().try_fold(first, |left, (operator, right)| {
                    arithmetic(*operator, &left, &self.value(right)?)
                })?
            }
            Expr::Compare(comparison, left, right) => {
                let ordering = self.compare(&self.value(left)?, &self.value(right)?)?;
                truth(ordering.map(|ordering| comparison.accepts(ordering)))
            }
            Expr::IsNull(one) => Value::Boolean(self.value(one)?.is_null()),
            Expr::IsMissing(one) => Value::Boolean(self.is_missing(one)?),
            Expr::Like(value, pattern, escape) => self.like(value, pattern, escape.as_deref())?,
            Expr::Between(value, least, greatest) => self.between(value, least, greatest)?,
            Expr::In(value, list) => self.within(value, list)?,
            Expr::Case(compared, arms, otherwise) => {
                return self.case(compared.as_deref(), arms, otherwise.as_deref());
            }
            Expr::Cast(one, to) => self.made(self.value(one)?.cast(*to)?)?,
            Expr::Call(function, arguments) => functions::call(self, *function, arguments)?,
        })
    }

    fn made(&self, value: Value<'a>) -> Result<Value<'a>, Fault> {
        self.meter.made(&value)?;
        Ok(value)
    }

    fn truth(&self, expr: &'a Expr) -> Result<Option<bool>, Fault> {
        let value = self.value(expr)?;
        match value.is_null() {
            true => Ok(None),
            false => value.boolean().map(Some),
        }
    }

    /// Evaluates `AND` and `OR` in three-valued logic. Integers are combined bitwise.
    fn several(&self, all: &'a [Expr], decides: bool) -> Result<Value<'a>, Fault> {
        let mut has_null = false;
        let mut bits = None;
        for expr in all {
            let value = self.value(expr)?;
            match value {
                Value::Integer(number) => {
                    bits = Some(match bits {
                        None => number,
                        Some(before) if decides => before | number,
                        Some(before) => before & number,
                    });
                }
                value if value.is_null() => has_null = true,
                value if value.boolean()? == decides => return Ok(Value::Boolean(decides)),
                _ => {}
            }
        }
        Ok(match bits {
            _ if has_null => Value::Null,
            Some(bits) => Value::Integer(bits),
            None => Value::Boolean(!decides),
        })
    }

    fn negated(&self, one: &'a Expr) -> Result<Value<'a>, Fault> {
        let value = self.value(one)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        match value.number()? {
            Number::Integer(number) => {
                let negated = number.checked_neg().ok_or(Fault::ArithmeticOverflow)?;
                Ok(Value::Integer(negated))
            }
            Number::Float(number) => Ok(Value::Float(-number)),
        }
    }

    /// A field beyond the end of a row is missing rather than an error.
    fn is_missing(&self, one: &'a Expr) -> Result<bool, Fault> {
        match self.value(one) {
            Err(Fault::InvalidColumnOrdinal) => Ok(true),
            value => Ok(value? == Value::Missing),
        }
    }

    fn like(
        &self,
        value: &'a Expr,
        pattern: &'a Expr,
        escape: Option<&'a Expr>,
    ) -> Result<Value<'a>, Fault> {
        let (value, pattern) = (self.value(value)?, self.value(pattern)?);
        let escape = escape.map(|escape| self.value(escape)).transpose()?;
        if value.is_null() || pattern.is_null() || escape.as_ref().is_some_and(Value::is_null) {
            return Ok(Value::Null);
        }
        let escape = match escape {
            None => None,
            Some(escape) => {
                let text = escape.display();
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(character), None) => Some(character),
                    _ => return Err(Fault::InvalidTypeConversion),
                }
            }
        };
        let is_like = like(&value.display(), &pattern.display(), escape, self.meter)?;
        Ok(Value::Boolean(is_like))
    }

    fn between(
        &self,
        value: &'a Expr,
        least: &'a Expr,
        greatest: &'a Expr,
    ) -> Result<Value<'a>, Fault> {
        let value = self.value(value)?;
        let from = self.compare(&value, &self.value(least)?)?;
        let to = self.compare(&value, &self.value(greatest)?)?;
        let from = from.map(|ordering| ordering != Ordering::Less);
        let to = to.map(|ordering| ordering != Ordering::Greater);
        Ok(match (from, to) {
            (Some(false), _) | (_, Some(false)) => Value::Boolean(false),
            (Some(true), Some(true)) => Value::Boolean(true),
            _ => Value::Null,
        })
    }

    fn within(&self, value: &'a Expr, list: &'a [Expr]) -> Result<Value<'a>, Fault> {
        let value = self.value(value)?;
        let mut has_null = false;
        for other in list {
            match self.compare(&value, &self.value(other)?)? {
                Some(Ordering::Equal) => return Ok(Value::Boolean(true)),
                Some(_) => {}
                None => has_null = true,
            }
        }
        Ok(truth((!has_null).then_some(false)))
    }

    fn case(
        &self,
        compared: Option<&'a Expr>,
        arms: &'a [(Expr, Expr)],
        otherwise: Option<&'a Expr>,
    ) -> Result<Value<'a>, Fault> {
        let compared = compared.map(|expr| self.value(expr)).transpose()?;
        for (condition, result) in arms {
            let is_met = match &compared {
                Some(compared) => {
                    self.compare(compared, &self.value(condition)?)? == Some(Ordering::Equal)
                }
                None => self.holds(condition)?,
            };
            if is_met {
                return self.value(result);
            }
        }
        otherwise.map_or(Ok(Value::Null), |expr| self.value(expr))
    }
}

impl Comparison {
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

fn truth(value: Option<bool>) -> Value<'static> {
    value.map_or(Value::Null, Value::Boolean)
}

fn constant(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Boolean(value) => Value::Boolean(*value),
        Literal::Integer(number) => Value::Integer(*number),
        Literal::Float(number) => Value::Float(*number),
        Literal::Text(text) => Value::Text(text.as_str().into()),
    }
}

/// Integer operations give integers, as in Transact-SQL; a number added to a time counts days.
fn arithmetic<'a>(
    operator: Operator,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Value<'a>, Fault> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    if let (Value::Time(_), Operator::Add | Operator::Subtract) = (left, operator) {
        return days_later(left.moment()?, operator, right);
    }
    Ok(match (left.number()?, right.number()?) {
        (Number::Integer(left), Number::Integer(right)) => {
            Value::Integer(whole(operator, left, right)?)
        }
        (left, right) => Value::Float(fraction(operator, left.float(), right.float())?),
    })
}

fn days_later<'a>(
    moment: Moment,
    operator: Operator,
    days: &Value<'_>,
) -> Result<Value<'a>, Fault> {
    let sign = if operator == Operator::Add { 1 } else { -1 };
    let later = match days.number()? {
        Number::Integer(days) => days
            .checked_mul(sign)
            .and_then(|days| moment.plus(DatePart::Day, days)),
        Number::Float(days) => moment.plus_days(days * sign as f64),
    };
    later.map(Value::Time).ok_or(Fault::ArithmeticOverflow)
}

fn whole(operator: Operator, left: i64, right: i64) -> Result<i64, Fault> {
    let is_division = matches!(operator, Operator::Divide | Operator::Remainder);
    if is_division && right == 0 {
        return Err(Fault::DivideByZero);
    }
    match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    }
    .ok_or(Fault::ArithmeticOverflow)
}

fn fraction(operator: Operator, left: f64, right: f64) -> Result<f64, Fault> {
    let is_division = matches!(operator, Operator::Divide | Operator::Remainder);
    if is_division && right == 0.0 {
        return Err(Fault::DivideByZero);
    }
    let result = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
    };
    let is_number = result.is_finite();
    is_number.then_some(result).ok_or(Fault::ArithmeticOverflow)
}
