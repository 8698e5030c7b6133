//! Writes rows as an Arrow stream: a schema, then batches of columns.
//!
//! Sources: "Arrow columnar format", serialisation and inter-process communication, with its
//! `Message.fbs` and `Schema.fbs`; recordings for what is sent when, down to the order in which the
//! tables are built. Written by hand, because six types and two messages do not justify a
//! dependency on the Arrow crates.

mod message;

use std::borrow::{Borrow, Cow};

use super::moment::Moment;
use super::value::{Fault, Number, Value};

/// Maximum digits of a 128-bit decimal. "Decimal", `Schema.fbs`.
const PRECISION_MAX: u32 = 38;

/// Size of a string's end offset, in bytes.
const END_BYTES: usize = size_of::<i32>();

/// A field of the schema that the client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the column; may be empty.
    pub name: String,
    /// Data type of the column.
    pub kind: Kind,
}

/// The supported data types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `int64`.
    Integer,
    /// `bool`.
    Boolean,
    /// `timestamp[ms]`.
    Timestamp,
    /// `string`.
    Text,
    /// `double`.
    Float,
    /// `decimal`.
    Decimal {
        /// Total number of digits.
        precision: u32,
        /// Digits after the decimal point.
        scale: u32,
    },
}

impl Kind {
    /// Returns the type with this name, or `None` if it is unknown or its digits are invalid.
    pub fn parse(name: &str, precision: u32, scale: u32) -> Option<Self> {
        Some(match name {
            "int64" => Kind::Integer,
            "bool" => Kind::Boolean,
            "timestamp[ms]" => Kind::Timestamp,
            "string" => Kind::Text,
            "double" => Kind::Float,
            "decimal" if (1..=PRECISION_MAX).contains(&precision) && scale <= precision => {
                Kind::Decimal { precision, scale }
            }
            _ => return None,
        })
    }
}

/// Collects rows and writes them in batches.
#[derive(Debug)]
pub struct Writer {
    fields: Vec<Field>,
    columns: Vec<Column>,
    rows: usize,
}

#[derive(Debug, Default)]
struct Column {
    /// Values of a fixed length, or concatenated strings.
    data: Vec<u8>,
    /// End offset of each string; the first begins at 0.
    ends: Vec<u8>,
    /// Which rows have a value; `nulls` counts those without.
    valid: Vec<bool>,
    nulls: usize,
}

impl Writer {
    /// Creates a writer for a schema.
    pub fn new(fields: Vec<Field>) -> Self {
        let columns = fields.iter().map(|_| Column::default()).collect();
        Writer {
            fields,
            columns,
            rows: 0,
        }
    }

    /// Returns the start of the stream: the schema, and a batch without rows.
    pub fn begin(&mut self) -> Vec<u8> {
        let mut out = message::schema(&self.fields);
        out.extend_from_slice(&self.batch());
        out
    }

    /// Adds a row. Assigns values to fields in order; missing values become null and surplus ones
    /// are dropped.
    ///
    /// # Errors
    /// [`Fault::InvalidTypeConversion`]; the row is then not added.
    pub fn row<'a, V: Borrow<Value<'a>>>(
        &mut self,
        mut values: impl Iterator<Item = V>,
    ) -> Result<(), Fault> {
        for (column, field) in self.columns.iter_mut().zip(&self.fields) {
            let cell = match values.next() {
                Some(value) => column.push(value.borrow(), field.kind),
                None => column.push(&Value::Null, field.kind),
            };
            if let Err(fault) = cell {
                self.forget_row();
                return Err(fault);
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn forget_row(&mut self) {
        for (column, field) in self.columns.iter_mut().zip(&self.fields) {
            column.truncate(self.rows, field.kind);
        }
    }

    /// Returns the number of fields in the schema.
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Returns the number of buffered bytes.
    pub fn held_bytes(&self) -> usize {
        self.columns
            .iter()
            .map(|column| column.data.len() + column.ends.len() + column.valid.len())
            .sum()
    }

    /// Returns the rows since the last call as a batch; `None` if there are none.
    pub fn flush(&mut self) -> Option<Vec<u8>> {
        (self.rows > 0).then(|| self.batch())
    }

    fn batch(&mut self) -> Vec<u8> {
        let rows = std::mem::take(&mut self.rows);
        let mut body = message::Body::new(rows);
        for (column, field) in self.columns.iter_mut().zip(&self.fields) {
            let column = std::mem::take(column);
            column.write(&mut body, field.kind, rows);
        }
        body.finish()
    }
}

enum Cell<'v> {
    Null,
    Bit(bool),
    Bytes8([u8; 8]),
    Bytes16([u8; 16]),
    Text(Cow<'v, str>),
}

impl<'v> Cell<'v> {
    fn of(value: &'v Value<'_>, kind: Kind) -> Result<Self, Fault> {
        if value.is_null() {
            return Ok(Cell::Null);
        }
        Ok(match kind {
            Kind::Integer => match value.number()? {
                Number::Integer(number) => Cell::Bytes8(number.to_le_bytes()),
                Number::Float(_) => return Err(Fault::InvalidTypeConversion),
            },
            Kind::Boolean => Cell::Bit(value.boolean()?),
            Kind::Timestamp => Cell::Bytes8(value.moment().map(Moment::unix_ms)?.to_le_bytes()),
            Kind::Text => Cell::Text(value.display()),
            Kind::Float => Cell::Bytes8(value.number()?.float().to_le_bytes()),
            Kind::Decimal { precision, scale } => {
                let number = decimal(&value.display(), precision, scale);
                Cell::Bytes16(number.ok_or(Fault::InvalidTypeConversion)?.to_le_bytes())
            }
        })
    }
}

/// Parses the digits of a decimal. An integer is taken literally, as recorded: `400` of scale 2 is
/// sent as 400, which reads as 4.00. A number with a point is extended to the scale.
fn decimal(text: &str, precision: u32, scale: u32) -> Option<i128> {
    let text = text.trim();
    let number: i128 = match text.split_once('.') {
        None => text.parse().ok()?,
        Some((whole, fraction)) => {
            let scale = usize::try_from(scale).ok()?;
            let is_fraction = fraction.bytes().all(|byte| byte.is_ascii_digit());
            if !is_fraction || fraction.len() > scale {
                return None;
            }
            format!("{whole}{fraction:0<scale$}").parse().ok()?
        }
    };
    let limit = 10_i128.checked_pow(precision)?;
    (-limit < number && number < limit).then_some(number)
}

impl Column {
    fn push(&mut self, value: &Value<'_>, kind: Kind) -> Result<(), Fault> {
        let cell = Cell::of(value, kind)?;
        match &cell {
            Cell::Null => self.data.resize(self.data.len() + width(kind), 0),
            Cell::Bit(bit) => self.data.push(u8::from(*bit)),
            Cell::Bytes8(bytes) => self.data.extend_from_slice(bytes),
            Cell::Bytes16(bytes) => self.data.extend_from_slice(bytes),
            Cell::Text(text) => self.data.extend_from_slice(text.as_bytes()),
        }
        let is_valid = !matches!(cell, Cell::Null);
        self.valid.push(is_valid);
        self.nulls += usize::from(!is_valid);
        if kind == Kind::Text {
            // A batch is far shorter than 2^31 bytes.
            let end = i32::try_from(self.data.len()).unwrap_or(i32::MAX);
            self.ends.extend_from_slice(&end.to_le_bytes());
        }
        Ok(())
    }

    fn truncate(&mut self, rows: usize, kind: Kind) {
        let is_null = |valid: &&bool| !**valid;
        let dropped = self.valid.get(rows..).unwrap_or_default();
        self.nulls -= dropped.iter().filter(is_null).count();
        self.valid.truncate(rows);
        if kind == Kind::Text {
            self.ends.truncate(rows * END_BYTES);
            let last = self.ends.last_chunk().copied().map(i32::from_le_bytes);
            let length = usize::try_from(last.unwrap_or_default());
            self.data.truncate(length.unwrap_or_default());
        } else {
            self.data.truncate(rows * width(kind));
        }
    }

    fn write(self, body: &mut message::Body, kind: Kind, rows: usize) {
        body.node(rows, self.nulls);
        match self.nulls {
            0 => body.buffer(&[]),
            _ => body.buffer(&bits(self.valid.iter().copied())),
        }
        match kind {
            Kind::Boolean => body.buffer(&bits(self.data.iter().map(|byte| *byte != 0))),
            Kind::Text => {
                let first = 0_i32.to_le_bytes();
                let ends = match rows {
                    0 => Vec::new(),
                    _ => [first.as_slice(), &self.ends].concat(),
                };
                body.buffer(&ends);
                body.buffer(&self.data);
            }
            _ => body.buffer(&self.data),
        }
    }
}

/// Size of a value in bytes; 0 for strings.
fn width(kind: Kind) -> usize {
    match kind {
        Kind::Integer | Kind::Timestamp | Kind::Float => 8,
        Kind::Decimal { .. } => 16,
        Kind::Boolean => 1,
        Kind::Text => 0,
    }
}

/// Packs eight values per byte, lowest bit first.
fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, value) in values.enumerate() {
        if index % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(value) << (index % 8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
