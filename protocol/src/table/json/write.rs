//! Writes entities and tables as JSON, members in the recorded order.

use std::fmt::Write as _;

use crate::table::entity::{Entity, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::table::format::Metadata;
use crate::table::key::{entity_path, table_path};
use crate::table::literal;
use crate::table::name::{TABLE_NAME, TABLES};
use crate::table::payload::Scope;
use crate::table::query::Select;
use crate::table::value::Value;

/// A JSON document under construction.
struct Json {
    out: String,
    metadata: Metadata,
}

/// Writes one entity: the answer to a read or an insert.
pub(crate) fn entity(
    metadata: Metadata,
    scope: &Scope<'_>,
    table: &str,
    select: Option<&Select>,
    entity: &Entity,
) -> Vec<u8> {
    let mut json = Json::new(metadata);
    json.out.push('{');
    json.context(scope, &format!("{table}/@Element"), select);
    json.entity_members(scope, table, select, entity);
    json.out.push('}');
    json.out.into_bytes()
}

/// Writes a page of entities.
pub(crate) fn entities<'a>(
    metadata: Metadata,
    scope: &Scope<'_>,
    table: &str,
    select: Option<&Select>,
    entities: impl IntoIterator<Item = &'a Entity>,
) -> Vec<u8> {
    let mut json = Json::new(metadata);
    json.open_list(scope, table, select);
    for entity in entities {
        json.open_item();
        json.entity_members(scope, table, select, entity);
        json.out.push('}');
    }
    json.close_list()
}

/// Writes one table.
pub(crate) fn table(metadata: Metadata, scope: &Scope<'_>, name: &str) -> Vec<u8> {
    let mut json = Json::new(metadata);
    json.out.push('{');
    json.context(scope, &format!("{TABLES}/@Element"), None);
    json.table_members(scope, name);
    json.out.push('}');
    json.out.into_bytes()
}

/// Writes a page of tables.
pub(crate) fn tables<'a>(
    metadata: Metadata,
    scope: &Scope<'_>,
    select: Option<&Select>,
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<u8> {
    let mut json = Json::new(metadata);
    json.open_list(scope, TABLES, select);
    for name in names {
        json.open_item();
        json.table_members(scope, name);
        json.out.push('}');
    }
    json.close_list()
}

/// Appends a JSON string. Escapes everything outside of ASCII, as recorded.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7f}' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a `String` cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

impl Json {
    fn new(metadata: Metadata) -> Self {
        let out = String::new();
        Json { out, metadata }
    }

    /// Writes `"odata.metadata":"https://../$metadata#products/@Element&$select=a,b"`.
    fn context(&mut self, scope: &Scope<'_>, what: &str, select: Option<&Select>) {
        if self.metadata == Metadata::None {
            return;
        }
        let mut context = format!("{}$metadata#{what}", scope.endpoint);
        if let Some(select) = select {
            context.push_str("&$select=");
            context.push_str(&select.names().join(","));
        }
        self.text("odata.metadata", &context);
    }

    fn open_list(&mut self, scope: &Scope<'_>, what: &str, select: Option<&Select>) {
        self.out.push('{');
        self.context(scope, what, select);
        self.name("value");
        self.out.push('[');
    }

    fn open_item(&mut self) {
        let comma = if self.out.ends_with('[') { "" } else { "," };
        self.out.push_str(comma);
        self.out.push('{');
    }

    fn close_list(mut self) -> Vec<u8> {
        self.out.push_str("]}");
        self.out.into_bytes()
    }

    fn entity_members(
        &mut self,
        scope: &Scope<'_>,
        table: &str,
        select: Option<&Select>,
        entity: &Entity,
    ) {
        let has = |name: &str| select.is_none_or(|select| select.has(name));
        self.control(scope, table, entity);
        if has(PARTITION_KEY) {
            self.text(PARTITION_KEY, &entity.partition_key);
        }
        if has(ROW_KEY) {
            self.text(ROW_KEY, &entity.row_key);
        }
        if has(TIMESTAMP) {
            if self.metadata == Metadata::Full {
                self.text("Timestamp@odata.type", "Edm.DateTime");
            }
            self.text(TIMESTAMP, &literal::date_time(entity.timestamp));
        }
        for (name, value) in entity.selected(select) {
            match value {
                Some(value) => self.property(name, value),
                None => self.bare(name, "null"),
            }
        }
    }

    /// Writes the members that describe an entity.
    fn control(&mut self, scope: &Scope<'_>, table: &str, entity: &Entity) {
        if self.metadata == Metadata::None {
            return;
        }
        let is_full = self.metadata == Metadata::Full;
        let path = entity_path(table, &entity.partition_key, &entity.row_key);
        if is_full {
            self.text("odata.type", &format!("{}.{table}", scope.account));
            self.text("odata.id", &format!("{}{path}", scope.endpoint));
        }
        self.text("odata.etag", &entity.etag().to_string());
        if is_full {
            self.text("odata.editLink", &path);
        }
    }

    fn table_members(&mut self, scope: &Scope<'_>, name: &str) {
        if self.metadata == Metadata::Full {
            let path = table_path(name);
            self.text("odata.type", &format!("{}.{TABLES}", scope.account));
            self.text("odata.id", &format!("{}{path}", scope.endpoint));
            self.text("odata.editLink", &path);
        }
        self.text(TABLE_NAME, name);
    }

    fn property(&mut self, name: &str, value: &Value) {
        if self.metadata != Metadata::None && !shows_its_type(value) {
            self.text(&format!("{name}@odata.type"), value.edm_type().as_str());
        }
        let text = literal::write(value);
        match value {
            Value::Boolean(_) | Value::Int32(_) => self.bare(name, &text),
            Value::Double(number) if number.is_finite() => self.bare(name, &with_point(&text)),
            _ => self.text(name, &text),
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_string(&mut self.out, text);
    }

    fn bare(&mut self, name: &str, text: &str) {
        self.name(name);
        self.out.push_str(text);
    }

    fn name(&mut self, name: &str) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        push_string(&mut self.out, name);
        self.out.push(':');
    }
}

/// Returns whether a client can infer the type from the JSON value.
fn shows_its_type(value: &Value) -> bool {
    match value {
        Value::Boolean(_) | Value::Int32(_) | Value::String(_) => true,
        Value::Double(number) => number.is_finite(),
        _ => false,
    }
}

/// Writes a number so that it is recognisably an `Edm.Double`: `3.0`, `1E+20`.
fn with_point(number: &str) -> String {
    if number.contains(['.', 'E']) {
        number.to_owned()
    } else {
        format!("{number}.0")
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
