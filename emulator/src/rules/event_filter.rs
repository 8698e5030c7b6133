//! Filters of event subscriptions.
//!
//! Source: "Understand event filtering for Event Grid subscriptions". Strings are compared without
//! regard to ASCII case.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::EventKind;

/// Most advanced filters of a subscription. Same page, "Limitations".
const ADVANCED_MAX: usize = 25;
/// Most values of all advanced filters of a subscription. Same page.
const VALUES_MAX: usize = 25;
/// Longest value of an advanced filter, in characters. Same page.
const VALUE_CHARS_MAX: usize = 512;

/// The events that a subscription wants. The default wants all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Types; empty for every type.
    pub event_types: Vec<EventKind>,
    /// Beginning of the subject.
    pub subject_begins_with: String,
    /// End of the subject.
    pub subject_ends_with: String,
    /// Whether the case of the subject matters.
    pub subject_case_sensitive: bool,
    /// Conditions on fields of the event, which must all hold.
    pub advanced: Vec<Advanced>,
}

/// A condition on one field of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advanced {
    /// The comparison.
    pub operator: Operator,
    /// Path of the field: `subject`, `eventType`, `data.api`, `data.storageDiagnostics.batchId`.
    pub key: String,
    /// The values to compare with; one match is enough.
    #[serde(default)]
    pub values: Vec<Value>,
}

/// The comparison of a condition, with the names of Event Grid's `operatorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operator {
    NumberIn,
    NumberNotIn,
    NumberLessThan,
    NumberLessThanOrEquals,
    NumberGreaterThan,
    NumberGreaterThanOrEquals,
    NumberInRange,
    NumberNotInRange,
    BoolEquals,
    StringIn,
    StringNotIn,
    StringContains,
    StringNotContains,
    StringBeginsWith,
    StringNotBeginsWith,
    StringEndsWith,
    StringNotEndsWith,
    IsNullOrUndefined,
    IsNotNull,
}

impl Filter {
    /// Validates what the types do not express.
    ///
    /// # Errors
    /// The field and its valid values.
    pub fn validate(&self) -> Result<(), String> {
        let values = self.advanced.iter().map(|one| one.values.len()).sum();
        if self.advanced.len() > ADVANCED_MAX || VALUES_MAX < values {
            return Err(format!(
                "advanced: at most {ADVANCED_MAX} conditions with {VALUES_MAX} values in all"
            ));
        }
        self.advanced.iter().try_for_each(Advanced::validate)
    }

    /// Returns whether the subscription wants an event, given in the Event Grid schema.
    pub fn wants(&self, kind: EventKind, event: &Value) -> bool {
        let is_type = self.event_types.is_empty() || self.event_types.contains(&kind);
        let subject = event["subject"].as_str().unwrap_or_default();
        let fold = |text: &str| match self.subject_case_sensitive {
            true => text.to_owned(),
            false => text.to_ascii_lowercase(),
        };
        let folded = fold(subject);
        is_type
            && folded.starts_with(&fold(&self.subject_begins_with))
            && folded.ends_with(&fold(&self.subject_ends_with))
            && self.advanced.iter().all(|one| one.holds(event))
    }
}

impl Advanced {
    fn validate(&self) -> Result<(), String> {
        if self.key.is_empty() || self.key.split('.').any(str::is_empty) {
            return Err("advanced: `key` names a field, such as data.api".to_owned());
        }
        let (is_right, expected) = self.expected();
        let takes_none = matches!(
            self.operator,
            Operator::IsNullOrUndefined | Operator::IsNotNull
        );
        if self.values.is_empty() != takes_none || !self.values.iter().all(is_right) {
            return Err(format!(
                "advanced: `values` of {:?} must be {expected}",
                self.operator
            ));
        }
        Ok(())
    }

    /// Returns the check of a value of this operator, and what it asks for.
    fn expected(&self) -> (fn(&Value) -> bool, &'static str) {
        use Operator as Op;
        match self.operator {
            Op::BoolEquals => (Value::is_boolean, "true or false"),
            Op::NumberInRange | Op::NumberNotInRange => {
                (|value| range(value).is_some(), "pairs of numbers")
            }
            Op::IsNullOrUndefined | Op::IsNotNull => (|_| false, "absent"),
            Op::NumberIn
            | Op::NumberNotIn
            | Op::NumberLessThan
            | Op::NumberLessThanOrEquals
            | Op::NumberGreaterThan
            | Op::NumberGreaterThanOrEquals => (Value::is_number, "numbers"),
            Op::StringIn
            | Op::StringNotIn
            | Op::StringContains
            | Op::StringNotContains
            | Op::StringBeginsWith
            | Op::StringNotBeginsWith
            | Op::StringEndsWith
            | Op::StringNotEndsWith => (is_short, "strings of at most 512 characters"),
        }
    }

    fn holds(&self, event: &Value) -> bool {
        use Operator as Op;
        let found = field(event, &self.key);
        let any = |test: fn(&Value, &Value) -> bool| {
            found.is_some_and(|found| self.values.iter().any(|value| test(found, value)))
        };
        match self.operator {
            Op::NumberIn => any(|a, b| number(a, b, |a, b| a == b)),
            Op::NumberNotIn => !any(|a, b| number(a, b, |a, b| a == b)),
            Op::NumberLessThan => any(|a, b| number(a, b, |a, b| a < b)),
            Op::NumberLessThanOrEquals => any(|a, b| number(a, b, |a, b| a <= b)),
            Op::NumberGreaterThan => any(|a, b| number(a, b, |a, b| a > b)),
            Op::NumberGreaterThanOrEquals => any(|a, b| number(a, b, |a, b| a >= b)),
            Op::NumberInRange => any(is_within),
            Op::NumberNotInRange => !any(is_within),
            Op::BoolEquals => any(|a, b| a.is_boolean() && a == b),
            Op::StringIn => any(|a, b| text(a, b, |a, b| a == b)),
            Op::StringNotIn => !any(|a, b| text(a, b, |a, b| a == b)),
            Op::StringContains => any(|a, b| text(a, b, |a, b| a.contains(b))),
            Op::StringNotContains => !any(|a, b| text(a, b, |a, b| a.contains(b))),
            Op::StringBeginsWith => any(|a, b| text(a, b, |a, b| a.starts_with(b))),
            Op::StringNotBeginsWith => !any(|a, b| text(a, b, |a, b| a.starts_with(b))),
            Op::StringEndsWith => any(|a, b| text(a, b, |a, b| a.ends_with(b))),
            Op::StringNotEndsWith => !any(|a, b| text(a, b, |a, b| a.ends_with(b))),
            Op::IsNullOrUndefined => found.is_none_or(Value::is_null),
            Op::IsNotNull => found.is_some_and(|found| !found.is_null()),
        }
    }
}

/// Returns the field at a path. Names are compared without regard to case, as in Event Grid, which
/// documents `data.key1` and `Data.Key1`. Also knows the names that CloudEvents has.
fn field<'a>(event: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = event;
    for (depth, name) in path.split('.').enumerate() {
        let name = match (depth, name.to_ascii_lowercase().as_str()) {
            (0, "source") => "topic",
            (0, "type") => "eventType",
            (0, "time") => "eventTime",
            _ => name,
        };
        let fields = at.as_object()?;
        let found = fields
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        at = found?.1;
    }
    Some(at)
}

fn number(a: &Value, b: &Value, test: fn(f64, f64) -> bool) -> bool {
    matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if test(a, b))
}

fn text(a: &Value, b: &Value, test: fn(&str, &str) -> bool) -> bool {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => test(&a.to_ascii_lowercase(), &b.to_ascii_lowercase()),
        _ => false,
    }
}

fn is_short(value: &Value) -> bool {
    let chars = value.as_str().map(|text| text.chars().count());
    chars.is_some_and(|chars| chars <= VALUE_CHARS_MAX)
}

fn range(value: &Value) -> Option<(f64, f64)> {
    match value.as_array()?.as_slice() {
        [from, to] => Some((from.as_f64()?, to.as_f64()?)),
        _ => None,
    }
}

fn is_within(a: &Value, bounds: &Value) -> bool {
    matches!((a.as_f64(), range(bounds)), (Some(a), Some((from, to))) if from <= a && a <= to)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event() -> Value {
        json!({
            "subject": "/blobServices/default/containers/Photos/blobs/a.JPG",
            "eventType": "Microsoft.Storage.BlobCreated",
            "data": { "api": "PutBlob", "contentLength": 10, "storageDiagnostics": { "x": true } },
        })
    }

    #[test]
    fn subject_and_type_select() {
        let wants = |filter: Value| {
            let filter: Filter = serde_json::from_value(filter).unwrap();
            filter.wants(EventKind::BlobCreated, &event())
        };
        let begins = "/blobservices/default/containers/photos/";
        for (filter, expected) in [
            (json!({}), true),
            (
                json!({"event_types": ["Microsoft.Storage.BlobCreated"]}),
                true,
            ),
            (
                json!({"event_types": ["Microsoft.Storage.BlobDeleted"]}),
                false,
            ),
            (
                json!({"subject_begins_with": begins, "subject_ends_with": ".jpg"}),
                true,
            ),
            (
                json!({"subject_ends_with": ".jpg", "subject_case_sensitive": true}),
                false,
            ),
            (json!({"subject_begins_with": "/x"}), false),
        ] {
            assert_eq!(wants(filter.clone()), expected, "{filter}");
        }
    }

    #[test]
    fn advanced_conditions_compare_fields() {
        for (operator, key, values, expected) in [
            ("StringIn", "data.api", json!(["putblob", "x"]), true),
            ("StringNotIn", "Data.Api", json!(["PutBlob"]), false),
            ("StringNotIn", "data.none", json!(["PutBlob"]), true),
            ("StringContains", "subject", json!(["photos"]), true),
            ("StringNotContains", "subject", json!(["photos"]), false),
            (
                "StringBeginsWith",
                "type",
                json!(["Microsoft.Storage"]),
                true,
            ),
            (
                "StringNotBeginsWith",
                "type",
                json!(["Microsoft.Storage"]),
                false,
            ),
            ("StringEndsWith", "subject", json!([".png", ".jpg"]), true),
            ("StringNotEndsWith", "subject", json!([".png"]), true),
            ("NumberIn", "data.contentLength", json!([9, 10]), true),
            ("NumberNotIn", "data.contentLength", json!([9, 10]), false),
            ("NumberLessThan", "data.contentLength", json!([10]), false),
            (
                "NumberLessThanOrEquals",
                "data.contentLength",
                json!([10]),
                true,
            ),
            (
                "NumberGreaterThan",
                "data.contentLength",
                json!([9.5]),
                true,
            ),
            ("NumberGreaterThanOrEquals", "data.none", json!([0]), false),
            (
                "NumberInRange",
                "data.contentLength",
                json!([[0, 1], [5, 10]]),
                true,
            ),
            (
                "NumberNotInRange",
                "data.contentLength",
                json!([[5, 10]]),
                false,
            ),
            (
                "BoolEquals",
                "data.storageDiagnostics.x",
                json!([true]),
                true,
            ),
            ("IsNullOrUndefined", "data.none", json!([]), true),
            ("IsNotNull", "data.api", json!([]), true),
        ] {
            let one = json!({"operator": operator, "key": key, "values": values});
            let one: Advanced = serde_json::from_value(one).unwrap();
            assert_eq!(one.validate(), Ok(()), "{one:?}");
            assert_eq!(one.holds(&event()), expected, "{one:?}");
        }
    }

    #[test]
    fn invalid_conditions_are_rejected() {
        for (operator, key, values) in [
            ("StringIn", "data.api", json!([])),
            ("StringIn", "data.api", json!([1])),
            ("StringIn", "", json!(["x"])),
            ("StringIn", "data..api", json!(["x"])),
            ("StringIn", "data.api", json!(["x".repeat(513)])),
            ("NumberIn", "data.api", json!(["1"])),
            ("NumberInRange", "data.api", json!([1])),
            ("IsNotNull", "data.api", json!([1])),
        ] {
            let one = json!({"operator": operator, "key": key, "values": values});
            let advanced = vec![serde_json::from_value(one.clone()).unwrap()];
            let filter = Filter {
                advanced,
                ..Filter::default()
            };
            assert!(filter.validate().is_err(), "{one}");
        }
    }
}
