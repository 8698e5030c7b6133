//! Faults of structure, all of them: names that nothing has, values of another kind. A strict
//! reading of the whole ends at the first, so each value is read for itself, in a configuration of
//! nothing else.

use toml::{Table, Value};

use super::{SettingsError, first_line, put, schema};

/// What of the table can be read; what cannot is left out and noted.
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
            // A table that nothing has is one fault, whatever stands in it.
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

/// Whether a configuration of this value alone can be read.
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
