//! One row: the fields of a record of delimited text, or a JSON value.

use std::borrow::Cow;

use super::json::Json;
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
    ends: &'a [usize],
}

impl<'a> Fields<'a> {
    /// Fields one after the other, and where each ends.
    pub fn new(bytes: &'a [u8], ends: &'a [usize]) -> Self {
        Fields { bytes, ends }
    }

    /// One of them, from 0.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
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
                Ok(Value::Text(text(field)))
            }
            Row::Json(_) => Ok(Value::Missing),
        }
    }

    /// The field of a name, and what is below it.
    pub fn field(&self, name: &Name, steps: &[Step]) -> Value<'a> {
        let Row::Json(json) = self else {
            return Value::Missing;
        };
        let field = json.member(name);
        let found = steps.iter().try_fold(field, |found, step| {
            let json = found?;
            Some(match step {
                Step::Member(name) => json.member(name),
                Step::Item(index) => json.item(*index),
                Step::Each => None,
            })
        });
        found.flatten().map_or(Value::Missing, Json::value)
    }
}

/// Text of any bytes: what is no UTF-8 is replaced.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
