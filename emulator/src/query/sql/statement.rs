//! Parser for statements and their clauses.

use smalt_protocol::StorageError;

use super::expression::Parser;
use super::lexer::{Token, tokens};
use super::{
    Aggregate, AggregateFunction, Column, Name, Select, Statement, Step, Table, refuse,
    syntax_error,
};

/// Maximum columns of a query. "Query acceleration SQL language reference".
const COLUMNS_MAX: usize = 49;
/// Minimum argument of `sys.split`, in bytes. Same page.
const SPLIT_BYTES_MIN: u64 = 10_485_760;
/// Names of the table; Data Lake clients use the second.
const TABLES: [&str; 2] = ["BlobStorage", "DataLakeStorage"];

/// Parses a query.
///
/// # Errors
/// 400 `ErrorProcessingQueryExpression`.
pub fn parse(query: &str) -> Result<Statement, StorageError> {
    let mut parser = Parser::new(tokens(query)?);
    parser.keyword("SELECT")?;
    let select = select(&mut parser)?;
    parser.keyword("FROM")?;
    let from = table(&mut parser)?;
    let condition = match parser.takes("WHERE") {
        true => Some(parser.expression()?),
        false => None,
    };
    let limit = match parser.takes("LIMIT") {
        true => Some(whole(&mut parser)?),
        false => None,
    };
    parser.takes_sign(";");
    if !parser.is_at_end() {
        return Err(syntax_error());
    }
    let statement = Statement {
        select,
        from,
        condition,
        limit,
    };
    Ok(statement.without_table_name())
}

fn whole(parser: &mut Parser) -> Result<u64, StorageError> {
    match parser.next() {
        Some(Token::Integer(number)) => u64::try_from(number).map_err(|_| syntax_error()),
        _ => Err(syntax_error()),
    }
}

fn select(parser: &mut Parser) -> Result<Select, StorageError> {
    if parser.takes_sign("*") {
        return Ok(Select::All);
    }
    if let Some(bytes) = split(parser)? {
        return Ok(Select::Split(bytes));
    }
    if let Some(aggregate) = aggregate(parser)? {
        return Ok(Select::Aggregate(aggregate));
    }
    let mut columns = Vec::new();
    loop {
        let value = parser.expression()?;
        let alias = alias(parser)?;
        columns.push(Column { value, alias });
        if columns.len() > COLUMNS_MAX {
            return Err(syntax_error());
        }
        if !parser.takes_sign(",") {
            return Ok(Select::Columns(columns));
        }
    }
}

fn split(parser: &mut Parser) -> Result<Option<u64>, StorageError> {
    let is_split = parser.peek(0).is_some_and(|token| token.is_word("sys"))
        && parser.peek(1) == Some(&Token::Sign("."))
        && parser.peek(2).is_some_and(|token| token.is_word("split"));
    if !is_split {
        return Ok(None);
    }
    parser.skip(3);
    parser.sign("(")?;
    let bytes = whole(parser)?;
    parser.sign(")")?;
    if bytes < SPLIT_BYTES_MIN {
        return Err(refuse("The split size must be at least 10485760 bytes."));
    }
    Ok(Some(bytes))
}

fn aggregate(parser: &mut Parser) -> Result<Option<Aggregate>, StorageError> {
    let function = match parser.peek(0) {
        Some(Token::Word(word)) => match word.to_ascii_uppercase().as_str() {
            "COUNT" => AggregateFunction::Count,
            "SUM" => AggregateFunction::Sum,
            "AVG" | "AVERAGE" => AggregateFunction::Average,
            "MIN" => AggregateFunction::Min,
            "MAX" => AggregateFunction::Max,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    // Without parentheses it is a field of this name.
    if parser.peek(1) != Some(&Token::Sign("(")) {
        return Ok(None);
    }
    parser.skip(2);
    let of = match function == AggregateFunction::Count && parser.takes_sign("*") {
        true => None,
        false => Some(parser.expression()?),
    };
    parser.sign(")")?;
    let alias = alias(parser)?;
    Ok(Some(Aggregate {
        function,
        of,
        alias,
    }))
}

fn alias(parser: &mut Parser) -> Result<Option<String>, StorageError> {
    if parser.takes("AS") {
        return parser.name().map(|name| Some(name.text));
    }
    let is_name = match parser.peek(0) {
        Some(Token::Quoted(_)) => true,
        Some(token @ Token::Word(_)) => !["FROM", "WHERE", "LIMIT"]
            .iter()
            .any(|keyword| token.is_word(keyword)),
        _ => false,
    };
    match is_name {
        true => parser.name().map(|name| Some(name.text)),
        false => Ok(None),
    }
}

/// Parses `BlobStorage`, `BlobStorage[*]` or `BlobStorage[*].path`, with an optional alias.
fn table(parser: &mut Parser) -> Result<Table, StorageError> {
    let name = parser.name()?;
    if !TABLES.iter().any(|table| name.matches(table)) {
        return Err(refuse("The table must be BlobStorage."));
    }
    let mut path = parser.steps()?;
    // The first `[*]` stands for the records themselves.
    if path.first() == Some(&Step::Each) {
        path.remove(0);
    } else if !path.is_empty() {
        return Err(syntax_error());
    }
    let alias = alias(parser)?;
    Ok(Table { path, alias })
}

impl Table {
    /// Returns `true` if `name` is the table's name or alias.
    fn is_called(&self, name: &Name) -> bool {
        self.alias.iter().any(|alias| name.matches(alias))
            || TABLES.iter().any(|table| name.matches(table))
    }
}

impl Statement {
    /// Removes the table's name before a field: `BlobStorage.a`, `b.a`.
    fn without_table_name(mut self) -> Self {
        let table = self.from.clone();
        self.each_field(&mut |name, steps| {
            if table.is_called(name)
                && let Some(Step::Member(_)) = steps.first()
                && let Step::Member(member) = steps.remove(0)
            {
                *name = member;
            }
        });
        self
    }
}
