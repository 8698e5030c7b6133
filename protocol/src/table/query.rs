//! Options of a query: `$select` and `$top`.
//!
//! Source: *Querying tables and entities*.

use crate::error::{ErrorCode, StorageError};
use crate::limits::TABLE_QUERY_RESULTS_MAX;

/// Maximum names of one `$select`: the maximum number of properties of an entity.
const SELECT_NAMES_MAX: usize = 255;

/// The properties that a query asks for, in the order named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    names: Vec<String>,
}

impl Select {
    /// Parses the option's value. An empty value and `*` select every property, but are echoed.
    ///
    /// # Errors
    /// 400 `InvalidInput` for an empty name between commas and for more than 255 names.
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        let names: Vec<String> = text
            .split(',')
            .take(SELECT_NAMES_MAX + 1)
            .map(|name| name.trim().to_owned())
            .collect();
        let is_blank = names.len() == 1 && names.iter().all(String::is_empty);
        if is_blank {
            return Ok(Select { names: Vec::new() });
        }
        if names.len() > SELECT_NAMES_MAX || names.iter().any(String::is_empty) {
            return Err(ErrorCode::InvalidInput.into());
        }
        Ok(Select { names })
    }

    /// Returns the names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether the answer contains this property.
    pub fn has(&self, name: &str) -> bool {
        self.is_everything() || self.names.iter().any(|given| given == name)
    }

    /// Returns whether it selects every property.
    pub fn is_everything(&self) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == "*")
    }
}

/// Parses `$top`, the maximum number of results of a page.
///
/// # Errors
/// 400 `InvalidInput` for anything but a number from 0 to 1,000.
pub fn parse_top(text: &str) -> Result<u32, StorageError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let top = digits.then(|| text.parse::<u32>().ok()).flatten();
    top.filter(|top| *top <= TABLE_QUERY_RESULTS_MAX)
        .ok_or_else(|| ErrorCode::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_parsed() {
        let select = Select::parse("age, PartitionKey").unwrap();
        assert_eq!(select.names(), ["age", "PartitionKey"]);
        assert!(select.has("age") && !select.has("Age"));
        for everything in ["", " ", "*", "a,*"] {
            assert!(Select::parse(everything).unwrap().has("x"), "{everything}");
        }
        for refused in [",", "a,,b", "a,"] {
            assert!(Select::parse(refused).is_err(), "{refused}");
        }
        let many = |count: usize| vec!["a"; count].join(",");
        assert!(Select::parse(&many(255)).is_ok());
        assert!(Select::parse(&many(256)).is_err());
    }

    #[test]
    fn top_values_are_parsed() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1)),
            ("1000", Some(1000)),
            ("1001", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("1e2", None),
            ("99999999999", None),
        ] {
            assert_eq!(parse_top(text).ok(), expected, "{text}");
        }
    }
}
