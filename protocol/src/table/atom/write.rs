//! Writes entities and tables as Atom entries and feeds, as recorded at 2014-02-14.

use crate::table::atom::{ATOM, DATA, METADATA, SCHEME};
use crate::table::entity::{Entity, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::table::key::{entity_path, table_path};
use crate::table::literal;
use crate::table::name::{TABLE_NAME, TABLES};
use crate::table::payload::Scope;
use crate::table::query::Select;
use crate::table::value::{EdmType, Value};
use crate::xml::write::XmlWriter;

/// The attribute of a property without a value.
const NULL: (&str, &str) = ("m:null", "true");

/// The values that all entries of a document share.
struct Entries<'a> {
    scope: &'a Scope<'a>,
    /// The name of the table, or `Tables`.
    set: &'a str,
    /// The time of the answer, to the second.
    updated: String,
}

/// Writes one entity.
pub(crate) fn entity(
    scope: &Scope<'_>,
    table: &str,
    select: Option<&Select>,
    entity: &Entity,
) -> Vec<u8> {
    let mut xml = XmlWriter::without_mark();
    let tag = entity.etag().to_string();
    let entries = Entries::new(scope, table);
    entries.open_root(&mut xml, "entry", Some(&tag));
    entries.entity(&mut xml, select, entity);
    xml.close("entry");
    xml.finish()
}

/// Writes a page of entities.
pub(crate) fn entities<'a>(
    scope: &Scope<'_>,
    table: &str,
    select: Option<&Select>,
    entities: impl IntoIterator<Item = &'a Entity>,
) -> Vec<u8> {
    let mut xml = XmlWriter::without_mark();
    let entries = Entries::new(scope, table);
    entries.open_feed(&mut xml);
    let mut has_entries = false;
    for entity in entities {
        has_entries = true;
        xml.open_with("entry", &[("m:etag", &entity.etag().to_string())]);
        entries.entity(&mut xml, select, entity);
        xml.close("entry");
    }
    entries.close_feed(xml, has_entries)
}

/// Writes one table.
pub(crate) fn table(scope: &Scope<'_>, name: &str) -> Vec<u8> {
    let mut xml = XmlWriter::without_mark();
    let entries = Entries::new(scope, TABLES);
    entries.open_root(&mut xml, "entry", None);
    entries.table(&mut xml, name);
    xml.close("entry");
    xml.finish()
}

/// Writes a page of tables.
pub(crate) fn tables<'a>(scope: &Scope<'_>, names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut xml = XmlWriter::without_mark();
    let entries = Entries::new(scope, TABLES);
    entries.open_feed(&mut xml);
    let mut has_entries = false;
    for name in names {
        has_entries = true;
        xml.open("entry");
        entries.table(&mut xml, name);
        xml.close("entry");
    }
    entries.close_feed(xml, has_entries)
}

impl<'a> Entries<'a> {
    fn new(scope: &'a Scope<'a>, set: &'a str) -> Self {
        let updated = scope.now.iso_s();
        Entries {
            scope,
            set,
            updated,
        }
    }

    /// Opens the root element with the namespaces of the document.
    fn open_root(&self, xml: &mut XmlWriter, name: &str, tag: Option<&str>) {
        let mut attributes = vec![
            ("xml:base", self.scope.endpoint),
            ("xmlns", ATOM),
            ("xmlns:d", DATA),
            ("xmlns:m", METADATA),
        ];
        attributes.extend(tag.map(|tag| ("m:etag", tag)));
        xml.open_with(name, &attributes);
    }

    fn open_feed(&self, xml: &mut XmlWriter) {
        self.open_root(xml, "feed", None);
        xml.element("id", &format!("{}{}", self.scope.endpoint, self.set));
        xml.open_with("title", &[("type", "text")]);
        xml.text(self.set);
        xml.close("title");
        xml.element("updated", &self.updated);
        let set = self.set;
        xml.empty_with("link", &[("rel", "self"), ("title", set), ("href", set)]);
    }

    /// Closes the feed. A feed without entries has an author instead.
    fn close_feed(&self, mut xml: XmlWriter, has_entries: bool) -> Vec<u8> {
        if !has_entries {
            author(&mut xml);
        }
        xml.close("feed");
        xml.finish()
    }

    /// Writes the part of an entry before its content; `path` is its address within the service.
    fn head(&self, xml: &mut XmlWriter, path: &str) {
        let term = format!("{}.{}", self.scope.account, self.set);
        xml.element("id", &format!("{}{path}", self.scope.endpoint));
        xml.empty_with("category", &[("term", &term), ("scheme", SCHEME)]);
        let link = [("rel", "edit"), ("title", self.set), ("href", path)];
        xml.empty_with("link", &link);
        xml.empty("title");
        xml.element("updated", &self.updated);
        author(xml);
    }

    fn entity(&self, xml: &mut XmlWriter, select: Option<&Select>, entity: &Entity) {
        let has = |name: &str| select.is_none_or(|select| select.has(name));
        self.head(
            xml,
            &entity_path(self.set, &entity.partition_key, &entity.row_key),
        );
        open_properties(xml);
        if has(PARTITION_KEY) {
            text(xml, PARTITION_KEY, &entity.partition_key);
        }
        if has(ROW_KEY) {
            text(xml, ROW_KEY, &entity.row_key);
        }
        if has(TIMESTAMP) {
            property(xml, TIMESTAMP, &Value::DateTime(entity.timestamp));
        }
        for (name, value) in entity.selected(select) {
            match value {
                Some(value) => property(xml, name, value),
                None => xml.empty_with(&format!("d:{name}"), &[NULL]),
            }
        }
        close_properties(xml);
    }

    fn table(&self, xml: &mut XmlWriter, name: &str) {
        self.head(xml, &table_path(name));
        open_properties(xml);
        text(xml, TABLE_NAME, name);
        close_properties(xml);
    }
}

fn author(xml: &mut XmlWriter) {
    xml.open("author");
    xml.empty("name");
    xml.close("author");
}

fn open_properties(xml: &mut XmlWriter) {
    xml.open_with("content", &[("type", "application/xml")]);
    xml.open("m:properties");
}

fn close_properties(xml: &mut XmlWriter) {
    xml.close("m:properties");
    xml.close("content");
}

/// Writes `<d:Age m:type="Edm.Int32">39</d:Age>`; omits the type of a string.
fn property(xml: &mut XmlWriter, name: &str, value: &Value) {
    let written = match value {
        Value::Double(number) if number.is_infinite() => {
            if *number > 0.0 { "INF" } else { "-INF" }.into()
        }
        _ => literal::write(value),
    };
    if value.edm_type() == EdmType::String {
        return text(xml, name, &written);
    }
    let element = format!("d:{name}");
    xml.open_with(&element, &[("m:type", value.edm_type().as_str())]);
    xml.text(&written);
    xml.close(&element);
}

/// Writes a string; marks leading or trailing white space as significant.
fn text(xml: &mut XmlWriter, name: &str, written: &str) {
    let element = format!("d:{name}");
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    if written.is_empty() {
        return xml.empty(&element);
    }
    if written.starts_with(is_space) || written.ends_with(is_space) {
        xml.open_with(&element, &[("xml:space", "preserve")]);
    } else {
        xml.open(&element);
    }
    xml.text(written);
    xml.close(&element);
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
