//! Azurite's tables and entities.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use smalt_protocol::Service as ServiceName;
use smalt_protocol::table::entity::{PARTITION_KEY, Properties, ROW_KEY, TIMESTAMP};
use smalt_protocol::table::literal;
use smalt_protocol::table::value::{EdmType, Value};

use super::AzuriteError;
use super::build::Build;
use super::document::{Policy, Service, policies, time};
use super::loki::Database;
use crate::keys;
use crate::records::{EntityRecord, Record, TableRecord};

/// Suffix of the key that contains a property's type.
const TYPE: &str = "@odata.type";

pub(super) struct Tables {
    database: Database,
    services: Vec<Service>,
    tables: Vec<(TableDocument, Vec<EntityDocument>)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TableDocument {
    account: String,
    table: String,
    table_acl: Option<Vec<Policy>>,
}

#[derive(Deserialize)]
struct EntityDocument {
    #[serde(rename = "PartitionKey")]
    partition_key: String,
    #[serde(rename = "RowKey")]
    row_key: String,
    #[serde(rename = "lastModifiedTime")]
    last_modified_time: String,
    properties: Map<String, Json>,
}

impl Tables {
    pub(super) fn read(mut database: Database) -> Result<Self, AzuriteError> {
        let services = database.take("$SERVICES_COLLECTION$")?;
        let mut tables = Vec::new();
        for table in database.take::<TableDocument>("$TABLES_COLLECTION$")? {
            let entities = database.take(&format!("{}${}", table.account, table.table))?;
            tables.push((table, entities));
        }
        database.end()?;
        Ok(Tables {
            database,
            services,
            tables,
        })
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &str> {
        let services = self.services.iter().map(Service::account);
        services.chain(self.tables.iter().map(|(table, _)| table.account.as_str()))
    }

    pub(super) fn build(&self, build: &mut Build<'_, '_>) -> Result<(), AzuriteError> {
        build.services(ServiceName::Table, &self.services)?;
        for (table, entities) in &self.tables {
            let at = |what| {
                self.database
                    .shape(format!("table {}: {what}", table.table))
            };
            let record = TableRecord {
                name: table.table.clone(),
                generation: build.tick(),
                policies: policies(table.table_acl.as_ref()).map_err(at)?,
                deleted_at: None,
            };
            let generation = record.generation;
            let key = keys::table(&table.account, &table.table.to_ascii_lowercase());
            build.successor.transact(|tx| record.save(tx, key))?;
            build.report.tables += 1;
            for entity in entities {
                let of = format!("({:?}, {:?})", entity.partition_key, entity.row_key);
                let at = |what| at(format!("entity {of}: {what}"));
                let record = EntityRecord {
                    timestamp: time(&entity.last_modified_time).map_err(at)?,
                    properties: properties(&entity.properties).map_err(at)?,
                };
                let key = keys::entity(generation, &entity.partition_key, &entity.row_key);
                build.successor.transact(|tx| record.put(tx, key))?;
                build.report.entities += 1;
            }
        }
        Ok(())
    }
}

fn properties(document: &Map<String, Json>) -> Result<Properties, String> {
    let mut properties = Properties::new();
    for (name, value) in document {
        let is_system = [PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name.as_str());
        if is_system || name.ends_with(TYPE) || name.starts_with("odata.") || value.is_null() {
            continue;
        }
        let edm = match document.get(&format!("{name}{TYPE}")) {
            Some(edm) => {
                let known = edm.as_str().and_then(EdmType::parse);
                Some(known.ok_or_else(|| format!("property {name} has unknown type {edm}"))?)
            }
            None => None,
        };
        let read = property(value, edm);
        let read = read.ok_or_else(|| format!("property {name} has an invalid value: {value}"))?;
        properties.set(name, read);
    }
    Ok(properties)
}

fn property(value: &Json, edm: Option<EdmType>) -> Option<Value> {
    let Some(edm) = edm else {
        return Some(match value {
            Json::String(text) => Value::String(text.clone()),
            Json::Bool(flag) => Value::Boolean(*flag),
            Json::Number(number) => match number.as_i64().map(i32::try_from) {
                Some(Ok(whole)) => Value::Int32(whole),
                _ => Value::Double(number.as_f64()?),
            },
            _ => return None,
        });
    };
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Bool(_) | Json::Number(_) => value.to_string(),
        _ => return None,
    };
    // Azurite stores a GUID as the Base64 of its text, older releases as the text.
    literal::read(edm, &text).or_else(|| {
        let inner = STANDARD
            .decode(&text)
            .ok()
            .filter(|_| edm == EdmType::Guid)?;
        literal::read(edm, std::str::from_utf8(&inner).ok()?)
    })
}
