//! Tokens of a filter.

use crate::error::{ErrorCode, StorageError};
use crate::table::address::quoted;
use crate::table::literal;
use crate::table::value::{EdmType, Value};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A property, an operator or another keyword.
    Word(String),
    Literal(Value),
    Open,
    Close,
    End,
}

/// Splits a filter into tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// Bytes consumed so far.
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Lexer { text, at: 0 }
    }

    /// Returns the error for the last token, with the position after it in UTF-16 units, as
    /// recorded.
    pub(super) fn error(&self) -> StorageError {
        let read = self.text.get(..self.at).unwrap_or(self.text);
        let position = read.encode_utf16().count();
        let message = format!("Syntax error at position {position} in '{}'.", self.text);
        StorageError::new(ErrorCode::InvalidInput).with_message(message)
    }

    pub(super) fn next(&mut self) -> Result<Token, StorageError> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.at += blank;
        let rest = self.rest();
        match rest.chars().next() {
            None => Ok(Token::End),
            Some('(') => Ok(self.take(1, Token::Open)),
            Some(')') => Ok(self.take(1, Token::Close)),
            Some('\'') => self.text_literal(),
            Some(c) if c.is_ascii_digit() || c == '-' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.word(),
            Some(c) => {
                self.at += c.len_utf8();
                Err(self.error())
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, bytes: usize, token: Token) -> Token {
        self.at += bytes;
        token
    }

    /// Parses `'O''Neil'`.
    fn text_literal(&mut self) -> Result<Token, StorageError> {
        let (text, behind) = quoted(self.rest()).ok_or_else(|| self.error_at_end())?;
        self.at = self.text.len() - behind.len();
        Ok(Token::Literal(Value::String(text)))
    }

    /// Parses a word, or a literal with a prefix: `guid'..'`.
    fn word(&mut self) -> Result<Token, StorageError> {
        let word = leading(self.rest(), |c| c.is_alphanumeric() || c == '_');
        self.at += word.len();
        if self.rest().starts_with('\'') {
            return self.typed(word);
        }
        Ok(match word {
            // Accepted in any case, as Azurite observed of production (its issue 1947).
            _ if word.eq_ignore_ascii_case("true") => Token::Literal(Value::Boolean(true)),
            _ if word.eq_ignore_ascii_case("false") => Token::Literal(Value::Boolean(false)),
            "NaN" => Token::Literal(Value::Double(f64::NAN)),
            "INF" => Token::Literal(Value::Double(f64::INFINITY)),
            _ => Token::Word(word.to_owned()),
        })
    }

    fn typed(&mut self, word: &str) -> Result<Token, StorageError> {
        let Token::Literal(Value::String(text)) = self.text_literal()? else {
            return Err(self.error());
        };
        let value = match word {
            "datetime" => literal::read(EdmType::DateTime, &text),
            "guid" => literal::read(EdmType::Guid, &text),
            "X" | "binary" => hex(&text).map(Value::Binary),
            _ => None,
        };
        value.map(Token::Literal).ok_or_else(|| self.error())
    }

    /// Parses `7`, `-7L`, `7.5`, `1e3`, `7d`, `-INF`.
    fn number(&mut self) -> Result<Token, StorageError> {
        let mut previous = ' ';
        let word = leading(self.rest(), |c| {
            let sign = matches!(c, '+' | '-') && matches!(previous, ' ' | 'e' | 'E');
            previous = c;
            sign || c.is_ascii_alphanumeric() || c == '.'
        });
        self.at += word.len();
        number_value(word)
            .map(Token::Literal)
            .ok_or_else(|| self.error())
    }

    fn error_at_end(&self) -> StorageError {
        let end = Lexer {
            text: self.text,
            at: self.text.len(),
        };
        end.error()
    }
}

/// Returns the leading characters for which `belongs` is true.
fn leading(text: &str, mut belongs: impl FnMut(char) -> bool) -> &str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Parses a number by its form: `L` marks an `Edm.Int64`; a point, an exponent or `d` an
/// `Edm.Double`; a number too large for an `Edm.Int32` is an `Edm.Int64`.
fn number_value(word: &str) -> Option<Value> {
    if word == "-INF" {
        return Some(Value::Double(f64::NEG_INFINITY));
    }
    if let Some(digits) = word.strip_suffix(['L', 'l']) {
        return literal::read(EdmType::Int64, digits);
    }
    if let Some(number) = word.strip_suffix(['d', 'D']) {
        return literal::read(EdmType::Double, number);
    }
    if word.contains(['.', 'e', 'E']) {
        return literal::read(EdmType::Double, word);
    }
    literal::read(EdmType::Int32, word).or_else(|| literal::read(EdmType::Int64, word))
}

/// Parses bytes from pairs of hexadecimal digits.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits?;
    digits.len().is_multiple_of(2).then(|| {
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}
