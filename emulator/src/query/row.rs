//! A row: the fields of a delimited text record, or a JSON value.

use super::json::Json;
use super::meter::Meter;
use super::sql::{Name, Step};
use super::value::{Fault, Value};

/// A row in its input format.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A record of delimited text.
    Fields(Fields<'a>),
    /// A JSON value.
    Json(Json<'a>),
}

/// The fields of a record, without quotes and escapes.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
}

impl<'a> Fields<'a> {
    /// Creates fields from their concatenated bytes and the end offset of each.
    pub fn new(bytes: &'a [u8], ends: &'a [u32]) -> Self {
        Fields { bytes, ends }
    }

    /// Returns the number of fields.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the field at `index`, from 0.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start as usize..end as usize)
    }

    /// Iterates over all fields.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.ends.len()).map_while(move |index| self.get(index))
    }
}

impl<'a> Row<'a> {
    /// Returns the field at a position, from 0.
    ///
    /// # Errors
    /// [`Fault::InvalidColumnOrdinal`] if the row has fewer fields.
    pub fn at(&self, ordinal: usize) -> Result<Value<'a>, Fault> {
        match self {
            Row::Fields(fields) => {
                let field = fields.get(ordinal).ok_or(Fault::InvalidColumnOrdinal)?;
                Ok(Value::Text(String::from_utf8_lossy(field)))
            }
            Row::Json(_) => Ok(Value::Missing),
        }
    }

    /// Returns the value at a field name and the steps below it.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] if the search exceeds the steps of the record.
    pub fn field(&self, name: &Name, steps: &[Step], meter: &Meter) -> Result<Value<'a>, Fault> {
        let Row::Json(json) = self else {
            return Ok(Value::Missing);
        };
        let mut found = json.member(name);
        meter.step(json.steps_to(found))?;
        for step in steps {
            let Some(within) = found else {
                break;
            };
            found = match step {
                Step::Member(name) => within.member(name),
                Step::Item(index) => within.item(*index),
                Step::Each => None,
            };
            meter.step(within.steps_to(found))?;
        }
        Ok(found.map_or(Value::Missing, Json::value))
    }

    /// Returns the size of the row in bytes, including the field offsets.
    pub fn bytes(&self) -> usize {
        match self {
            Row::Fields(fields) => fields.bytes.len() + size_of_val(fields.ends),
            Row::Json(json) => json.raw().len(),
        }
    }
}
