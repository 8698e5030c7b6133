//! Tests of writing JSON: the shapes of the recordings, and that what is written reads back.

use super::*;
use proptest::prelude::*;

use crate::table::entity::Properties;
use crate::table::json::read::read_entity;
use crate::table::literal::tests::any_value;
use crate::time::Timestamp;

const SCOPE: Scope<'_> = Scope {
    endpoint: "https://a.table.core.windows.net/",
    account: "a",
    now: Timestamp::UNIX_EPOCH,
};

fn order() -> Entity {
    let value = |edm, text: &str| literal::read(edm, text).unwrap();
    use crate::table::value::EdmType::{Binary, Boolean, DateTime, Double, Guid, Int32, Int64};
    let properties = [
        ("Due", value(Double, "200.23")),
        ("Even", Value::Double(3.0)),
        ("Code", value(Guid, "c9da6455-213d-42c9-9a79-3e9149a57833")),
        ("Since", value(DateTime, "1992-12-20T21:55:00.5Z")),
        ("Active", value(Boolean, "true")),
        ("Orders", value(Int64, "255")),
        ("Age", value(Int32, "39")),
        ("Bytes", value(Binary, "YmluYXJ5")),
        ("Text", Value::String("ꀕ\n\"\\/😀\u{7f}".to_owned())),
        ("None", Value::Double(f64::NEG_INFINITY)),
    ];
    Entity {
        partition_key: "p'k".to_owned(),
        row_key: ":@".to_owned(),
        timestamp: Timestamp::parse_iso("2021-04-13T15:57:41.736970Z").unwrap(),
        properties: properties
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

fn written(metadata: Metadata, select: Option<&str>) -> String {
    let select = select.map(|select| Select::parse(select).unwrap());
    let bytes = entity(metadata, &SCOPE, "orders", select.as_ref(), &order());
    String::from_utf8(bytes).unwrap()
}

#[test]
fn an_entity_at_each_level() {
    let tag = r#"W/\"datetime'2021-04-13T15%3A57%3A41.73697Z'\""#;
    let none = r#"{"PartitionKey":"p'k","RowKey":":@","Timestamp":"2021-04-13T15:57:41.73697Z","Due":200.23,"Even":3.0,"Code":"c9da6455-213d-42c9-9a79-3e9149a57833","Since":"1992-12-20T21:55:00.5Z","Active":true,"Orders":"255","Age":39,"Bytes":"YmluYXJ5","Text":"\ua015\n\"\\/\ud83d\ude00?","None":"-Infinity"}"#.replace('?', "\u{7f}");
    assert_eq!(written(Metadata::None, None), none);
    let body = r#""Due":200.23,"Even":3.0,"Code@odata.type":"Edm.Guid","Code":"c9da6455-213d-42c9-9a79-3e9149a57833","Since@odata.type":"Edm.DateTime","Since":"1992-12-20T21:55:00.5Z","Active":true,"Orders@odata.type":"Edm.Int64","Orders":"255","Age":39,"Bytes@odata.type":"Edm.Binary","Bytes":"YmluYXJ5","Text":"\ua015\n\"\\/\ud83d\ude00?","None@odata.type":"Edm.Double","None":"-Infinity"}"#.replace('?', "\u{7f}");
    let minimal = format!(
        r#"{{"odata.metadata":"https://a.table.core.windows.net/$metadata#orders/@Element","odata.etag":"{tag}","PartitionKey":"p'k","RowKey":":@","Timestamp":"2021-04-13T15:57:41.73697Z",{body}"#
    );
    assert_eq!(written(Metadata::Minimal, None), minimal);
    let path = "orders(PartitionKey='p''k',RowKey='%3A%40')";
    let full = format!(
        r#"{{"odata.metadata":"https://a.table.core.windows.net/$metadata#orders/@Element","odata.type":"a.orders","odata.id":"https://a.table.core.windows.net/{path}","odata.etag":"{tag}","odata.editLink":"{path}","PartitionKey":"p'k","RowKey":":@","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2021-04-13T15:57:41.73697Z",{body}"#
    );
    assert_eq!(written(Metadata::Full, None), full);
}

#[test]
fn a_selection_is_echoed_and_answered_in_its_order() {
    let tag = r#"W/\"datetime'2021-04-13T15%3A57%3A41.73697Z'\""#;
    let expected = format!(
        r#"{{"odata.metadata":"https://a.table.core.windows.net/$metadata#orders/@Element&$select=Age,None9,RowKey,Due","odata.etag":"{tag}","RowKey":":@","Age":39,"None9":null,"Due":200.23}}"#
    );
    let select = "Age,None9,RowKey,Due";
    assert_eq!(written(Metadata::Minimal, Some(select)), expected);
    let all = written(Metadata::Minimal, Some(""));
    assert!(all.contains("/@Element&$select=\",") && all.contains("\"Age\":39"));
    assert_eq!(written(Metadata::None, Some("Age")), r#"{"Age":39}"#);
}

#[test]
fn pages_of_entities() {
    let page = |metadata, entities: &[Entity]| {
        let bytes = super::entities(metadata, &SCOPE, "orders", None, entities);
        String::from_utf8(bytes).unwrap()
    };
    let head = r#"{"odata.metadata":"https://a.table.core.windows.net/$metadata#orders","value":["#;
    assert_eq!(page(Metadata::Minimal, &[]), format!("{head}]}}"));
    assert_eq!(page(Metadata::None, &[]), r#"{"value":[]}"#);
    let one = written(Metadata::None, None);
    let two = format!(r#"{{"value":[{one},{one}]}}"#);
    assert_eq!(page(Metadata::None, &[order(), order()]), two);
}

#[test]
fn tables_at_each_level() {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let context =
        r#""odata.metadata":"https://a.table.core.windows.net/$metadata#Tables/@Element""#;
    let full = r#""odata.type":"a.Tables","odata.id":"https://a.table.core.windows.net/Tables('abc')","odata.editLink":"Tables('abc')","TableName":"abc""#;
    for (metadata, expected) in [
        (Metadata::None, r#"{"TableName":"abc"}"#.to_owned()),
        (
            Metadata::Minimal,
            format!(r#"{{{context},"TableName":"abc"}}"#),
        ),
        (Metadata::Full, format!("{{{context},{full}}}")),
    ] {
        assert_eq!(text(table(metadata, &SCOPE, "abc")), expected);
    }
    assert_eq!(
        text(tables(Metadata::Minimal, &SCOPE, None, ["abc", "abd"])),
        r#"{"odata.metadata":"https://a.table.core.windows.net/$metadata#Tables","value":[{"TableName":"abc"},{"TableName":"abd"}]}"#
    );
}

fn any_entity() -> impl Strategy<Value = Entity> {
    let keys = ("[^/\\\\#?\\x00-\\x1f\\x7f-\\x9f]{0,8}", "[ -\"$-.0->]{0,8}");
    let properties = proptest::collection::vec(("[a-zA-Z_]{1,5}", any_value()), 0..6);
    (keys, 0..=Timestamp::MAX.ticks(), properties).prop_map(|(keys, ticks, properties)| Entity {
        partition_key: keys.0,
        row_key: keys.1,
        timestamp: Timestamp::from_ticks(ticks),
        properties: properties.into_iter().collect(),
    })
}

/// What JSON does not tell apart: the two zeros, and one NaN from another.
fn as_read(properties: &Properties) -> Properties {
    let one = |value: &Value| match value {
        Value::Double(number) if *number == 0.0 => Value::Double(0.0),
        Value::Double(number) if number.is_nan() => Value::Double(f64::NAN),
        value => value.clone(),
    };
    let named = |(name, value): (&str, &Value)| (name.to_owned(), one(value));
    properties.iter().map(named).collect()
}

proptest! {
    #[test]
    fn entities_read_back_at_levels_that_name_types(given in any_entity(), is_full in any::<bool>()) {
        prop_assume!(given.properties.get("Timestamp").is_none());
        let metadata = if is_full { Metadata::Full } else { Metadata::Minimal };
        let bytes = entity(metadata, &SCOPE, "t", None, &given);
        let read = read_entity(&bytes).unwrap();
        prop_assert_eq!(read.partition_key, Some(given.partition_key));
        prop_assert_eq!(read.row_key, Some(given.row_key));
        prop_assert_eq!(read.properties, as_read(&given.properties));
        prop_assert!(bytes.is_ascii());
    }
}
