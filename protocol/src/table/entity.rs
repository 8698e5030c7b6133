//! Entities: keys, properties in the order given, the time of the last write.
//!
//! Source: *Understanding the Table Service Data Model*; recordings for order and messages.

use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, StorageError};
use crate::limits::{ENTITY_BYTES_MAX, ENTITY_PROPERTIES_MAX};
use crate::table::tag::EntityTag;
use crate::table::value::{Value, ValueRef, utf16_bytes};
use crate::time::Timestamp;

/// The property that names an entity's partition.
pub const PARTITION_KEY: &str = "PartitionKey";
/// The property that names an entity within its partition.
pub const ROW_KEY: &str = "RowKey";
/// The property that the service sets at each write.
pub const TIMESTAMP: &str = "Timestamp";

/// What a stored entity takes beside its keys and properties, in bytes. *Azure Table storage
/// pricing and capacity*.
const ENTITY_OVERHEAD_BYTES: usize = 4;
/// What a property takes beside its name and value, in bytes. Same source.
const PROPERTY_OVERHEAD_BYTES: usize = 8;

/// A property that a client named, with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property(pub String, pub Value);

/// The properties of an entity without those of the system, in the order given. No name comes
/// twice; names are compared exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Properties(Vec<Property>);

/// An entity as it is stored and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// `PartitionKey`.
    pub partition_key: String,
    /// `RowKey`.
    pub row_key: String,
    /// `Timestamp`: when it was written last. Its tag follows from it.
    pub timestamp: Timestamp,
    /// All other properties.
    pub properties: Properties,
}

/// What the body of a write says: keys, where it names them, and properties with a value. A
/// `Timestamp` in it counts for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityBody {
    /// `PartitionKey`, if given.
    pub partition_key: Option<String>,
    /// `RowKey`, if given.
    pub row_key: Option<String>,
    /// All other properties that have a value.
    pub properties: Properties,
}

/// Whatever a filter can be asked about: entities, and the names of tables.
pub trait Fields {
    /// The value of this name, if there is one.
    fn field(&self, name: &str) -> Option<ValueRef<'_>>;
}

impl Properties {
    /// No properties.
    pub const fn new() -> Self {
        Properties(Vec::new())
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|property| property.0 == name)
            .map(|property| &property.1)
    }

    /// Gives a property a value: in the place of an earlier one, or behind all others.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|property| property.0 == name) {
            Some(property) => property.1 = value,
            None => self.0.push(Property(name.to_owned(), value)),
        }
    }

    /// Takes over what a merge brings: new values, new properties behind the others.
    pub fn merge(&mut self, newer: Properties) {
        for Property(name, value) in newer.0 {
            self.set(&name, value);
        }
    }

    /// The properties in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0
            .iter()
            .map(|property| (property.0.as_str(), &property.1))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they count towards an entity's size, in bytes.
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
    /// The tag of its version.
    pub const fn etag(&self) -> EntityTag {
        EntityTag::of(self.timestamp)
    }

    /// What counts towards its size, in bytes.
    pub fn bytes(&self) -> usize {
        let keys = utf16_bytes(&self.partition_key) + utf16_bytes(&self.row_key);
        ENTITY_OVERHEAD_BYTES + keys + self.properties.bytes()
    }

    /// Whether it may be stored: a merge of two small bodies can be too large.
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
