//! Operations on tables and their entities.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use smalt_protocol::ErrorCode;
use smalt_protocol::table::{Value, key, literal};

use super::Tag;

/// Properties of an entity beside those of the system.
pub type Properties = BTreeMap<String, Value>;

/// An entity's address within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    Get(RowId, Level),
    /// Query Entities, every page of it.
    Query {
        /// `$filter`.
        filter: Option<TableFilter>,
        /// `$top`.
        page: u32,
        /// `odata=`.
        level: Level,
    },
    /// Query Entities for one partition, one page of it: what one moment shows.
    Page {
        /// The partition that the filter asks for.
        partition_key: String,
        /// `NextRowKey`: where an earlier page said that this one begins.
        from: Option<String>,
        /// `$top`.
        most: u32,
    },
    /// A request that breaks a rule of syntax: refused whatever is there.
    Malformed(TableMalformed),
}

/// A rule of syntax that a request breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableMalformed {
    /// Create Table with a name that begins with a digit.
    TableName,
    /// Query Entities with a filter that ends too early.
    Filter,
    /// Query Entities, 1,001 of them.
    Top,
    /// Insert Entity with half a document.
    Document,
    /// Insert Entity without a row key.
    RowKey,
    /// Insert Entity with a dash in a property's name.
    PropertyName,
}

impl TableMalformed {
    /// All of them.
    pub const ALL: [TableMalformed; 6] = [
        TableMalformed::TableName,
        TableMalformed::Filter,
        TableMalformed::Top,
        TableMalformed::Document,
        TableMalformed::RowKey,
        TableMalformed::PropertyName,
    ];

    /// What it is called among operations.
    pub fn operation(self) -> &'static str {
        match self {
            TableMalformed::TableName => "malformed table name",
            TableMalformed::Filter => "malformed filter",
            TableMalformed::Top => "malformed top",
            TableMalformed::Document => "malformed entity",
            TableMalformed::RowKey => "malformed keys",
            TableMalformed::PropertyName => "malformed property name",
        }
    }
}

impl TableOperation {
    /// The entities that it names, in order.
    pub fn rows(&self) -> Vec<RowId> {
        match self {
            TableOperation::Change(change) => vec![change.row.clone()],
            TableOperation::Batch(all) => all.iter().map(|change| change.row.clone()).collect(),
            TableOperation::Get(row, _) => vec![row.clone()],
            _ => Vec::new(),
        }
    }

    /// The partition that it is about, if it is about one.
    pub fn partition(&self) -> Option<&str> {
        match self {
            TableOperation::Change(Change { row, .. }) | TableOperation::Get(row, _) => {
                Some(&row.partition_key)
            }
            TableOperation::Batch(all) => all.first().map(|one| one.row.partition_key.as_str()),
            TableOperation::Page { partition_key, .. } => Some(partition_key),
            _ => None,
        }
    }
}

/// How much an answer says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `odata=minimalmetadata`.
    Minimal,
    /// `odata=fullmetadata`.
    Full,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its keys.
    pub id: RowId,
    /// Its tag.
    pub tag: Tag,
    /// Its other properties.
    pub properties: Properties,
}

/// Values are hashed as they are written: a double has no hash of its own.
impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.id, self.tag).hash(state);
        for (name, value) in &self.properties {
            (name, value.edm_type().as_str(), literal::write(value)).hash(state);
        }
    }
}

/// What the Table service has to answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The entity that the next page begins with.
    pub next: Option<RowId>,
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
