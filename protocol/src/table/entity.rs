//! Entities: keys, properties in the order given, the time of the last write.
//!
//! Source: *Understanding the Table Service Data Model*; recordings for order and messages.

use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, StorageError};
use crate::limits::{ENTITY_BYTES_MAX, ENTITY_PROPERTIES_MAX};
use crate::table::query::Select;
use crate::table::tag::EntityTag;
use crate::table::value::{Value, ValueRef, utf16_bytes};
use crate::time::Timestamp;

/// The property that names an entity's partition.
pub const PARTITION_KEY: &str = "PartitionKey";
/// The property that names an entity within its partition.
pub const ROW_KEY: &str = "RowKey";
/// The property that the service sets at each write.
pub const TIMESTAMP: &str = "Timestamp";

/// Bytes of a stored entity besides its keys and properties. *Azure Table storage pricing and
/// capacity*.
const ENTITY_OVERHEAD_BYTES: usize = 4;
/// Bytes of a property besides its name and value. Same source.
const PROPERTY_OVERHEAD_BYTES: usize = 8;

/// A named property and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property(pub String, pub Value);

/// The properties of an entity without the system properties, in the order given. Names are unique
/// and compared exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Properties(Vec<Property>);

/// An entity as stored and returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// `PartitionKey`.
    pub partition_key: String,
    /// `RowKey`.
    pub row_key: String,
    /// `Timestamp`: the time of the last write, from which the ETag follows.
    pub timestamp: Timestamp,
    /// All other properties.
    pub properties: Properties,
}

/// The parsed body of a write: keys, if given, and properties with a value. A `Timestamp` in the
/// body is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityBody {
    /// `PartitionKey`, if given.
    pub partition_key: Option<String>,
    /// `RowKey`, if given.
    pub row_key: Option<String>,
    /// All other properties that have a value.
    pub properties: Properties,
}

/// Something that a filter can query: an entity, or the name of a table.
pub trait Fields {
    /// Returns the value of this name, if there is one.
    fn field(&self, name: &str) -> Option<ValueRef<'_>>;
}

impl Properties {
    /// Returns an empty list of properties.
    pub const fn new() -> Self {
        Properties(Vec::new())
    }

    /// Returns the value of a property.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|property| property.0 == name)
            .map(|property| &property.1)
    }

    /// Appends a property. The caller ensures that its name is new.
    pub(crate) fn push(&mut self, name: String, value: Value) {
        self.0.push(Property(name, value));
    }

    /// Sets a property: replaces its value, or appends it.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|property| property.0 == name) {
            Some(property) => property.1 = value,
            None => self.0.push(Property(name.to_owned(), value)),
        }
    }

    /// Merges `newer` into the properties. Afterwards all are sorted by name, even if there was
    /// nothing to merge with, as recorded.
    pub fn merge(&mut self, newer: Properties) {
        for Property(name, value) in newer.0 {
            self.set(&name, value);
        }
        self.0.sort_by(|one, other| one.0.cmp(&other.0));
    }

    /// Iterates over the properties in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0
            .iter()
            .map(|property| (property.0.as_str(), &property.1))
    }

    /// Returns the number of properties.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that the properties add to an entity's size.
    fn bytes(&self) -> usize {
        let one = |property: &Property| {
            PROPERTY_OVERHEAD_BYTES + utf16_bytes(&property.0) + property.1.bytes()
        };
        self.0.iter().map(one).sum()
    }
}

impl FromIterator<(String, Value)> for Properties {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(given: I) -> Self {
        let mut properties = Properties::new();
        for (name, value) in given {
            properties.set(&name, value);
        }
        properties
    }
}

impl Entity {
    /// Returns the ETag of this version.
    pub const fn etag(&self) -> EntityTag {
        EntityTag::of(self.timestamp)
    }

    /// Returns the properties for an answer, besides the system properties: all in their order, or
    /// those of `select` in the order asked, with `None` for those that the entity does not have.
    pub fn selected<'a>(&'a self, select: Option<&'a Select>) -> Vec<(&'a str, Option<&'a Value>)> {
        let Some(select) = select.filter(|select| !select.is_everything()) else {
            let all = self.properties.iter();
            return all.map(|(name, value)| (name, Some(value))).collect();
        };
        let mut chosen: Vec<(&str, Option<&Value>)> = Vec::new();
        for name in select.names() {
            let is_system = [PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name.as_str());
            if !is_system && !chosen.iter().any(|(other, _)| other == name) {
                chosen.push((name, self.properties.get(name)));
            }
        }
        chosen
    }

    /// Returns the entity's size in bytes, as the service counts it.
    pub fn bytes(&self) -> usize {
        let keys = utf16_bytes(&self.partition_key) + utf16_bytes(&self.row_key);
        ENTITY_OVERHEAD_BYTES + keys + self.properties.bytes()
    }

    /// Checks whether the entity may be stored: a merge of two small bodies can be too large.
    ///
    /// # Errors
    /// 400 `TooManyProperties` beyond 252 properties, 400 `EntityTooLarge` beyond 1 MiB.
    pub fn check_limits(&self) -> Result<(), StorageError> {
        if self.properties.len() > ENTITY_PROPERTIES_MAX {
            return Err(ErrorCode::TooManyProperties.into());
        }
        if self.bytes() > ENTITY_BYTES_MAX {
            return Err(ErrorCode::EntityTooLarge.into());
        }
        Ok(())
    }
}

impl Fields for Entity {
    fn field(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            PARTITION_KEY => Some(ValueRef::String(&self.partition_key)),
            ROW_KEY => Some(ValueRef::String(&self.row_key)),
            TIMESTAMP => Some(ValueRef::DateTime(self.timestamp)),
            _ => self.properties.get(name).map(Value::as_ref),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::String(value.to_owned())
    }

    fn properties(given: &[(&str, &str)]) -> Properties {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), text(value));
        given.iter().map(owned).collect()
    }

    #[test]
    fn stored_properties_read_back_unchanged() {
        let values = [
            Value::Binary(vec![0, 255, 128]),
            Value::Boolean(true),
            Value::DateTime(Timestamp::MAX),
            Value::Double(f64::NAN),
            Value::Double(-0.0),
            Value::Guid(uuid::Uuid::from_u128(7)),
            Value::Int32(i32::MIN),
            Value::Int64(i64::MAX),
            text("ü😀"),
        ];
        let named = values.into_iter().enumerate();
        let stored: Properties = named.map(|(n, value)| (format!("p{n}"), value)).collect();
        let bytes = rmp_serde::to_vec_named(&stored).unwrap();
        let read: Properties = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(read, stored);
        assert_eq!(read.len(), 9);
        let empty: Properties = rmp_serde::from_slice(&[0x90]).unwrap();
        assert!(empty.is_empty());
        let json = serde_json::to_string(&properties(&[("a", "b")])).unwrap();
        assert_eq!(json, r#"[["a",{"String":"b"}]]"#);
        let bytes: Value = serde_json::from_str(r#"{"Binary":[1,2]}"#).unwrap();
        assert_eq!(bytes, Value::Binary(vec![1, 2]));
    }

    #[test]
    fn a_merge_sorts_by_name_and_keeps_other_properties() {
        let mut stored = properties(&[("etag", "1"), ("ETag", "2"), ("b", "3")]);
        stored.merge(properties(&[("Etag", "4"), ("b", "5")]));
        let expected = [("ETag", "2"), ("Etag", "4"), ("b", "5"), ("etag", "1")];
        assert_eq!(stored, properties(&expected));
    }

    #[test]
    fn entity_sizes_match_the_formula() {
        let mut entity = Entity {
            partition_key: "p".to_owned(),
            row_key: "rr".to_owned(),
            timestamp: Timestamp::MIN,
            properties: properties(&[("ab", "cde")]),
        };
        assert_eq!(entity.bytes(), 4 + 2 + 4 + (8 + 4 + 6 + 4));
        assert!(entity.check_limits().is_ok());
        let code = |entity: &Entity| entity.check_limits().unwrap_err().code();
        entity.properties = (0..17)
            .map(|n| (n.to_string(), text(&"x".repeat(32 * 1024))))
            .collect();
        assert_eq!(code(&entity), ErrorCode::EntityTooLarge);
        entity.properties = (0..253).map(|n| (n.to_string(), Value::Int32(0))).collect();
        assert_eq!(code(&entity), ErrorCode::TooManyProperties);
    }

    #[test]
    fn filters_see_keys_time_and_properties() {
        let entity = Entity {
            partition_key: "p".to_owned(),
            row_key: "r".to_owned(),
            timestamp: Timestamp::MIN,
            properties: properties(&[("a", "b")]),
        };
        let seen = |name: &str| entity.field(name).map(ValueRef::to_value);
        assert_eq!(seen("PartitionKey"), Some(text("p")));
        assert_eq!(seen("RowKey"), Some(text("r")));
        assert_eq!(seen("Timestamp"), Some(Value::DateTime(Timestamp::MIN)));
        assert_eq!(seen("a"), Some(text("b")));
        assert_eq!(seen("A"), None);
    }
}
