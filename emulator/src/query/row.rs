//! One row: the fields of a record of delimited text, or a JSON value.

use super::json::Json;
use super::meter::Meter;
use super::sql::{Name, Step};
use super::value::{Fault, Value};

/// One row.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// Delimited text.
    Fields(Fields<'a>),
    /// JSON.
    Json(Json<'a>),
}

/// The fields of a record, without quotes and escapes.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
}

impl<'a> Fields<'a> {
    /// Fields one after the other, and where each ends.
    pub fn new(bytes: &'a [u8], ends: &'a [u32]) -> Self {
        Fields { bytes, ends }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// One of them, from 0.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start as usize..end as usize)
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.ends.len()).map_while(move |index| self.get(index))
    }
}

impl<'a> Row<'a> {
    /// The field at a position.
    ///
    /// # Errors
    /// [`Fault::InvalidColumnOrdinal`] where there are fewer.
    pub fn at(&self, ordinal: usize) -> Result<Value<'a>, Fault> {
        match self {
            Row::Fields(fields) => {
                let field = fields.get(ordinal).ok_or(Fault::InvalidColumnOrdinal)?;
                Ok(Value::Text(String::from_utf8_lossy(field)))
            }
            Row::Json(_) => Ok(Value::Missing),
        }
    }

    /// The field of a name, and what is below it.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] when looking for it takes too many steps.
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

    /// Bytes of the row, and of what tells where its fields are.
    pub fn bytes(&self) -> usize {
        match self {
            Row::Fields(fields) => fields.bytes.len() + size_of_val(fields.ends),
            Row::Json(json) => json.raw().len(),
        }
    }
}
