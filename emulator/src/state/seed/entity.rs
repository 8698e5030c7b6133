//! Entities of a seed: converts TOML values to the JSON of the Table service.

use serde_json::{Map, Value as Json, json};
use smalt_protocol::table::entity::{PARTITION_KEY, ROW_KEY};
use toml::{Table, Value};

/// An entity in the form of an insert request.
pub(super) struct NewEntity {
    pub(super) partition_key: String,
    pub(super) row_key: String,
    pub(super) document: Json,
}

/// Converts an entity.
///
/// Strings, booleans and times map directly; an integer becomes an `Edm.Int32` or, if it does not
/// fit, an `Edm.Int64`; any other number an `Edm.Double`. `{ type = "Edm.Guid", value = "..." }`
/// specifies the type.
pub(super) fn read(entity: &Table) -> Result<NewEntity, String> {
    let key = |name: &str| match entity.get(name) {
        Some(Value::String(key)) => Ok(key.clone()),
        Some(_) => Err(format!("{name} is not a string")),
        None => Err(format!("the entity has no {name}")),
    };
    let mut document = Map::new();
    for (name, value) in entity {
        let (value, edm) = property(value).map_err(|what| format!("{name}: {what}"))?;
        document.insert(name.clone(), value);
        if let Some(edm) = edm {
            document.insert(format!("{name}@odata.type"), edm.into());
        }
    }
    Ok(NewEntity {
        partition_key: key(PARTITION_KEY)?,
        row_key: key(ROW_KEY)?,
        document: Json::Object(document),
    })
}

fn property(value: &Value) -> Result<(Json, Option<String>), String> {
    let typed = |text: String, edm: &str| (Json::String(text), Some(edm.to_owned()));
    Ok(match value {
        Value::String(text) => (json!(text), None),
        Value::Boolean(flag) => (json!(flag), None),
        Value::Integer(whole) => match i32::try_from(*whole) {
            Ok(whole) => (json!(whole), None),
            Err(_) => typed(whole.to_string(), "Edm.Int64"),
        },
        Value::Float(number) if number.is_nan() => typed("NaN".to_owned(), "Edm.Double"),
        Value::Float(number) if number.is_infinite() => {
            let sign = if *number < 0.0 { "-" } else { "" };
            typed(format!("{sign}Infinity"), "Edm.Double")
        }
        Value::Float(number) => (json!(number), Some("Edm.Double".to_owned())),
        Value::Datetime(time) if time.offset.is_some() => typed(time.to_string(), "Edm.DateTime"),
        Value::Datetime(_) => return Err("add a time zone: 2026-01-31T12:00:00Z".to_owned()),
        Value::Table(named) => match (named.get("type"), named.get("value"), named.len()) {
            (Some(Value::String(edm)), Some(value), 2) => match value {
                Value::String(text) => (json!(text), Some(edm.clone())),
                Value::Integer(whole) => typed(whole.to_string(), edm),
                Value::Float(number) => (json!(number), Some(edm.clone())),
                Value::Boolean(flag) => (json!(flag), Some(edm.clone())),
                _ => return Err("value is not a string, number or boolean".to_owned()),
            },
            _ => return Err("write a typed value as { type = \"...\", value = ... }".into()),
        },
        Value::Array(_) => return Err("a property cannot be a list".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_values_get_edm_types() {
        let text = r#"
            PartitionKey = "p"
            RowKey = "r"
            small = 7
            large = 9007199254740993
            number = 1.5
            odd = nan
            yes = true
            time = 2026-01-31T12:00:00Z
            id = { type = "Edm.Guid", value = "9f2c4b1e-8a53-4d36-a1f2-5f0d0e6f7a11" }
            long = { type = "Edm.Int64", value = 7 }
        "#;
        let entity = read(&text.parse().unwrap()).unwrap();
        let document = entity.document;
        assert_eq!(
            (document["small"].as_i64(), document["yes"].as_bool()),
            (Some(7), Some(true))
        );
        for (name, edm) in [
            ("large", "Edm.Int64"),
            ("number", "Edm.Double"),
            ("odd", "Edm.Double"),
            ("time", "Edm.DateTime"),
            ("id", "Edm.Guid"),
            ("long", "Edm.Int64"),
        ] {
            assert_eq!(document[format!("{name}@odata.type")], edm, "{name}");
        }
    }

    #[test]
    fn an_error_names_the_property() {
        for (text, named) in [
            ("RowKey = \"r\"", "PartitionKey"),
            ("PartitionKey = 1\nRowKey = \"r\"", "PartitionKey"),
            ("PartitionKey = \"p\"\nRowKey = \"r\"\nlist = [1]", "list"),
            (
                "PartitionKey = \"p\"\nRowKey = \"r\"\nwhen = 2026-01-31",
                "when",
            ),
            (
                "PartitionKey = \"p\"\nRowKey = \"r\"\nx = { value = 1 }",
                "x:",
            ),
        ] {
            let error = read(&text.parse().unwrap()).err().unwrap();
            assert!(error.contains(named), "{error}");
        }
    }
}
