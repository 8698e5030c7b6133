//! Tests of parsing JSON: recorded bodies and malformed ones.

use super::*;
use proptest::prelude::*;

use crate::time::Timestamp;

fn properties(body: &str) -> Vec<(String, Value)> {
    let read = read_entity(body.as_bytes()).unwrap();
    let owned = |(name, value): (&str, &Value)| (name.to_owned(), value.clone());
    read.properties.iter().map(owned).collect()
}

fn code(body: &str) -> Option<ErrorCode> {
    read_entity(body.as_bytes()).err().map(|error| error.code())
}

#[test]
fn types_are_named_or_inferred() {
    let body = r#"{"PartitionKey":"p","RowKey":"","odata.etag":"W/\"x\"","Timestamp":7,
        "RowKey@odata.type":"Edm.String","RowKey@odata.type@odata.type":"Edm.String",
        "i":39,"big":2147483648,"r":3.0,"e":1e3,"t":true,"s":"text","none":null,
        "due":"200.23","due@odata.type":"Edm.Double","whole@odata.type":"Edm.Double","whole":5,
        "l":"9007199254740993","l@odata.type":"Edm.Int64","m":7,"m@odata.type":"Edm.Int64",
        "g":"c9da6455-213d-42c9-9a79-3e9149a57833","g@odata.type":"Edm.Guid",
        "d":"1973-10-04T00:00:00.000000Z","d@odata.type":"Edm.DateTime",
        "b":"YmluYXJ5","b@odata.type":"Edm.Binary","n":"NaN","n@odata.type":"Edm.Double",
        "x@other.note":[1,{}],"x":"\ua015"}"#;
    let read = read_entity(body.as_bytes()).unwrap();
    assert_eq!(read.partition_key.as_deref(), Some("p"));
    assert_eq!(read.row_key.as_deref(), Some(""));
    let guid = literal::read(EdmType::Guid, "c9da6455-213d-42c9-9a79-3e9149a57833").unwrap();
    let date = Timestamp::parse_iso("1973-10-04T00:00:00Z").unwrap();
    let expected = [
        ("i", Value::Int32(39)),
        ("big", Value::Double(2_147_483_648.0)),
        ("r", Value::Double(3.0)),
        ("e", Value::Double(1000.0)),
        ("t", Value::Boolean(true)),
        ("s", Value::String("text".to_owned())),
        ("due", Value::Double(200.23)),
        ("whole", Value::Double(5.0)),
        ("l", Value::Int64(9_007_199_254_740_993)),
        ("m", Value::Int64(7)),
        ("g", guid),
        ("d", Value::DateTime(date)),
        ("b", Value::Binary(b"binary".to_vec())),
        ("n", Value::Double(f64::NAN)),
        ("x", Value::String("\u{a015}".to_owned())),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(properties(body), expected);
}

#[test]
fn names_that_differ_in_case_are_distinct() {
    let body = r#"{"ETag":"foo","etag":"bar","timestamp":"1999","Etag":"baz"}"#;
    let names: Vec<_> = properties(body).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["ETag", "etag", "timestamp", "Etag"]);
}

#[test]
fn malformed_bodies_are_rejected() {
    use ErrorCode::{
        DuplicatePropertiesSpecified, InvalidInput, KeyValueTooLarge, OutOfRangeInput,
        PropertyNameInvalid, PropertyNameTooLong,
    };
    let deep = format!(r#"{{"a":{}}}"#, "[".repeat(20_000));
    let long_name = format!(r#"{{"{}":1}}"#, "n".repeat(256));
    let long_key = format!(r#"{{"RowKey":"{}"}}"#, "n".repeat(513));
    for (body, expected) in [
        ("", InvalidInput),
        ("[]", InvalidInput),
        ("7", InvalidInput),
        ("{", InvalidInput),
        ("{}{}", InvalidInput),
        (r#"{"a":1,}"#, InvalidInput),
        (r#"{"a":{"b":1}}"#, InvalidInput),
        (r#"{"a":[1]}"#, InvalidInput),
        (r#"{"a":1e400}"#, InvalidInput),
        (deep.as_str(), InvalidInput),
        (r#"{"a":1,"a@odata.type":"Edm.Single"}"#, InvalidInput),
        (r#"{"a":1,"a@odata.type":7}"#, InvalidInput),
        (r#"{"a":"x","a@odata.type":"Edm.Int32"}"#, InvalidInput),
        (
            r#"{"a":2147483648,"a@odata.type":"Edm.Int32"}"#,
            InvalidInput,
        ),
        (r#"{"a":1.5,"a@odata.type":"Edm.Int64"}"#, InvalidInput),
        (r#"{"a":1,"a@odata.type":"Edm.String"}"#, InvalidInput),
        (r#"{"a":true,"a@odata.type":"Edm.String"}"#, InvalidInput),
        (r#"{"PartitionKey":1}"#, InvalidInput),
        (r#"{"a":1,"a":1}"#, DuplicatePropertiesSpecified),
        (r#"{"a":null,"a":1}"#, DuplicatePropertiesSpecified),
        (
            r#"{"RowKey":"a","RowKey":"a"}"#,
            DuplicatePropertiesSpecified,
        ),
        (
            r#"{"a":"1","a@odata.type":"Edm.Int64","a@odata.type":"Edm.Int64"}"#,
            DuplicatePropertiesSpecified,
        ),
        (
            r#"{"a@odata.type":"Edm.Int64","a@odata.type":"Edm.Guid","a":"1"}"#,
            DuplicatePropertiesSpecified,
        ),
        (r#"{"a-b":1}"#, PropertyNameInvalid),
        (r#"{"1a":1}"#, PropertyNameInvalid),
        (r#"{"":1}"#, PropertyNameInvalid),
        (long_name.as_str(), PropertyNameTooLong),
        (long_key.as_str(), KeyValueTooLarge),
        (r#"{"RowKey":"a/b"}"#, OutOfRangeInput),
        (
            r#"{"a":"1600-12-31T00:00:00Z","a@odata.type":"Edm.DateTime"}"#,
            OutOfRangeInput,
        ),
    ] {
        assert_eq!(code(body), Some(expected), "{body:.80}");
    }
    assert_eq!(
        read_entity(b"{\"a\":\"\xff\"}").unwrap_err().code(),
        InvalidInput
    );
}

#[test]
fn sizes_are_bounded() {
    let text = |units: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(units));
    assert_eq!(code(&text(32 * 1024)), None);
    let too_large = Some(ErrorCode::PropertyValueTooLarge);
    assert_eq!(code(&text(32 * 1024 + 1)), too_large);
    let binary = |bytes: usize| {
        let value = Value::Binary(vec![0; bytes]);
        let text = literal::write(&value).into_owned();
        format!(r#"{{"a":"{text}","a@odata.type":"Edm.Binary"}}"#)
    };
    assert_eq!(code(&binary(64 * 1024)), None);
    assert_eq!(code(&binary(64 * 1024 + 1)), too_large);
    let many = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!(r#""k{n}":{n}"#)).collect();
        format!("{{{},\"gone\":null}}", members.join(","))
    };
    assert_eq!(code(&many(252)), None);
    assert_eq!(code(&many(253)), Some(ErrorCode::TooManyProperties));
}

#[test]
fn table_names_are_parsed() {
    let named = |body: &str| read_table_name(body.as_bytes()).map_err(|error| error.code());
    assert_eq!(named("\u{feff}{\"TableName\":\"x\"}\n").as_deref(), Ok("x"));
    assert_eq!(named(r#"{"TableName":7}"#), Err(ErrorCode::InvalidInput));
    assert_eq!(named("{}"), Err(ErrorCode::PropertiesNeedValue));
    assert_eq!(named("<a/>"), Err(ErrorCode::InvalidInput));
}

proptest! {
    #[test]
    fn any_body_is_parsed_or_rejected(body in "[\\[\\]{}\":,a@odata.type EdmIn0-9\\\\u-]{0,60}") {
        let _ = read_entity(body.as_bytes());
        let _ = read_table_name(body.as_bytes());
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = read_entity(&body);
    }
}
