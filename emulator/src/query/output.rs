//! Rows as they are answered.

use std::borrow::Cow;

use super::csv;
use super::request::Format;
use super::row::Row;
use super::value::Value;

/// Writes rows in the format that was asked for.
#[derive(Debug)]
pub enum Output {
    /// Delimited text.
    Delimited(csv::Writer),
    /// JSON, with this text after each record.
    Json(String),
}

impl From<Format> for Output {
    fn from(format: Format) -> Self {
        match format {
            Format::Delimited(dialect) => Output::Delimited(csv::Writer::new(dialect)),
            Format::Json(separator) => Output::Json(separator),
        }
    }
}

/// The name of a field that has none: its position from 1.
pub fn ordinal_name(index: usize) -> String {
    format!("_{}", index + 1)
}

impl Output {
    /// Whether a record of names is asked for.
    pub fn has_headers(&self) -> bool {
        matches!(self, Output::Delimited(writer) if writer.has_headers())
    }

    /// The record of names.
    pub fn header(&self, out: &mut Vec<u8>, names: &[String]) {
        if let Output::Delimited(writer) = self {
            for (index, name) in names.iter().enumerate() {
                writer.field(out, index, name.as_bytes());
            }
            writer.end(out);
        }
    }

    /// Selected values with their names.
    pub fn values(&self, out: &mut Vec<u8>, names: &[String], values: &[Value<'_>]) {
        match self {
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
    }

    /// A row as it is; `names` are those of the header row, where there is one.
    pub fn whole(&self, out: &mut Vec<u8>, names: &[String], row: Row<'_>) {
        match (self, row) {
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
                    (name, Value::Text(super::row::text(field)))
                });
                object(out, named);
                out.extend_from_slice(separator.as_bytes());
            }
            // The recorded tests get each record back as it was, white space included.
            (Output::Json(separator), Row::Json(json)) => {
                out.extend_from_slice(json.raw());
                out.extend_from_slice(separator.as_bytes());
            }
        }
    }
}

/// What is missing is left out.
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
