//! Operations on tables and their entities.

use std::collections::BTreeMap;
use std::fmt;

use smalt_protocol::ErrorCode;
use smalt_protocol::table::{Value, key, literal};

use super::Tag;

/// Properties of an entity beside those of the system.
pub type Properties = BTreeMap<String, Value>;

/// An entity's address within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowId {
    /// `PartitionKey`.
    pub partition_key: String,
    /// `RowKey`.
    pub row_key: String,
}

/// On a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableOperation {
    /// Create Table.
    Create,
    /// Delete Table.
    Delete,
    /// Insert, Update, Merge, Insert Or Replace, Insert Or Merge or Delete Entity.
    Change(Change),
    /// Several of them in one entity group transaction.
    Batch(Vec<Change>),
    /// Query Entities, by its keys.
    Get(RowId),
    /// Query Entities, every page of it.
    Query {
        /// `$filter`.
        filter: Option<TableFilter>,
        /// `$top`.
        page: u32,
    },
}

/// What is done to an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which.
    pub row: RowId,
    /// What.
    pub action: Action,
}

/// A write of an entity.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Insert Entity.
    Insert(Properties),
    /// Update Entity; without a condition Insert Or Replace Entity.
    Replace(Properties, Option<Match>),
    /// Merge Entity; without a condition Insert Or Merge Entity.
    Merge(Properties, Option<Match>),
    /// Delete Entity.
    Delete(Match),
}

/// `If-Match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// `*`.
    Any,
    /// A tag.
    Tag(Tag),
}

/// What a query asks of an entity. Shown, it is a `$filter`.
#[derive(Clone, Debug, PartialEq)]
pub enum TableFilter {
    /// `a and b`.
    And(Box<TableFilter>, Box<TableFilter>),
    /// `a or b`.
    Or(Box<TableFilter>, Box<TableFilter>),
    /// `not a`.
    Not(Box<TableFilter>),
    /// `Name op literal`, or the other way round.
    Compare {
        /// The property.
        name: String,
        /// `eq`, `ne`, `gt`, `ge`, `lt` or `le`.
        operator: &'static str,
        /// The literal.
        value: Value,
        /// Whether the literal comes first.
        is_mirrored: bool,
    },
    /// `Name`: a property that is true.
    Holds(String),
}

/// An entity that an answer shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its keys.
    pub id: RowId,
    /// Its tag.
    pub tag: Tag,
    /// Its other properties.
    pub properties: Properties,
}

/// What the Table service has to answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableExpected {
    /// Status: of a refused transaction that of its one part.
    pub status: u16,
    /// Error code.
    pub code: Option<ErrorCode>,
    /// Which change of a transaction is refused.
    pub place: Option<usize>,
    /// The tag of each entity that was changed, in order; none for what was deleted.
    pub tags: Vec<Option<Tag>>,
    /// The entities that were asked for, in order.
    pub rows: Vec<Row>,
}

impl TableFilter {
    /// The operators of comparison.
    pub const OPERATORS: [&'static str; 6] = ["eq", "ne", "gt", "ge", "lt", "le"];
}

impl fmt::Display for TableFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableFilter::And(one, other) => write!(f, "({one}) and ({other})"),
            TableFilter::Or(one, other) => write!(f, "({one}) or ({other})"),
            TableFilter::Not(inner) => write!(f, "not ({inner})"),
            TableFilter::Holds(name) => f.write_str(name),
            TableFilter::Compare {
                name,
                operator,
                value,
                is_mirrored,
            } => {
                let literal = filter_literal(value);
                if *is_mirrored {
                    write!(f, "{literal} {operator} {name}")
                } else {
                    write!(f, "{name} {operator} {literal}")
                }
            }
        }
    }
}

/// A value as a filter names it.
fn filter_literal(value: &Value) -> String {
    let text = literal::write(value);
    match value {
        Value::String(text) => key::quote(text),
        Value::Int64(number) => format!("{number}L"),
        Value::DateTime(_) => format!("datetime'{text}'"),
        Value::Guid(_) => format!("guid'{text}'"),
        Value::Binary(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{digits}'")
        }
        Value::Double(number) if *number == f64::INFINITY => "INF".to_owned(),
        Value::Double(number) if *number == f64::NEG_INFINITY => "-INF".to_owned(),
        Value::Double(number) if !number.is_nan() => format!("{text}d"),
        Value::Double(_) | Value::Boolean(_) | Value::Int32(_) => text.into_owned(),
    }
}
