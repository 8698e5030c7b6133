//! Finds the records of a JSON stream, and checks that each is well formed.
//!
//! Records are consecutive values, separated by white space or by the client's own separator; an
//! array around all of them is read as a stream of its items. A comma before a closing bracket is
//! ignored: the tests of Microsoft's SDKs send one and expect the record unchanged. The error texts
//! also follow these tests. Behaviour that no test shows is the emulator's own.

use crate::query::record::RecordTooLong;

/// Maximum nesting of objects and arrays. The limit is the emulator's own.
const DEPTH_MAX: usize = 256;

/// Why the stream cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The text is not JSON.
    Syntax(String),
    /// A record exceeds the maximum length.
    TooLong,
}

impl From<RecordTooLong> for Broken {
    fn from(_: RecordTooLong) -> Self {
        Broken::TooLong
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    ItemOrEnd,
    NameOrEnd,
    /// After a member's name.
    Colon,
    /// After a value within another.
    CommaOrEnd,
    /// In a string; `true` in a member's name.
    String(bool),
    Escape(bool),
    /// In a number or keyword.
    Literal,
}

/// Finds records in a stream of bytes.
#[derive(Debug)]
pub struct Scanner {
    separator: Vec<u8>,
    state: State,
    /// Open brackets in the current record.
    open: Vec<u8>,
    record: Vec<u8>,
    literal: usize,
    is_complete: bool,
    /// Whether the records are the items of an array.
    in_array: bool,
    /// Whether a record has just ended; within an array a comma must follow.
    after_item: bool,
    /// Whether the last record was neither object nor array; then the next must be one.
    after_scalar: bool,
    /// Bytes consumed since the start of the last record.
    since_start: u64,
}

impl Scanner {
    /// Creates a scanner for records with this separator.
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

    /// Consumes input up to the end of a record. Returns `true` if a record is complete.
    ///
    /// # Errors
    /// Fails if the stream is malformed or a record exceeds the maximum length.
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

    /// Ends the input. Returns `true` if a last number or keyword is complete.
    ///
    /// # Errors
    /// Fails if a record is incomplete.
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

    /// Returns the complete record.
    pub fn record(&self) -> &[u8] {
        &self.record
    }

    /// Returns the number of bytes since the start of the current or last record.
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

    fn between(&mut self, byte: u8) -> Result<(), Broken> {
        let at = self.since_start;
        self.since_start += 1;
        let passes = byte.is_ascii_whitespace() || self.separator.contains(&byte);
        match byte {
            b'[' if !self.in_array => (self.in_array, self.after_item) = (true, false),
            b',' if self.in_array && self.after_item => self.after_item = false,
            b']' if self.in_array => (self.in_array, self.after_item) = (false, true),
            b',' if !self.in_array && self.separator == b"," => {}
            // A byte order mark.
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

    /// Consumes the contents of a string up to a quote or backslash.
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

fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

fn unexpected(byte: u8, at: u64, expected: &str) -> Broken {
    let byte = char::from(byte);
    Broken::Syntax(format!(
        "Unexpected token '{byte}' at [byte: {at}]. Expecting tokens {expected}."
    ))
}
