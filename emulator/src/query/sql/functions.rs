//! Function calls: the regular ones, and those with keywords between the parentheses.

use smalt_protocol::StorageError;

use super::expression::Parser;
use super::lexer::Token;
use super::{DatePart, Expr, Function, Type, refuse, syntax_error};

impl Parser {
    pub(super) fn call(&mut self) -> Result<Expr, StorageError> {
        let Some(Token::Word(name)) = self.next() else {
            return Err(syntax_error());
        };
        let name = name.to_ascii_uppercase();
        match name.as_str() {
            "CAST" => self.cast(),
            "EXTRACT" => self.extract(),
            "TRIM" => self.trim(),
            "SUBSTRING" => self.substring(),
            "DATE_ADD" => self.dates(Function::DateAdd),
            "DATE_DIFF" => self.dates(Function::DateDiff),
            _ => self.plain(&name),
        }
    }

    fn plain(&mut self, name: &str) -> Result<Expr, StorageError> {
        let (function, arguments) = match name {
            "CHAR_LENGTH" | "CHARACTER_LENGTH" => (Function::CharLength, 1..=1),
            "LOWER" => (Function::Lower, 1..=1),
            "UPPER" => (Function::Upper, 1..=1),
            "TO_STRING" => (Function::ToString, 2..=2),
            "TO_TIMESTAMP" => (Function::ToTimestamp, 1..=1),
            "UTCNOW" => (Function::UtcNow, 0..=0),
            "NULLIF" => (Function::NullIf, 2..=2),
            "COALESCE" => (Function::Coalesce, 1..=usize::MAX),
            _ => return Err(refuse(&format!("Unknown function {name}."))),
        };
        let given = if self.peek(1) == Some(&Token::Sign(")")) {
            self.skip(2);
            Vec::new()
        } else {
            self.list()?
        };
        match arguments.contains(&given.len()) {
            true => Ok(Expr::Call(function, given)),
            false => Err(syntax_error()),
        }
    }

    /// Parses `CAST(value AS type)`.
    fn cast(&mut self) -> Result<Expr, StorageError> {
        self.sign("(")?;
        let value = self.expression()?;
        self.keyword("AS")?;
        let Some(Token::Word(name)) = self.next() else {
            return Err(syntax_error());
        };
        let to = match name.to_ascii_uppercase().as_str() {
            "INT" | "INTEGER" => Type::Integer,
            "FLOAT" | "DECIMAL" | "NUMERIC" => Type::Float,
            "STRING" => Type::Text,
            "TIMESTAMP" => Type::Timestamp,
            "BOOL" | "BOOLEAN" => Type::Boolean,
            _ => return Err(refuse(&format!("Unknown data type {name}."))),
        };
        self.sign(")")?;
        Ok(Expr::Cast(Box::new(value), to))
    }

    /// Parses `EXTRACT(part FROM time)`.
    fn extract(&mut self) -> Result<Expr, StorageError> {
        self.sign("(")?;
        let part = self.date_part()?;
        self.keyword("FROM")?;
        let time = self.expression()?;
        self.sign(")")?;
        Ok(Expr::Call(Function::Extract(part), vec![time]))
    }

    /// Parses `TRIM([LEADING | TRAILING | BOTH] [characters] FROM text)` or `TRIM(text)`.
    fn trim(&mut self) -> Result<Expr, StorageError> {
        self.sign("(")?;
        let (start, end) = if self.takes("LEADING") {
            (true, false)
        } else if self.takes("TRAILING") {
            (false, true)
        } else {
            self.takes("BOTH");
            (true, true)
        };
        let mut arguments = Vec::new();
        if self.takes("FROM") {
            arguments.push(self.expression()?);
        } else {
            let first = self.expression()?;
            if self.takes("FROM") {
                arguments.push(self.expression()?);
            }
            // The text comes first, then the characters to remove.
            arguments.push(first);
        }
        self.sign(")")?;
        Ok(Expr::Call(Function::Trim(start, end), arguments))
    }

    /// Parses `SUBSTRING(text, first[, count])` or `SUBSTRING(text FROM first [FOR count])`.
    fn substring(&mut self) -> Result<Expr, StorageError> {
        self.sign("(")?;
        let mut arguments = vec![self.expression()?];
        if !self.takes("FROM") {
            self.sign(",")?;
        }
        arguments.push(self.expression()?);
        if self.takes("FOR") || self.takes_sign(",") {
            arguments.push(self.expression()?);
        }
        self.sign(")")?;
        Ok(Expr::Call(Function::Substring, arguments))
    }

    /// Parses `DATE_ADD(part, quantity, time)` or `DATE_DIFF(part, time, time)`.
    fn dates(&mut self, function: fn(DatePart) -> Function) -> Result<Expr, StorageError> {
        self.sign("(")?;
        let part = self.date_part()?;
        if matches!(part, DatePart::TimezoneHour | DatePart::TimezoneMinute) {
            return Err(syntax_error());
        }
        self.sign(",")?;
        let first = self.expression()?;
        self.sign(",")?;
        let second = self.expression()?;
        self.sign(")")?;
        Ok(Expr::Call(function(part), vec![first, second]))
    }

    /// Parses a date part, optionally in quotes.
    fn date_part(&mut self) -> Result<DatePart, StorageError> {
        let (Some(Token::Word(word)) | Some(Token::Text(word))) = self.next() else {
            return Err(syntax_error());
        };
        Ok(match word.to_ascii_lowercase().as_str() {
            "year" => DatePart::Year,
            "month" => DatePart::Month,
            "day" => DatePart::Day,
            "hour" => DatePart::Hour,
            "minute" => DatePart::Minute,
            "second" => DatePart::Second,
            "timezone_hour" => DatePart::TimezoneHour,
            "timezone_minute" => DatePart::TimezoneMinute,
            _ => return Err(syntax_error()),
        })
    }
}
