//! Operations on tables and their entities.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use smalt_protocol::ErrorCode;
use smalt_protocol::table::{Value, key, literal};

use super::Tag;

/// Properties of an entity besides the system properties.
pub type Properties = BTreeMap<String, Value>;

/// An entity's address within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// `PartitionKey`.
    pub partition_key: String,
    /// `RowKey`.
    pub row_key: String,
}

/// An operation on a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableOperation {
    /// Create Table.
    Create,
    /// Delete Table.
    Delete,
    /// Insert, Update, Merge, Insert Or Replace, Insert Or Merge or Delete Entity.
    Change(Change),
    /// Several changes in one entity group transaction.
    Batch(Vec<Change>),
    /// Query Entities by keys.
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
    /// Query Entities for one partition, a single page, which shows one point in time.
    Page {
        /// The partition in the filter.
        partition_key: String,
        /// `NextRowKey` of an earlier page, where this page begins.
        from: Option<String>,
        /// `$top`.
        most: u32,
    },
    /// A malformed request.
    Malformed(TableMalformed),
}

/// A malformed request, which fails regardless of the account's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableMalformed {
    /// Create Table with a name that begins with a digit.
    TableName,
    /// Query Entities with an incomplete filter.
    Filter,
    /// Query Entities with `$top=1001`.
    Top,
    /// Insert Entity with an incomplete document.
    Document,
    /// Insert Entity without a row key.
    RowKey,
    /// Insert Entity with a dash in a property's name.
    PropertyName,
}

impl TableMalformed {
    /// Every kind, in the order of declaration.
    pub const ALL: [TableMalformed; 6] = [
        TableMalformed::TableName,
        TableMalformed::Filter,
        TableMalformed::Top,
        TableMalformed::Document,
        TableMalformed::RowKey,
        TableMalformed::PropertyName,
    ];

    /// Returns its name among the operations.
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
    /// Returns the writes to entities, in order.
    pub fn changes(&self) -> &[Change] {
        match self {
            TableOperation::Change(change) => std::slice::from_ref(change),
            TableOperation::Batch(all) => all,
            _ => &[],
        }
    }

    /// Returns the addressed entities, in order.
    pub fn rows(&self) -> Vec<RowId> {
        match self {
            TableOperation::Get(row, _) => vec![row.clone()],
            _ => self
                .changes()
                .iter()
                .map(|change| change.row.clone())
                .collect(),
        }
    }

    /// Returns the addressed partition, if there is exactly one.
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

/// The level of metadata in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `odata=minimalmetadata`.
    Minimal,
    /// `odata=fullmetadata`.
    Full,
}

/// A write to one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The address of the entity.
    pub row: RowId,
    /// The write.
    pub action: Action,
}

/// The kind of a write to an entity.
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
    /// The ETag of one version.
    Tag(Tag),
}

/// A filter of entities. Its `Display` output is a `$filter`.
#[derive(Clone, Debug, PartialEq)]
pub enum TableFilter {
    /// `a and b`.
    And(Box<TableFilter>, Box<TableFilter>),
    /// `a or b`.
    Or(Box<TableFilter>, Box<TableFilter>),
    /// `not a`.
    Not(Box<TableFilter>),
    /// `Name op literal`, or `literal op Name`.
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
    /// `Name`: a boolean property that must be true.
    Holds(String),
}

/// An entity in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The keys.
    pub id: RowId,
    /// The ETag.
    pub tag: Tag,
    /// The other properties.
    pub properties: Properties,
}

/// Hashes values by their text, since `f64` does not implement `Hash`.
impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.id, self.tag).hash(state);
        for (name, value) in &self.properties {
            (name, value.edm_type().as_str(), literal::write(value)).hash(state);
        }
    }
}

/// The expected answer of the Table service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableExpected {
    /// The HTTP status; for a failed transaction that of its single part.
    pub status: u16,
    /// The error code; `None` for a success.
    pub code: Option<ErrorCode>,
    /// The index of the change that failed, in a transaction.
    pub place: Option<usize>,
    /// The ETag of each changed entity, in order; `None` for a deleted one.
    pub tags: Vec<Option<Tag>>,
    /// The selected entities, in order.
    pub rows: Vec<Row>,
    /// The first entity of the next page.
    pub next: Option<RowId>,
}

impl TableFilter {
    /// The comparison operators.
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

/// Writes a value as a filter literal.
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
