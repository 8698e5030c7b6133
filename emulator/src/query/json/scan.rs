//! Finds the records of a stream of JSON, and proves each well formed.
//!
//! Records are values one after the other, with white space, or a separator of the client's own,
//! between them; an array around all of them is taken for a stream of its items. A comma before a
//! closing bracket is passed over: the tests of Microsoft's SDKs send it and get the record back.
//! So is told the text of an error. Whatever no test shows is ours.

use crate::query::record::RecordTooLong;

/// Objects and arrays within each other: ours.
const DEPTH_MAX: usize = 256;

/// Why there are no records any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The text is not JSON.
    Syntax(String),
    /// A record is longer than what is held of one.
    TooLong,
}

impl From<RecordTooLong> for Broken {
    fn from(_: RecordTooLong) -> Self {
        Broken::TooLong
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a value.
    Value,
    /// Before a value or the end of the array.
    ItemOrEnd,
    /// Before a member or the end of the object.
    NameOrEnd,
    /// Behind a member's name.
    Colon,
    /// Behind a value within another.
    CommaOrEnd,
    /// In a string; whether it is a member's name.
    String(bool),
    /// Behind a backslash.
    Escape(bool),
    /// In a number or word.
    Literal,
}

/// Finds records.
#[derive(Debug)]
pub struct Scanner {
    separator: Vec<u8>,
    state: State,
    /// Open brackets within the record.
    open: Vec<u8>,
    record: Vec<u8>,
    literal: usize,
    is_complete: bool,
    /// Records are the items of an array.
    in_array: bool,
    /// A record ended: in an array a comma has to come.
    after_item: bool,
    /// The last record was neither object nor array: only these may follow.
    after_scalar: bool,
    /// Bytes of the whole since the start of the last record.
    since_start: u64,
}

impl Scanner {
    /// A scanner of records with this text between them.
    pub fn new(separator: &str) -> Self {
        Scanner {
            separator: separator.as_bytes().to_vec(),
            state: State::Value,
            open: Vec::new(),
            record: Vec::new(),
            literal: 0,
            is_complete: false,
            in_array: false,
            after_item: false,
            after_scalar: false,
            since_start: 0,
        }
    }

    /// Takes bytes up to the end of a record; whether one is complete.
    ///
    /// # Errors
    /// Where no record can follow any more.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<bool, Broken> {
        self.start_over();
        while let Some((&byte, rest)) = input.split_first() {
            if matches!(self.state, State::String(_)) && self.take_string(input) {
                RecordTooLong::check(self.record.len())?;
                continue;
            }
            if self.is_between() {
                *input = rest;
                self.between(byte)?;
                continue;
            }
            if self.state == State::Literal && !is_literal(byte) {
                self.end_literal(byte)?;
                if self.is_complete {
                    return Ok(true);
                }
                continue;
            }
            *input = rest;
            self.since_start += 1;
            self.record.push(byte);
            self.take(byte)?;
            if self.is_complete {
                return Ok(true);
            }
            RecordTooLong::check(self.record.len())?;
        }
        Ok(false)
    }

    /// The input has ended; whether a number or word is left.
    ///
    /// # Errors
    /// Where a record is not whole.
    pub fn finish(&mut self) -> Result<bool, Broken> {
        self.start_over();
        if self.state == State::Literal && self.open.is_empty() {
            self.end_literal(b' ')?;
            return Ok(true);
        }
        if self.record.is_empty() && !self.in_array {
            return Ok(false);
        }
        Err(Broken::Syntax(format!(
            "Unexpected end of input at [byte: {}].",
            self.since_start
        )))
    }

    /// The record that is complete.
    pub fn record(&self) -> &[u8] {
        &self.record
    }

    /// How many bytes ago the present or last record began.
    pub fn since_start(&self) -> u64 {
        self.since_start
    }

    fn start_over(&mut self) {
        if self.is_complete {
            self.record.clear();
            self.is_complete = false;
            self.state = State::Value;
        }
    }

    fn is_between(&self) -> bool {
        self.record.is_empty()
    }

    /// A byte between two records.
    fn between(&mut self, byte: u8) -> Result<(), Broken> {
        let at = self.since_start;
        self.since_start += 1;
        let passes = byte.is_ascii_whitespace() || self.separator.contains(&byte);
        match byte {
            b'[' if !self.in_array => (self.in_array, self.after_item) = (true, false),
            b',' if self.in_array && self.after_item => self.after_item = false,
            b']' if self.in_array => (self.in_array, self.after_item) = (false, true),
            b',' if !self.in_array && self.separator == b"," => {}
            // A mark of the byte order.
            0xef | 0xbb | 0xbf if !self.after_item => {}
            _ if self.in_array && self.after_item && !passes => {
                return Err(unexpected(byte, at, "',', or ']'"));
            }
            b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'
                if !self.after_scalar || b"{[".contains(&byte) =>
            {
                self.since_start = 1;
                self.after_item = false;
                self.after_scalar = false;
                self.record.push(byte);
                self.take(byte)?;
            }
            _ if passes => {}
            _ => return Err(unexpected(byte, at, "'{', or '['")),
        }
        Ok(())
    }

    /// Takes the inside of a string up to its end or a backslash.
    fn take_string(&mut self, input: &mut &[u8]) -> bool {
        let end = memchr::memchr2(b'"', b'\\', input).unwrap_or(input.len());
        let (inside, rest) = input.split_at(end);
        self.record.extend_from_slice(inside);
        self.since_start += inside.len() as u64;
        *input = rest;
        end > 0
    }

    fn take(&mut self, byte: u8) -> Result<(), Broken> {
        let at = self.since_start - 1;
        let is_blank = byte.is_ascii_whitespace();
        match (self.state, byte) {
            (State::String(name), b'"') => self.end_value(name),
            (State::String(name), b'\\') => self.state = State::Escape(name),
            (State::String(_), _) => {}
            (State::Escape(name), _) => self.state = State::String(name),
            (State::Literal, _) => {}
            (_, _) if is_blank => {}
            (State::ItemOrEnd | State::CommaOrEnd, b']') => self.close(b'[', byte)?,
            (State::NameOrEnd | State::CommaOrEnd, b'}') => self.close(b'{', byte)?,
            (State::NameOrEnd, b'"') => self.state = State::String(true),
            (State::Colon, b':') => self.state = State::Value,
            (State::CommaOrEnd, b',') => {
                let in_object = self.open.last() == Some(&b'{');
                self.state = if in_object {
                    State::NameOrEnd
                } else {
                    State::ItemOrEnd
                };
            }
            (State::Value | State::ItemOrEnd, b'{' | b'[') => {
                if self.open.len() >= DEPTH_MAX {
                    return Err(unexpected(byte, at, "fewer brackets"));
                }
                self.open.push(byte);
                self.state = if byte == b'{' {
                    State::NameOrEnd
                } else {
                    State::ItemOrEnd
                };
            }
            (State::Value | State::ItemOrEnd, b'"') => self.state = State::String(false),
            (State::Value | State::ItemOrEnd, byte) if is_literal(byte) => {
                self.literal = self.record.len() - 1;
                self.state = State::Literal;
            }
            (state, byte) => return Err(unexpected(byte, at, state.expects())),
        }
        Ok(())
    }

    fn close(&mut self, opened: u8, byte: u8) -> Result<(), Broken> {
        if self.open.last() != Some(&opened) {
            let expected = State::CommaOrEnd.expects();
            return Err(unexpected(byte, self.since_start - 1, expected));
        }
        self.open.pop();
        self.end_value(false);
        Ok(())
    }

    fn end_value(&mut self, is_name: bool) {
        if is_name {
            self.state = State::Colon;
        } else if self.open.is_empty() {
            self.is_complete = true;
            self.after_item = true;
            self.after_scalar = !matches!(self.record.first(), Some(b'{' | b'['));
        } else {
            self.state = State::CommaOrEnd;
        }
    }

    fn end_literal(&mut self, next: u8) -> Result<(), Broken> {
        let literal = self.record.get(self.literal..).unwrap_or_default();
        if serde_json::from_slice::<serde::de::IgnoredAny>(literal).is_err() {
            let at = self.since_start - literal.len() as u64;
            let first = literal.first().copied().unwrap_or(next);
            return Err(unexpected(first, at, "a value"));
        }
        self.end_value(false);
        Ok(())
    }
}

impl State {
    fn expects(self) -> &'static str {
        match self {
            State::NameOrEnd => "'\"', or '}'",
            State::Colon => "':'",
            State::CommaOrEnd => "',', or a closing bracket",
            _ => "a value",
        }
    }
}

/// A byte of numbers and words.
fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

fn unexpected(byte: u8, at: u64, expected: &str) -> Broken {
    let byte = char::from(byte);
    Broken::Syntax(format!(
        "Unexpected token '{byte}' at [byte: {at}]. Expecting tokens {expected}."
    ))
}
