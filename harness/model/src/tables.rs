//! Tables and entities. Sources: "Create Table", "Delete Table", "Insert Entity", "Update Entity",
//! "Merge Entity", "Insert Or Replace Entity", "Insert Or Merge Entity", "Delete Entity", "Query
//! Entities", "Querying tables and entities", "Performing entity group transactions"; recordings.

use std::collections::{BTreeMap, BTreeSet};

use smalt_protocol::ErrorCode;
use smalt_protocol::table::Value;

use crate::malformed::refused_by_tables;
use crate::vocabulary::Tag;
use crate::vocabulary::tables::{
    Action, Change, Match, Row, RowId, TableExpected, TableFilter, TableOperation,
};

/// A key in UTF-16 units, which sort in the order of answers.
type Units = Vec<u16>;
type Answer = Result<TableExpected, (Option<usize>, ErrorCode)>;

/// The tables of an account.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    tables: BTreeMap<String, Table>,
    tags: u32,
}

#[derive(Clone, Debug, Default, Hash)]
struct Table(BTreeMap<(Units, Units), Row>);

impl Tables {
    /// Does an operation on the table with this name and returns the expected answer.
    pub fn step(&mut self, name: &str, operation: &TableOperation) -> TableExpected {
        // Names are compared without regard to case.
        let name = name.to_ascii_lowercase();
        let answer = match operation {
            TableOperation::Create => self.create(name),
            TableOperation::Delete => self.delete(&name),
            TableOperation::Change(change) => self.batch(&name, std::slice::from_ref(change)),
            TableOperation::Batch(changes) => self.batch(&name, changes),
            TableOperation::Get(row, _) => self.get(&name, row),
            TableOperation::Query { filter, .. } => self.query(&name, filter.as_ref()),
            TableOperation::Page {
                partition_key,
                from,
                most,
            } => self.page(&name, partition_key, from.as_deref(), *most),
            TableOperation::Malformed(which) => Err((None, refused_by_tables(*which))),
        };
        // The error of a single change has no index.
        let are_several = matches!(operation, TableOperation::Batch(all) if all.len() > 1);
        answer.unwrap_or_else(|(place, code)| TableExpected {
            status: code.status(),
            code: Some(code),
            place: place.filter(|_| are_several),
            ..TableExpected::default()
        })
    }

    /// Gives the next tag this number.
    pub(crate) fn number_from(&mut self, first: u32) {
        self.tags = first;
    }

    /// Returns the number of tags issued, from which generators choose.
    pub fn tags(&self) -> u32 {
        self.tags
    }

    /// Returns the names of the tables, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Returns the entities of a table, in the order of answers.
    pub fn rows(&self, name: &str) -> Vec<Row> {
        let found = self.tables.get(&name.to_ascii_lowercase());
        found.map_or_else(Vec::new, |table| table.0.values().cloned().collect())
    }

    fn create(&mut self, name: String) -> Answer {
        if self.tables.contains_key(&name) {
            return Err((None, ErrorCode::TableAlreadyExists));
        }
        self.tables.insert(name, Table::default());
        Ok(ok(204))
    }

    fn delete(&mut self, name: &str) -> Answer {
        let found = self.tables.remove(name);
        found.ok_or((None, ErrorCode::ResourceNotFound))?;
        Ok(ok(204))
    }

    fn get(&self, name: &str, row: &RowId) -> Answer {
        let table = self.find(name)?;
        let found = table.0.get(&units(row));
        let found = found.ok_or((None, ErrorCode::ResourceNotFound))?;
        Ok(TableExpected {
            tags: vec![Some(found.tag)],
            rows: vec![found.clone()],
            ..ok(200)
        })
    }

    fn query(&self, name: &str, filter: Option<&TableFilter>) -> Answer {
        let all = self.find(name)?.0.values();
        let chosen = all.filter(|row| filter.is_none_or(|filter| matches(filter, row)));
        Ok(TableExpected {
            rows: chosen.cloned().collect(),
            ..ok(200)
        })
    }

    /// Returns the entities of one partition from a row on; the page ends at the next partition.
    fn page(&self, name: &str, partition_key: &str, from: Option<&str>, most: u32) -> Answer {
        let from = from.map(|row_key| row_key.encode_utf16().collect::<Units>());
        let all = self.find(name)?.0.iter();
        let is_in = |(key, row): &(&(Units, Units), &Row)| {
            row.id.partition_key == partition_key && from.as_ref().is_none_or(|f| key.1 >= *f)
        };
        let mut rows: Vec<Row> = all.filter(is_in).map(|(_, row)| row.clone()).collect();
        let next = rows.get(most as usize).map(|row| row.id.clone());
        rows.truncate(most as usize);
        Ok(TableExpected {
            rows,
            next,
            ..ok(200)
        })
    }

    /// Applies all changes or none; errors of the transaction itself come first. Recorded: all
    /// writes of one transaction have the same tag.
    fn batch(&mut self, name: &str, changes: &[Change]) -> Answer {
        let mut rows = BTreeSet::new();
        for (place, change) in changes.iter().enumerate() {
            if change.row.partition_key != changes[0].row.partition_key {
                let code = ErrorCode::CommandsInBatchActOnDifferentPartitions;
                return Err((Some(place), code));
            }
            if !rows.insert(&change.row) {
                return Err((Some(place), ErrorCode::InvalidDuplicateRow));
            }
        }
        let mut table = self
            .find(name)
            .map_err(|(_, code)| (Some(0), code))?
            .clone();
        let tag = Tag(self.tags);
        let mut tags = Vec::new();
        for (place, change) in changes.iter().enumerate() {
            let refused = |code| (Some(place), code);
            table.apply(change, tag).map_err(refused)?;
            let is_gone = matches!(change.action, Action::Delete(_));
            tags.push((!is_gone).then_some(tag));
        }
        self.tags += 1;
        self.tables.insert(name.to_owned(), table);
        Ok(TableExpected { tags, ..ok(204) })
    }

    fn find(&self, name: &str) -> Result<&Table, (Option<usize>, ErrorCode)> {
        self.tables
            .get(name)
            .ok_or((None, ErrorCode::TableNotFound))
    }
}

/// Excludes the counter of tags, as [`Model`](crate::Model) does.
impl std::hash::Hash for Tables {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.tables.hash(state);
    }
}

impl Table {
    fn apply(&mut self, change: &Change, tag: Tag) -> Result<(), ErrorCode> {
        let key = units(&change.row);
        let found = self.0.get(&key);
        let properties = match &change.action {
            Action::Insert(_) if found.is_some() => return Err(ErrorCode::EntityAlreadyExists),
            Action::Insert(properties) => properties.clone(),
            Action::Replace(properties, condition) => {
                check(found, *condition)?;
                properties.clone()
            }
            // "A property cannot be removed with a Merge Entity operation."
            Action::Merge(properties, condition) => {
                check(found, *condition)?;
                let mut merged = found.map(|row| row.properties.clone()).unwrap_or_default();
                merged.extend(properties.clone());
                merged
            }
            Action::Delete(condition) => {
                check(found, Some(*condition))?;
                self.0.remove(&key);
                return Ok(());
            }
        };
        let id = change.row.clone();
        self.0.insert(
            key,
            Row {
                id,
                tag,
                properties,
            },
        );
        Ok(())
    }
}

/// Checks `If-Match`: the entity must exist and have the named version.
fn check(found: Option<&Row>, condition: Option<Match>) -> Result<(), ErrorCode> {
    match (found, condition) {
        (_, None) | (Some(_), Some(Match::Any)) => Ok(()),
        (None, Some(_)) => Err(ErrorCode::ResourceNotFound),
        (Some(row), Some(Match::Tag(tag))) if row.tag == tag => Ok(()),
        (Some(_), Some(Match::Tag(_))) => Err(ErrorCode::UpdateConditionNotSatisfied),
    }
}

/// Returns whether the filter selects an entity. A comparison with a property that is missing or
/// has another type is false.
pub fn matches(filter: &TableFilter, row: &Row) -> bool {
    match filter {
        TableFilter::And(one, other) => matches(one, row) && matches(other, row),
        TableFilter::Or(one, other) => matches(one, row) || matches(other, row),
        TableFilter::Not(inner) => !matches(inner, row),
        TableFilter::Holds(name) => row.properties.get(name) == Some(&Value::Boolean(true)),
        TableFilter::Compare {
            name,
            operator,
            value,
            is_mirrored,
        } => {
            let given = property(row, name);
            given.is_some_and(|given| match (is_mirrored, &as_large(value, &given)) {
                (false, wanted) => compares(&given, operator, wanted),
                (true, wanted) => compares(wanted, operator, &given),
            })
        }
    }
}

/// Converts an `Edm.Int32` literal to the larger numeric type of the property.
fn as_large(wanted: &Value, given: &Value) -> Value {
    match (wanted, given) {
        (Value::Int32(number), Value::Int64(_)) => Value::Int64(i64::from(*number)),
        (Value::Int32(number), Value::Double(_)) => Value::Double(f64::from(*number)),
        _ => wanted.clone(),
    }
}

fn property(row: &Row, name: &str) -> Option<Value> {
    match name {
        "PartitionKey" => Some(Value::String(row.id.partition_key.clone())),
        "RowKey" => Some(Value::String(row.id.row_key.clone())),
        _ => row.properties.get(name).cloned(),
    }
}

fn compares(one: &Value, operator: &str, other: &Value) -> bool {
    let (less, equal) = match (one, other) {
        (Value::String(one), Value::String(other)) => {
            (one.encode_utf16().lt(other.encode_utf16()), one == other)
        }
        (Value::Binary(one), Value::Binary(other)) => (one < other, one == other),
        (Value::Boolean(one), Value::Boolean(other)) => (one < other, one == other),
        (Value::DateTime(one), Value::DateTime(other)) => (one < other, one == other),
        (Value::Double(one), Value::Double(other)) => {
            if one.is_nan() || other.is_nan() {
                return operator == "ne";
            }
            (one < other, one == other)
        }
        (Value::Guid(one), Value::Guid(other)) => (one < other, one == other),
        (Value::Int32(one), Value::Int32(other)) => (one < other, one == other),
        (Value::Int64(one), Value::Int64(other)) => (one < other, one == other),
        _ => return false,
    };
    match operator {
        "eq" => equal,
        "ne" => !equal,
        "lt" => less,
        "le" => less || equal,
        "gt" => !less && !equal,
        _ => !less,
    }
}

fn units(row: &RowId) -> (Units, Units) {
    let of = |key: &str| key.encode_utf16().collect();
    (of(&row.partition_key), of(&row.row_key))
}

fn ok(status: u16) -> TableExpected {
    TableExpected {
        status,
        ..TableExpected::default()
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
