//! Aggregate functions: a single value over all rows.
//!
//! Source: "Query acceleration SQL language reference", aggregate expressions.

use std::cmp::Ordering;

use super::sql::AggregateFunction;
use super::value::{Fault, Number, Value};

/// The running state of an aggregate function.
#[derive(Debug)]
pub struct Total {
    function: AggregateFunction,
    count: i64,
    sum: Option<Number>,
    extreme: Option<Value<'static>>,
}

impl Total {
    /// Creates the state for an empty set of rows.
    pub fn new(function: AggregateFunction) -> Self {
        Total {
            function,
            count: 0,
            sum: None,
            extreme: None,
        }
    }

    /// Counts a row for `COUNT(*)`.
    pub fn count_row(&mut self) {
        self.count += 1;
    }

    /// Adds the value of a row; null values are ignored.
    ///
    /// # Errors
    /// Fails if the value cannot be summed or compared.
    pub fn add(&mut self, value: Value<'_>) -> Result<(), Fault> {
        if value.is_null() {
            return Ok(());
        }
        match self.function {
            AggregateFunction::Count => {}
            AggregateFunction::Sum | AggregateFunction::Average => {
                let number = value.number()?;
                self.sum = Some(self.sum.map_or(number, |sum| plus(sum, number)));
            }
            AggregateFunction::Min => self.keep(value, Ordering::Less)?,
            AggregateFunction::Max => self.keep(value, Ordering::Greater)?,
        }
        self.count += 1;
        Ok(())
    }

    /// Returns the result; null if no value was added, but 0 for a count.
    pub fn value(self) -> Value<'static> {
        match self.function {
            AggregateFunction::Count => Value::Integer(self.count),
            AggregateFunction::Sum => self.sum.map_or(Value::Null, Value::from),
            AggregateFunction::Average => {
                let mean = self.sum.map(|sum| sum.float() / self.count as f64);
                mean.map_or(Value::Null, Value::Float)
            }
            AggregateFunction::Min | AggregateFunction::Max => self.extreme.unwrap_or(Value::Null),
        }
    }

    fn keep(&mut self, value: Value<'_>, wanted: Ordering) -> Result<(), Fault> {
        let is_kept = match &self.extreme {
            Some(extreme) => value.compare(extreme)? == Some(wanted),
            None => true,
        };
        if is_kept {
            self.extreme = Some(value.into_owned());
        }
        Ok(())
    }
}

/// Adds as integers while the sum fits into 64 bits, else as floats.
fn plus(sum: Number, number: Number) -> Number {
    if let (Number::Integer(sum), Number::Integer(number)) = (sum, number)
        && let Some(sum) = sum.checked_add(number)
    {
        return Number::Integer(sum);
    }
    Number::Float(sum.float() + number.float())
}
