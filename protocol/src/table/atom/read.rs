//! Parses an entity or a table from an Atom entry.
//!
//! `<entry><content><m:properties><d:Age m:type="Edm.Int32">39</d:Age>`: a property without a type
//! is an `Edm.String`, one with `m:null="true"` has no value. Namespace prefixes are ignored, since
//! clients choose them. Source: *Payload format for Table service operations*; recordings.

use crate::error::{ErrorCode, StorageError};
use crate::table::body::{Builder, invalid};
use crate::table::entity::{EntityBody, TIMESTAMP};
use crate::table::literal;
use crate::table::name::TABLE_NAME;
use crate::table::value::{EdmType, Value};
use crate::xml::read::{ELEMENTS_MAX, Element, read_document};

/// Parses an entity.
///
/// # Errors
/// The same as the JSON reader.
pub(crate) fn read_entity(body: &[u8]) -> Result<EntityBody, StorageError> {
    let root = entry(body)?;
    let mut builder = Builder::default();
    for property in &properties(&root)?.children {
        let name = property.local_name();
        builder.name(name)?;
        if is_null(property) || name == TIMESTAMP {
            continue;
        }
        builder.value(name.to_owned(), value(property)?)?;
    }
    Ok(builder.finish())
}

/// Parses the name of a table to create, without validating it.
///
/// # Errors
/// 400 `InvalidInput` for anything but an entry, 400 `PropertiesNeedValue` without a name.
pub(crate) fn read_table_name(body: &[u8]) -> Result<String, StorageError> {
    let root = entry(body)?;
    let named = |property: &&Element<'_>| property.local_name() == TABLE_NAME;
    let name = properties(&root)?.children.iter().find(named);
    match name {
        Some(name) if !is_null(name) => Ok(name.text.clone().into_owned()),
        _ => Err(ErrorCode::PropertiesNeedValue.into()),
    }
}

fn entry(body: &[u8]) -> Result<Element<'_>, StorageError> {
    let root = read_document(body, ELEMENTS_MAX).map_err(|error| invalid(&format!("{error:?}")))?;
    if root.local_name() == "entry" {
        Ok(root)
    } else {
        Err(invalid("no entry"))
    }
}

fn properties<'a, 'b>(entry: &'b Element<'a>) -> Result<&'b Element<'a>, StorageError> {
    let child = |of: &'b Element<'a>, local: &str| {
        of.children.iter().find(|child| child.local_name() == local)
    };
    child(entry, "content")
        .and_then(|content| child(content, "properties"))
        .ok_or_else(|| invalid("no properties"))
}

fn is_null(property: &Element<'_>) -> bool {
    property.attribute("null") == Some("true")
}

fn value(property: &Element<'_>) -> Result<Value, StorageError> {
    let edm = match property.attribute("type") {
        Some(name) => EdmType::parse(name).ok_or_else(|| invalid("unknown type"))?,
        None => EdmType::String,
    };
    let text = match edm {
        EdmType::String => property.text.as_ref(),
        _ => property.trimmed(),
    };
    let read = literal::read(edm, text).filter(|_| property.children.is_empty());
    read.ok_or_else(|| invalid("a value does not have its type"))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
