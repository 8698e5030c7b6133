//! Reads delimited text record by record from pieces of any size, and writes it.
//!
//! Source: "Query Blob Contents", delimited text configuration; the tests of Microsoft's SDKs: if
//! records end with `\n`, a preceding carriage return belongs to the separator, and a written field
//! is quoted only if necessary. Common CSV libraries support only single-byte separators; here each
//! is a string.

use super::row::Fields;
use crate::query::record::RecordTooLong;

/// Separators and quoting of delimited text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Separator between fields.
    pub column: String,
    /// Separator after each record.
    pub record: String,
    /// Quote around fields with special characters; `None` disables quoting.
    pub quote: Option<u8>,
    /// Character that makes the next one literal; `None` disables escaping.
    pub escape: Option<u8>,
    /// Whether the first record contains the field names.
    pub has_headers: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Dialect {
            column: ",".to_owned(),
            record: "\n".to_owned(),
            quote: Some(b'"'),
            escape: None,
            has_headers: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// In an unquoted field, or after the closing quote.
    Plain,
    Quoted,
    /// After a quote that may be the closing one.
    Closed,
    /// After an escape character; `true` inside quotes.
    Escaped(bool),
}

/// Finds records in a stream of bytes.
#[derive(Debug)]
pub struct Reader {
    dialect: Dialect,
    /// Bytes with a special meaning outside quotes.
    special: [bool; 256],
    state: State,
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Length of the part of `bytes` that cannot belong to a separator.
    fixed: usize,
    is_complete: bool,
    has_begun: bool,
}

impl Reader {
    /// Creates a reader for a dialect.
    pub fn new(dialect: Dialect) -> Self {
        let mut special = [false; 256];
        let last = |text: &str| text.as_bytes().last().copied();
        let signs = [last(&dialect.column), last(&dialect.record), dialect.escape];
        for sign in signs.into_iter().flatten() {
            special[usize::from(sign)] = true;
        }
        Reader {
            dialect,
            special,
            state: State::Start,
            bytes: Vec::new(),
            ends: Vec::new(),
            fixed: 0,
            is_complete: false,
            has_begun: false,
        }
    }

    /// Consumes input up to the end of a record. Returns `true` if a record is complete.
    ///
    /// # Errors
    /// Fails if a record exceeds the maximum length.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<bool, RecordTooLong> {
        self.start_over();
        while let Some((&byte, rest)) = input.split_first() {
            self.has_begun = true;
            if self.take_plain(input) {
                RecordTooLong::check(self.bytes.len())?;
                continue;
            }
            *input = rest;
            self.take(byte);
            if self.is_complete {
                return Ok(true);
            }
            RecordTooLong::check(self.bytes.len() + size_of_val(self.ends.as_slice()))?;
        }
        Ok(false)
    }

    /// Ends the input. Returns `true` if there is a last record without a separator.
    pub fn finish(&mut self) -> bool {
        self.start_over();
        if !self.has_begun {
            return false;
        }
        self.end_record();
        true
    }

    /// Returns the fields of the complete record.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.ends)
    }

    fn start_over(&mut self) {
        if self.is_complete {
            self.bytes.clear();
            self.ends.clear();
            self.fixed = 0;
            self.is_complete = false;
            self.has_begun = false;
            self.state = State::Start;
        }
    }

    fn take_plain(&mut self, input: &mut &[u8]) -> bool {
        let run = match self.state {
            State::Plain => input.iter().position(|b| self.special[usize::from(*b)]),
            State::Quoted => {
                let (quote, escape) = (self.dialect.quote, self.dialect.escape);
                input
                    .iter()
                    .position(|b| Some(*b) == quote || Some(*b) == escape)
            }
            _ => return false,
        };
        let run = run.unwrap_or(input.len());
        let (plain, rest) = input.split_at(run);
        self.bytes.extend_from_slice(plain);
        if self.state == State::Quoted {
            self.fixed = self.bytes.len();
        }
        *input = rest;
        run > 0
    }

    fn take(&mut self, byte: u8) {
        let (quote, escape) = (self.dialect.quote, self.dialect.escape);
        match self.state {
            State::Escaped(in_quotes) => {
                self.literal(byte);
                self.state = if in_quotes {
                    State::Quoted
                } else {
                    State::Plain
                };
            }
            State::Start if Some(byte) == quote => self.state = State::Quoted,
            // A doubled quote is a literal quote.
            State::Closed if Some(byte) == quote => {
                self.literal(byte);
                self.state = State::Quoted;
            }
            State::Quoted if Some(byte) == escape && escape != quote => {
                self.state = State::Escaped(true);
            }
            State::Quoted if Some(byte) == quote => self.state = State::Closed,
            State::Quoted => self.literal(byte),
            _ if Some(byte) == escape && escape != quote => self.state = State::Escaped(false),
            _ => self.plain(byte),
        }
    }

    /// Adds a byte that cannot belong to a separator.
    fn literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.fixed = self.bytes.len();
    }

    fn plain(&mut self, byte: u8) {
        self.state = State::Plain;
        self.bytes.push(byte);
        if self.ends_with(|dialect| &dialect.record) {
            self.bytes
                .truncate(self.bytes.len() - self.dialect.record.len());
            let is_line = self.dialect.record == "\n";
            if is_line && self.bytes.len() > self.fixed && self.bytes.last() == Some(&b'\r') {
                self.bytes.pop();
            }
            self.end_record();
        } else if self.ends_with(|dialect| &dialect.column) {
            self.bytes
                .truncate(self.bytes.len() - self.dialect.column.len());
            self.end_field();
        }
    }

    fn ends_with(&self, separator: impl Fn(&Dialect) -> &String) -> bool {
        let loose = self.bytes.get(self.fixed..).unwrap_or_default();
        loose.ends_with(separator(&self.dialect).as_bytes())
    }

    fn end_field(&mut self) {
        // A record is far shorter than 2^32 bytes.
        self.ends
            .push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.fixed = self.bytes.len();
        self.state = State::Start;
    }

    fn end_record(&mut self) {
        self.end_field();
        self.is_complete = true;
    }
}

/// Writes delimited text.
#[derive(Debug)]
pub struct Writer {
    dialect: Dialect,
}

impl Writer {
    /// Creates a writer for a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Writer { dialect }
    }

    /// Returns `true` if the first record must contain the field names.
    pub fn has_headers(&self) -> bool {
        self.dialect.has_headers
    }

    /// Appends a field; `index` is its position in the record, from 0.
    pub fn field(&self, out: &mut Vec<u8>, index: usize, field: &[u8]) {
        if index > 0 {
            out.extend_from_slice(self.dialect.column.as_bytes());
        }
        match self.dialect.quote {
            Some(quote) if self.needs_quotes(field, quote) => {
                out.push(quote);
                let escape = self.dialect.escape.unwrap_or(quote);
                for &byte in field {
                    if byte == quote || byte == escape {
                        out.push(escape);
                    }
                    out.push(byte);
                }
                out.push(quote);
            }
            Some(_) => out.extend_from_slice(field),
            None => self.escaped(out, field),
        }
    }

    /// Appends the record separator.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.dialect.record.as_bytes());
    }

    fn needs_quotes(&self, field: &[u8], quote: u8) -> bool {
        // Any byte of a separator could form one with the separator that follows.
        let separators = [&self.dialect.column, &self.dialect.record];
        let mut signs = separators
            .into_iter()
            .flat_map(|separator| separator.bytes());
        let is_line = self.dialect.record == "\n";
        signs.any(|sign| memchr::memchr(sign, field).is_some())
            || memchr::memchr(quote, field).is_some()
            || self
                .dialect
                .escape
                .is_some_and(|escape| field.contains(&escape))
            || (is_line && field.ends_with(b"\r"))
    }

    /// Appends an unquoted field, escaping separator bytes if the dialect has an escape character.
    fn escaped(&self, out: &mut Vec<u8>, field: &[u8]) {
        let Some(escape) = self.dialect.escape else {
            out.extend_from_slice(field);
            return;
        };
        let separators = [&self.dialect.column, &self.dialect.record];
        for &byte in field {
            let separates = separators.iter().any(|s| s.as_bytes().contains(&byte));
            if separates || byte == escape {
                out.push(escape);
            }
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests;
