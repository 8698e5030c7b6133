//! The statements of the language, parsed.
//!
//! Source: "Query acceleration SQL language reference".

mod expression;
mod functions;
mod lexer;
mod statement;
mod walk;

use smalt_protocol::{ErrorCode, StorageError};

pub use statement::parse;

/// `SELECT … FROM … [WHERE …] [LIMIT …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What is answered for the rows that remain.
    pub select: Select,
    /// Where rows come from.
    pub from: Table,
    /// Which rows remain.
    pub condition: Option<Expr>,
    /// How many of them at most.
    pub limit: Option<u64>,
}

/// What is selected.
#[derive(Clone, Debug, PartialEq)]
pub enum Select {
    /// `*`: the row as it is.
    All,
    /// One value after the other.
    Columns(Vec<Column>),
    /// One value over all rows.
    Aggregate(Aggregate),
    /// `sys.split(bytes)`: where to cut the blob.
    Split(u64),
}

/// One selected value.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The value.
    pub value: Expr,
    /// Its name, where it was given one.
    pub alias: Option<String>,
}

/// One value over all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Of what; nothing for `COUNT(*)`.
    pub of: Option<Expr>,
    /// Its name, where it was given one.
    pub alias: Option<String>,
}

/// Functions over all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// How many rows, or how many values that are not null.
    Count,
    /// The sum of the values.
    Sum,
    /// Their mean.
    Average,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// `BlobStorage`, for JSON with the path of the values that are rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Steps below a record.
    pub path: Vec<Step>,
    /// Another name for the table.
    pub alias: Option<String>,
}

/// One step down a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `[*]`: each item of an array.
    Each,
    /// `[n]`: one item, from 0.
    Item(usize),
    /// `.name`: a member.
    Member(Name),
}

/// A name of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// As written, without quotes.
    pub text: String,
    /// It was quoted: case counts.
    pub is_exact: bool,
}

impl Name {
    /// Whether a field of this name is meant.
    pub fn matches(&self, field: &str) -> bool {
        if self.is_exact {
            self.text == field
        } else {
            self.text.eq_ignore_ascii_case(field)
        }
    }

    /// The position from 0 that `_1`, `_2`, … stand for.
    pub fn ordinal(&self) -> Option<usize> {
        let digits = self.text.strip_prefix('_')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let ordinal: usize = is_number.then(|| digits.parse().ok()).flatten()?;
        ordinal.checked_sub(1)
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A field by name, and what is below it.
    Field(Name, Vec<Step>),
    /// A field of delimited text by position, from 0.
    Ordinal(usize),
    /// All of them.
    And(Vec<Expr>),
    /// Any of them.
    Or(Vec<Expr>),
    /// The opposite.
    Not(Box<Expr>),
    /// The number below zero.
    Negate(Box<Expr>),
    /// A value, and what is done to it from left to right.
    Arithmetic(Box<Expr>, Vec<(Operator, Expr)>),
    /// Two values compared.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// Null, or not there at all.
    IsNull(Box<Expr>),
    /// Not there at all.
    IsMissing(Box<Expr>),
    /// Value, pattern, escape character.
    Like(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    /// Value, least, greatest.
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Any of a list.
    In(Box<Expr>, Vec<Expr>),
    /// `CASE`: what is compared, conditions with results, the result otherwise.
    Case(Option<Box<Expr>>, Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// `CAST`.
    Cast(Box<Expr>, Type),
    /// A function.
    Call(Function, Vec<Expr>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`.
    Null,
    /// `TRUE`, `FALSE`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// `'text'`.
    Text(String),
}

/// What is done to two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`; a number of days to a time as well.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Remainder,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `<>`, `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

/// The data types of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 64-bit signed integer.
    Integer,
    /// 64-bit floating point.
    Float,
    /// Text.
    Text,
    /// A point in time.
    Timestamp,
    /// True or false.
    Boolean,
}

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    /// Year.
    Year,
    /// Month of the year.
    Month,
    /// Day of the month.
    Day,
    /// Hour.
    Hour,
    /// Minute.
    Minute,
    /// Second.
    Second,
    /// Hours of the offset from UTC.
    TimezoneHour,
    /// Minutes of it.
    TimezoneMinute,
}

/// The functions of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Number of characters.
    CharLength,
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
    /// Text, first character from 0, number of characters.
    Substring,
    /// Text, characters to take away; from the start, from the end.
    Trim(bool, bool),
    /// A time, some quantity later.
    DateAdd(DatePart),
    /// How much lies between two times.
    DateDiff(DatePart),
    /// One part of a time.
    Extract(DatePart),
    /// A time as text, by a pattern.
    ToString,
    /// Text as a time.
    ToTimestamp,
    /// The time of the query.
    UtcNow,
    /// Null if both are equal.
    NullIf,
    /// The first that is not null.
    Coalesce,
}

/// The refusal of a query that cannot be run.
///
/// 400 `ErrorProcessingQueryExpression`, as Azure names it; its texts beyond the two that are known
/// from users' reports are ours.
pub fn refuse(message: &str) -> StorageError {
    StorageError::new(ErrorCode::ErrorProcessingQueryExpression).with_message(message)
}

/// A query that is none.
pub fn syntax_error() -> StorageError {
    refuse("Syntax error!")
}
