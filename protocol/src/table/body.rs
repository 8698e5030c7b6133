//! The part of parsing a write's body that JSON and Atom share.
//!
//! Source: *Understanding the Table Service Data Model* for the limits; recordings for their codes.

use std::collections::HashSet;

use crate::error::{ErrorCode, StorageError};
use crate::limits::{ENTITY_PROPERTIES_MAX, PROPERTY_NAME_CHARS_MAX, PROPERTY_VALUE_BYTES_MAX};
use crate::table::entity::{EntityBody, PARTITION_KEY, ROW_KEY, TIMESTAMP};
use crate::table::key::check_key;
use crate::table::value::{Value, utf16_bytes};
use crate::time::Timestamp;

/// Collects the properties of a body.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    body: EntityBody,
    names: HashSet<String>,
}

impl Builder {
    /// Records a name, with or without a value.
    ///
    /// # Errors
    /// 400 `DuplicatePropertiesSpecified` for a repeated name.
    pub(crate) fn name(&mut self, name: &str) -> Result<(), StorageError> {
        if self.names.insert(name.to_owned()) {
            Ok(())
        } else {
            Err(ErrorCode::DuplicatePropertiesSpecified.into())
        }
    }

    /// Adds a property with its value.
    ///
    /// # Errors
    /// Those of keys, names and values; 400 `InvalidInput` for a key that is not a string, 400
    /// `TooManyProperties`.
    pub(crate) fn value(&mut self, name: String, value: Value) -> Result<(), StorageError> {
        match name.as_str() {
            PARTITION_KEY => self.body.partition_key = Some(key(value)?),
            ROW_KEY => self.body.row_key = Some(key(value)?),
            TIMESTAMP => {}
            _ => {
                if self.body.properties.len() >= ENTITY_PROPERTIES_MAX {
                    return Err(ErrorCode::TooManyProperties.into());
                }
                check_name(&name)?;
                check_value(&value)?;
                self.body.properties.push(name, value);
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> EntityBody {
        self.body
    }
}

fn key(value: Value) -> Result<String, StorageError> {
    let Value::String(key) = value else {
        return Err(ErrorCode::InvalidInput.into());
    };
    check_key(&key)?;
    Ok(key)
}

/// Checks that a property's name is a C# identifier. Rejects `:` and other marks.
fn check_name(name: &str) -> Result<(), StorageError> {
    if name.encode_utf16().count() > PROPERTY_NAME_CHARS_MAX {
        return Err(ErrorCode::PropertyNameTooLong.into());
    }
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if starts && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        Ok(())
    } else {
        Err(ErrorCode::PropertyNameInvalid.into())
    }
}

fn check_value(value: &Value) -> Result<(), StorageError> {
    let bytes = match value {
        Value::String(text) => utf16_bytes(text),
        Value::Binary(bytes) => bytes.len(),
        Value::DateTime(instant) if *instant < Timestamp::WINDOWS_EPOCH => {
            return Err(out_of_range());
        }
        _ => return Ok(()),
    };
    if bytes > PROPERTY_VALUE_BYTES_MAX {
        return Err(ErrorCode::PropertyValueTooLarge.into());
    }
    Ok(())
}

/// Returns the error for keys and dates that are out of range.
pub(crate) fn out_of_range() -> StorageError {
    let message = "One of the request inputs is out of range.";
    StorageError::new(ErrorCode::OutOfRangeInput).with_message(message)
}

/// Returns the error for a malformed body.
pub(crate) fn invalid(cause: &str) -> StorageError {
    StorageError::new(ErrorCode::InvalidInput).with_cause(cause)
}
