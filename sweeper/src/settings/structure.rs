//! Finds all structural faults: unknown names and values of the wrong type. Strict parsing stops at
//! the first fault, so each value is parsed on its own in an otherwise empty configuration.

use toml::{Table, Value};

use super::fault::{SettingsError, first_line};
use super::schema;

/// Returns the valid part of the table; records a fault for every other value.
pub(super) fn sift(table: Table, faults: &mut SettingsError) -> Table {
    sift_at("", table, faults)
}

fn sift_at(at: &str, table: Table, faults: &mut SettingsError) -> Table {
    let mut sound = Table::new();
    for (name, value) in table {
        let path = match at {
            "" => name.clone(),
            _ => format!("{at}.{name}"),
        };
        let value = match value {
            // An unknown table is one fault, whatever it contains.
            Value::Table(inner) if reads(&path, Value::Table(Table::new()), &path, faults) => {
                Some(Value::Table(sift_at(&path, inner, faults)))
            }
            Value::Table(_) => None,
            Value::Array(items) if items.iter().any(Value::is_table) => {
                let items = items.into_iter().enumerate();
                let items = items.filter(|(number, item)| {
                    let shown = format!("{path} {}", number + 1);
                    reads(&path, Value::Array(vec![item.clone()]), &shown, faults)
                });
                Some(Value::Array(items.map(|(_, item)| item).collect()))
            }
            value => reads(&path, value.clone(), &path, faults).then_some(value),
        };
        if let Some(value) = value {
            sound.insert(name, value);
        }
    }
    sound
}

/// Returns whether a configuration with only this value parses.
fn reads(path: &str, value: Value, shown: &str, faults: &mut SettingsError) -> bool {
    let mut alone = Table::new();
    put(&mut alone, path, value);
    let read: Result<schema::File, _> = alone.try_into();
    if let Err(error) = &read {
        faults
            .faults
            .push(format!("{shown}: {}", first_line(error)));
    }
    read.is_ok()
}

/// Inserts a value at a dotted path.
pub(super) fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = table
                .entry(head)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}
