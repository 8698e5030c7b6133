//! Writes result rows.

use std::borrow::Cow;

use super::arrow;
use super::csv;
use super::request::{Answer, Format};
use super::row::Row;
use super::value::{Fault, Value};

/// Steps of [`Meter`](super::meter::Meter) for each field of an Arrow row.
const ARROW_FIELD_STEPS: usize = 16;

/// Writes rows in the requested format.
#[derive(Debug)]
pub enum Output {
    /// Delimited text.
    Delimited(csv::Writer),
    /// JSON, with this separator after each record.
    Json(String),
    /// An Arrow stream.
    Arrow(Box<arrow::Writer>),
}

impl From<Answer> for Output {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Text(Format::Delimited(dialect)) => {
                Output::Delimited(csv::Writer::new(dialect))
            }
            Answer::Text(Format::Json(separator)) => Output::Json(separator),
            Answer::Arrow(fields) => Output::Arrow(Box::new(arrow::Writer::new(fields))),
        }
    }
}

/// Returns the name of an unnamed field: its position, from 1.
pub fn ordinal_name(index: usize) -> String {
    format!("_{}", index + 1)
}

impl Output {
    /// Returns `true` if a header record is requested.
    pub fn has_headers(&self) -> bool {
        matches!(self, Output::Delimited(writer) if writer.has_headers())
    }

    /// Writes the header record.
    pub fn header(&self, out: &mut Vec<u8>, names: &[String]) {
        if let Output::Delimited(writer) = self {
            for (index, name) in names.iter().enumerate() {
                writer.field(out, index, name.as_bytes());
            }
            writer.end(out);
        }
    }

    /// Returns the output before the first row.
    pub fn begin(&mut self) -> Vec<u8> {
        match self {
            Output::Arrow(writer) => writer.begin(),
            _ => Vec::new(),
        }
    }

    /// Returns the bytes of rows that are buffered and not written yet.
    pub fn held_bytes(&self) -> usize {
        match self {
            Output::Arrow(writer) => writer.held_bytes(),
            _ => 0,
        }
    }

    /// Returns the fixed cost of a row in steps: Arrow writes every field of the schema.
    pub fn row_steps(&self) -> usize {
        match self {
            Output::Arrow(writer) => ARROW_FIELD_STEPS * writer.fields(),
            _ => 0,
        }
    }

    /// Writes the buffered rows.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Output::Arrow(writer) = self
            && let Some(batch) = writer.flush()
        {
            out.extend_from_slice(&batch);
        }
    }

    /// Writes selected values with their names.
    ///
    /// # Errors
    /// Fails if a value does not fit into the requested schema.
    pub fn values(
        &mut self,
        out: &mut Vec<u8>,
        names: &[String],
        values: &[Value<'_>],
    ) -> Result<(), Fault> {
        match self {
            Output::Arrow(writer) => writer.row(values.iter())?,
            Output::Delimited(writer) => {
                for (index, value) in values.iter().enumerate() {
                    writer.field(out, index, value.display().as_bytes());
                }
                writer.end(out);
            }
            Output::Json(separator) => {
                let named = names.iter().map(|name| Cow::Borrowed(name.as_str()));
                object(out, named.zip(values));
                out.extend_from_slice(separator.as_bytes());
            }
        }
        Ok(())
    }

    /// Writes a row unchanged; `names` are those of the header row, if any.
    ///
    /// # Errors
    /// As [`Output::values`].
    pub fn whole(
        &mut self,
        out: &mut Vec<u8>,
        names: &[String],
        row: Row<'_>,
    ) -> Result<(), Fault> {
        match (self, row) {
            (Output::Arrow(writer), Row::Fields(fields)) => {
                writer.row(
                    fields
                        .iter()
                        .map(|field| Value::Text(String::from_utf8_lossy(field))),
                )?;
            }
            (Output::Arrow(writer), Row::Json(json)) => {
                writer.row(json.members().map(|(_, member)| member.value()))?;
            }
            (Output::Delimited(writer), Row::Fields(fields)) => {
                for (index, field) in fields.iter().enumerate() {
                    writer.field(out, index, field);
                }
                writer.end(out);
            }
            (Output::Delimited(writer), Row::Json(json)) => {
                for (index, (_, member)) in json.members().enumerate() {
                    writer.field(out, index, member.value().display().as_bytes());
                }
                writer.end(out);
            }
            (Output::Json(separator), Row::Fields(fields)) => {
                let named = fields.iter().enumerate().map(|(index, field)| {
                    let name = match names.get(index) {
                        Some(name) => Cow::Borrowed(name.as_str()),
                        None => Cow::Owned(ordinal_name(index)),
                    };
                    (name, Value::Text(String::from_utf8_lossy(field)))
                });
                object(out, named);
                out.extend_from_slice(separator.as_bytes());
            }
            // The recorded tests expect each record unchanged, including white space.
            (Output::Json(separator), Row::Json(json)) => {
                out.extend_from_slice(json.raw());
                out.extend_from_slice(separator.as_bytes());
            }
        }
        Ok(())
    }
}

/// Writes an object; missing values are omitted.
fn object<'a, V: std::borrow::Borrow<Value<'a>>>(
    out: &mut Vec<u8>,
    members: impl Iterator<Item = (Cow<'a, str>, V)>,
) {
    out.push(b'{');
    let mut is_first = true;
    for (name, value) in members {
        let value = value.borrow();
        if *value == Value::Missing {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        string(out, &name);
        out.push(b':');
        match value {
            Value::Missing | Value::Null => out.extend_from_slice(b"null"),
            Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => {
                out.extend_from_slice(value.display().as_bytes());
            }
            Value::Text(text) => string(out, text),
            Value::Time(moment) => string(out, &moment.iso()),
            Value::Json(json) => out.extend_from_slice(json.raw()),
        }
    }
    out.push(b'}');
}

fn string(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}
