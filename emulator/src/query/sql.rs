//! Syntax tree of the query language.
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
    /// What to return for the selected rows.
    pub select: Select,
    /// The source of the rows.
    pub from: Table,
    /// The condition of `WHERE`; `None` selects every row.
    pub condition: Option<Expr>,
    /// Maximum number of rows.
    pub limit: Option<u64>,
}

/// The select list.
#[derive(Clone, Debug, PartialEq)]
pub enum Select {
    /// `*`: the row unchanged.
    All,
    /// A list of values.
    Columns(Vec<Column>),
    /// An aggregate over all rows.
    Aggregate(Aggregate),
    /// `sys.split(bytes)`: the places at which to cut the blob.
    Split(u64),
}

/// A value of the select list.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The expression to evaluate.
    pub value: Expr,
    /// Name given by `AS`, if any.
    pub alias: Option<String>,
}

/// An aggregate over all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The aggregate function.
    pub function: AggregateFunction,
    /// Argument; `None` for `COUNT(*)`.
    pub of: Option<Expr>,
    /// Name given by `AS`, if any.
    pub alias: Option<String>,
}

/// Aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// Number of rows, or of values that are not null.
    Count,
    /// The sum of the values.
    Sum,
    /// The mean of the values.
    Average,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// `BlobStorage`, for JSON with the path of the values that are rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Steps from the record to its rows.
    pub path: Vec<Step>,
    /// Alias of the table.
    pub alias: Option<String>,
}

/// A step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `[*]`: every item of an array.
    Each,
    /// `[n]`: the item at this index, from 0.
    Item(usize),
    /// `.name`: the member with this name.
    Member(Name),
}

/// A field name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name without quotes.
    pub text: String,
    /// Whether the name was quoted, which makes it case-sensitive.
    pub is_exact: bool,
}

impl Name {
    /// Returns `true` if this name refers to `field`.
    pub fn matches(&self, field: &str) -> bool {
        if self.is_exact {
            self.text == field
        } else {
            self.text.eq_ignore_ascii_case(field)
        }
    }

    /// Returns the position from 0 of a name like `_1` or `_2`.
    pub fn ordinal(&self) -> Option<usize> {
        let digits = self.text.strip_prefix('_')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let ordinal: usize = is_number.then(|| digits.parse().ok()).flatten()?;
        ordinal.checked_sub(1)
    }
}

/// A scalar expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A field by name, and the steps below it.
    Field(Name, Vec<Step>),
    /// A field of delimited text by position, from 0.
    Ordinal(usize),
    /// True if all are true.
    And(Vec<Expr>),
    /// True if any is true.
    Or(Vec<Expr>),
    /// Logical negation.
    Not(Box<Expr>),
    /// Arithmetic negation.
    Negate(Box<Expr>),
    /// A value, followed by operations applied from left to right.
    Arithmetic(Box<Expr>, Vec<(Operator, Expr)>),
    /// A comparison of two values.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// True if the value is null or missing.
    IsNull(Box<Expr>),
    /// True if the value is missing.
    IsMissing(Box<Expr>),
    /// `LIKE`: value, pattern, escape character.
    Like(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    /// `BETWEEN`: value, lower bound, upper bound.
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `IN`: value, list.
    In(Box<Expr>, Vec<Expr>),
    /// `CASE`: optional operand, conditions with results, `ELSE` result.
    Case(Option<Box<Expr>>, Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// `CAST`: value, target type.
    Cast(Box<Expr>, Type),
    /// A function call.
    Call(Function, Vec<Expr>),
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`.
    Null,
    /// `TRUE`, `FALSE`.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A string: `'text'`.
    Text(String),
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`; also adds days to a time.
    Add,
    /// `-`; also subtracts days from a time.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Remainder,
}

/// Comparison operators.
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

/// The types of `CAST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 64-bit signed integer.
    Integer,
    /// 64-bit floating point.
    Float,
    /// A string.
    Text,
    /// A point in time.
    Timestamp,
    /// A truth value.
    Boolean,
}

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    /// Calendar year.
    Year,
    /// Month of the year.
    Month,
    /// Day of the month.
    Day,
    /// Hour of the day.
    Hour,
    /// Minute of the hour.
    Minute,
    /// Second of the minute.
    Second,
    /// Hours of the offset from UTC.
    TimezoneHour,
    /// Remaining minutes of the offset from UTC.
    TimezoneMinute,
}

/// Scalar functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Number of characters.
    CharLength,
    /// Converts to lower case.
    Lower,
    /// Converts to upper case.
    Upper,
    /// Text, first character from 0, number of characters.
    Substring,
    /// Text, characters to remove; whether from the start and from the end.
    Trim(bool, bool),
    /// Adds a quantity to a time.
    DateAdd(DatePart),
    /// Difference of two times.
    DateDiff(DatePart),
    /// A part of a time.
    Extract(DatePart),
    /// Formats a time by a pattern.
    ToString,
    /// Parses a time.
    ToTimestamp,
    /// The time of the query.
    UtcNow,
    /// Null if both arguments are equal, else the first.
    NullIf,
    /// The first argument that is not null.
    Coalesce,
}

/// Returns the error of an invalid query.
///
/// 400 `ErrorProcessingQueryExpression`, the code that Azure uses. Two of its messages are known
/// from users' reports; the others are the emulator's own.
pub fn refuse(message: &str) -> StorageError {
    StorageError::new(ErrorCode::ErrorProcessingQueryExpression).with_message(message)
}

/// Returns the error of a query with a syntax error.
pub fn syntax_error() -> StorageError {
    refuse("Syntax error!")
}
