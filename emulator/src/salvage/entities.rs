//! Saves tables: one line for each entity, in the Table service's format with minimal metadata.

use std::collections::BTreeMap;
use std::io;

use serde_json::json;
use smalt_protocol::Timestamp;
use smalt_protocol::table::payload::write_entity;
use smalt_protocol::table::{Format, Metadata, Scope};

use super::Salvaged;
use super::blobs::{entries, garbage, unknown};
use super::out::Out;
use crate::keys::{self, Generation, Kind};
use crate::records::{EntityRecord, Record, TableRecord};
use crate::store::Store;

pub(super) fn save(store: &Store, out: &mut Out, salvaged: &mut Salvaged) -> io::Result<()> {
    let mut owners = BTreeMap::new();
    for (key, value) in entries(store, Kind::Table, salvaged) {
        let (account, name) = keys::owner(&key);
        match TableRecord::decode(&value) {
            Ok(table) => {
                salvaged.tables.push(json!({
                    "account": account, "name": table.name,
                    "deleted": table.deleted_at.is_some(),
                }));
                owners.insert(table.generation, (account, table.name));
            }
            Err(error) => salvaged.lose(format!("table {account}/{name}"), &error),
        }
    }
    let garbage = garbage(store).unwrap_or_default();
    let mut files = BTreeMap::new();
    for (key, value) in entries(store, Kind::Entity, salvaged) {
        let generation: Generation = keys::generation(&key);
        if garbage.contains(&generation) {
            continue;
        }
        let owner = owners.get(&generation).cloned();
        let (account, table) = owner.unwrap_or_else(|| unknown(generation));
        let (partition, row) = keys::entity_names(&key);
        let record = store.read(|view| EntityRecord::of_value(view, &key, &value));
        let entity = match record {
            Ok(record) => record.named(partition, row),
            Err(error) => {
                let what = format!("entity ({partition}, {row}) of table {account}/{table}");
                salvaged.lose(what, &error);
                continue;
            }
        };
        let file = match files.entry(generation) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let name = format!("{table}.jsonl");
                new.insert(out.file(&["tables", &account], &name)?.1)
            }
        };
        let scope = Scope {
            endpoint: "",
            account: &account,
            now: Timestamp::UNIX_EPOCH,
        };
        let format = Format::Json(Metadata::Minimal);
        let mut line = write_entity(format, &scope, &table, None, &entity);
        line.push(b'\n');
        file.write(&line)?;
        salvaged.entities += 1;
    }
    files.into_values().try_for_each(|file| file.end(&[]))
}
