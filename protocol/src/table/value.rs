//! Values of properties, in the eight types that the service stores.
//!
//! Source: *Understanding the Table Service Data Model*, property types.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::table::serde_bytes;
use crate::time::Timestamp;

/// A type of the Entity Data Model that a property can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdmType {
    /// Up to 64 KiB of bytes.
    Binary,
    /// `true` or `false`.
    Boolean,
    /// A UTC time in ticks of 100 ns, from 1601-01-01.
    DateTime,
    /// A 64-bit floating point number.
    Double,
    /// A 128-bit identifier.
    Guid,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// Up to 64 KiB of UTF-16.
    String,
}

impl EdmType {
    /// Every type, in alphabetical order.
    pub const ALL: [EdmType; 8] = [
        EdmType::Binary,
        EdmType::Boolean,
        EdmType::DateTime,
        EdmType::Double,
        EdmType::Guid,
        EdmType::Int32,
        EdmType::Int64,
        EdmType::String,
    ];

    /// Returns the name on the wire, such as `Edm.Int64`.
    pub const fn as_str(self) -> &'static str {
        match self {
            EdmType::Binary => "Edm.Binary",
            EdmType::Boolean => "Edm.Boolean",
            EdmType::DateTime => "Edm.DateTime",
            EdmType::Double => "Edm.Double",
            EdmType::Guid => "Edm.Guid",
            EdmType::Int32 => "Edm.Int32",
            EdmType::Int64 => "Edm.Int64",
            EdmType::String => "Edm.String",
        }
    }

    /// Returns the type with this name; the comparison is exact.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edm| edm.as_str() == name)
    }
}

impl fmt::Display for EdmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value of a property. There is no null: a property without a value is not stored.
///
/// Two values are equal if they have the same type and the same bits, so a NaN equals itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Value {
    /// `Edm.Binary`.
    Binary(#[serde(with = "serde_bytes")] Vec<u8>),
    /// `Edm.Boolean`.
    Boolean(bool),
    /// `Edm.DateTime`.
    DateTime(Timestamp),
    /// `Edm.Double`.
    Double(f64),
    /// `Edm.Guid`.
    Guid(Uuid),
    /// `Edm.Int32`.
    Int32(i32),
    /// `Edm.Int64`.
    Int64(i64),
    /// `Edm.String`.
    String(String),
}

/// A borrowed value: a key or a property's value, as filters compare it.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// `Edm.Binary`.
    Binary(&'a [u8]),
    /// `Edm.Boolean`.
    Boolean(bool),
    /// `Edm.DateTime`.
    DateTime(Timestamp),
    /// `Edm.Double`.
    Double(f64),
    /// `Edm.Guid`.
    Guid(Uuid),
    /// `Edm.Int32`.
    Int32(i32),
    /// `Edm.Int64`.
    Int64(i64),
    /// `Edm.String`.
    String(&'a str),
}

impl Value {
    /// Borrows the value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Binary(bytes) => ValueRef::Binary(bytes),
            Value::Boolean(flag) => ValueRef::Boolean(*flag),
            Value::DateTime(instant) => ValueRef::DateTime(*instant),
            Value::Double(number) => ValueRef::Double(*number),
            Value::Guid(guid) => ValueRef::Guid(*guid),
            Value::Int32(number) => ValueRef::Int32(*number),
            Value::Int64(number) => ValueRef::Int64(*number),
            Value::String(text) => ValueRef::String(text),
        }
    }

    /// Returns the type of the value.
    pub fn edm_type(&self) -> EdmType {
        self.as_ref().edm_type()
    }

    /// Returns the value's part of an entity's size, in bytes. Source: the formula of *Azure Table
    /// storage pricing and capacity*: strings count two bytes per character plus four, binary
    /// values their length plus four.
    pub fn bytes(&self) -> usize {
        match self {
            Value::Binary(bytes) => bytes.len().saturating_add(4),
            Value::Boolean(_) => 1,
            Value::DateTime(_) | Value::Double(_) | Value::Int64(_) => 8,
            Value::Guid(_) => 16,
            Value::Int32(_) => 4,
            Value::String(text) => utf16_bytes(text).saturating_add(4),
        }
    }
}

/// Compares strings in ordinal order, by UTF-16 units: the order of keys, filters and answers. It
/// differs from the order of UTF-8 only between U+E000 to U+FFFF, whose first bytes are 0xEE and
/// 0xEF, and characters beyond U+FFFF: those consist of surrogates, which come first.
pub fn compare_text(one: &str, other: &str) -> Ordering {
    let unit = |byte: u8| match byte {
        0xee | 0xef => byte | 0x10,
        _ => byte,
    };
    one.bytes().map(unit).cmp(other.bytes().map(unit))
}

/// Returns the length of a string in UTF-16 bytes, as the service counts it.
pub fn utf16_bytes(text: &str) -> usize {
    text.encode_utf16().count().saturating_mul(2)
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
            _ => self.as_ref().compare(other.as_ref()) == Some(Ordering::Equal),
        }
    }
}

impl Eq for Value {}

impl ValueRef<'_> {
    /// Returns the type of the value.
    pub fn edm_type(self) -> EdmType {
        match self {
            ValueRef::Binary(_) => EdmType::Binary,
            ValueRef::Boolean(_) => EdmType::Boolean,
            ValueRef::DateTime(_) => EdmType::DateTime,
            ValueRef::Double(_) => EdmType::Double,
            ValueRef::Guid(_) => EdmType::Guid,
            ValueRef::Int32(_) => EdmType::Int32,
            ValueRef::Int64(_) => EdmType::Int64,
            ValueRef::String(_) => EdmType::String,
        }
    }

    /// Compares two values of one type; returns `None` for different types and for NaN. Strings are
    /// compared by [`compare_text`], bytes and identifiers bytewise.
    pub fn compare(self, other: ValueRef<'_>) -> Option<Ordering> {
        match (self, other) {
            (ValueRef::Binary(one), ValueRef::Binary(other)) => Some(one.cmp(other)),
            (ValueRef::Boolean(one), ValueRef::Boolean(other)) => Some(one.cmp(&other)),
            (ValueRef::DateTime(one), ValueRef::DateTime(other)) => Some(one.cmp(&other)),
            (ValueRef::Double(one), ValueRef::Double(other)) => one.partial_cmp(&other),
            (ValueRef::Guid(one), ValueRef::Guid(other)) => Some(one.cmp(&other)),
            (ValueRef::Int32(one), ValueRef::Int32(other)) => Some(one.cmp(&other)),
            (ValueRef::Int64(one), ValueRef::Int64(other)) => Some(one.cmp(&other)),
            (ValueRef::String(one), ValueRef::String(other)) => Some(compare_text(one, other)),
            _ => None,
        }
    }

    /// Returns an owned copy.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Binary(bytes) => Value::Binary(bytes.to_vec()),
            ValueRef::Boolean(flag) => Value::Boolean(flag),
            ValueRef::DateTime(instant) => Value::DateTime(instant),
            ValueRef::Double(number) => Value::Double(number),
            ValueRef::Guid(guid) => Value::Guid(guid),
            ValueRef::Int32(number) => Value::Int32(number),
            ValueRef::Int64(number) => Value::Int64(number),
            ValueRef::String(text) => Value::String(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn type_names_parse_back() {
        for edm in EdmType::ALL {
            assert_eq!(EdmType::parse(edm.as_str()), Some(edm));
        }
        assert_eq!(EdmType::parse("edm.string"), None);
        assert_eq!(EdmType::parse("Edm.Single"), None);
    }

    #[test]
    fn values_of_two_types_have_no_order() {
        let one = ValueRef::Int32(1);
        assert_eq!(one.compare(ValueRef::Int64(1)), None);
        assert_eq!(one.compare(ValueRef::Int32(2)), Some(Ordering::Less));
        let nan = ValueRef::Double(f64::NAN);
        assert_eq!(nan.compare(nan), None);
        assert_eq!(nan.to_value(), nan.to_value());
        assert_ne!(Value::Double(0.0), Value::Double(-0.0));
    }

    proptest! {
        #[test]
        fn strings_are_ordered_by_utf_16_units(
            one in "[a\u{d7ff}\u{e000}\u{ffff}\u{10000}😀ü]{0,4}",
            other in "[a\u{d7ff}\u{e000}\u{ffff}\u{10000}😀ü]{0,4}",
        ) {
            let units = one.encode_utf16().cmp(other.encode_utf16());
            prop_assert_eq!(compare_text(&one, &other), units);
        }
    }
}
