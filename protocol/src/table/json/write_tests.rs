//! Tests of writing JSON: the recorded shapes, and round trips.

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

fn object(members: &[&[&str]]) -> String {
    format!("{{{}}}", members.concat().join(","))
}

const CONTEXT: &str =
    r#""odata.metadata":"https://a.table.core.windows.net/$metadata#orders/@Element""#;
const TAG: &str = r#""odata.etag":"W/\"datetime'2021-04-13T15%3A57%3A41.73697Z'\"""#;
const KEYS: [&str; 2] = [r#""PartitionKey":"p'k""#, r#""RowKey":":@""#];
const TIME_TYPE: &str = r#""Timestamp@odata.type":"Edm.DateTime""#;
const TIME: &str = r#""Timestamp":"2021-04-13T15:57:41.73697Z""#;
/// The properties; the tests leave out the type annotations at the level without types.
const PROPERTIES: [&str; 15] = [
    r#""Due":200.23"#,
    r#""Even":3.0"#,
    r#""Code@odata.type":"Edm.Guid""#,
    r#""Code":"c9da6455-213d-42c9-9a79-3e9149a57833""#,
    r#""Since@odata.type":"Edm.DateTime""#,
    r#""Since":"1992-12-20T21:55:00.5Z""#,
    r#""Active":true"#,
    r#""Orders@odata.type":"Edm.Int64""#,
    r#""Orders":"255""#,
    r#""Age":39"#,
    r#""Bytes@odata.type":"Edm.Binary""#,
    r#""Bytes":"YmluYXJ5""#,
    "\"Text\":\"\\ua015\\n\\\"\\\\/\\ud83d\\ude00\u{7f}\"",
    r#""None@odata.type":"Edm.Double""#,
    r#""None":"-Infinity""#,
];

#[test]
fn an_entity_at_each_level() {
    let is_bare = |member: &&str| !member.contains("@odata.type");
    let bare: Vec<_> = PROPERTIES.into_iter().filter(is_bare).collect();
    let none = object(&[&KEYS, &[TIME], &bare]);
    assert_eq!(written(Metadata::None, None), none);
    let minimal = object(&[&[CONTEXT, TAG], &KEYS, &[TIME], &PROPERTIES]);
    assert_eq!(written(Metadata::Minimal, None), minimal);
    let path = "orders(PartitionKey='p''k',RowKey='%3A%40')";
    let described = [
        CONTEXT,
        r#""odata.type":"a.orders""#,
        &format!(r#""odata.id":"{}{path}""#, SCOPE.endpoint),
        TAG,
        &format!(r#""odata.editLink":"{path}""#),
    ];
    let full = object(&[&described, &KEYS, &[TIME_TYPE, TIME], &PROPERTIES]);
    assert_eq!(written(Metadata::Full, None), full);
}

#[test]
fn a_selection_is_echoed_and_answered_in_its_order() {
    let select = "Age,None9,RowKey,Due";
    let context = CONTEXT.replace("Element", &format!("Element&$select={select}"));
    let chosen = [r#""Age":39"#, r#""None9":null"#, r#""Due":200.23"#];
    let expected = object(&[&[&context, TAG], &KEYS[1..], &chosen]);
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
    let context = CONTEXT.replace("/@Element", "");
    let empty = object(&[&[&context, r#""value":[]"#]]);
    assert_eq!(page(Metadata::Minimal, &[]), empty);
    assert_eq!(page(Metadata::None, &[]), r#"{"value":[]}"#);
    let one = written(Metadata::None, None);
    let two = format!(r#"{{"value":[{one},{one}]}}"#);
    assert_eq!(page(Metadata::None, &[order(), order()]), two);
}

#[test]
fn tables_at_each_level() {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let context = CONTEXT.replace("orders", "Tables");
    let name = r#""TableName":"abc""#;
    let described = [
        context.as_str(),
        r#""odata.type":"a.Tables""#,
        r#""odata.id":"https://a.table.core.windows.net/Tables('abc')""#,
        r#""odata.editLink":"Tables('abc')""#,
        name,
    ];
    for (metadata, expected) in [
        (Metadata::None, object(&[&[name]])),
        (Metadata::Minimal, object(&[&[&context, name]])),
        (Metadata::Full, object(&[&described])),
    ] {
        assert_eq!(text(table(metadata, &SCOPE, "abc")), expected);
    }
    let list = r#""value":[{"TableName":"abc"},{"TableName":"abd"}]"#;
    let context = context.replace("/@Element", "");
    assert_eq!(
        text(tables(Metadata::Minimal, &SCOPE, None, ["abc", "abd"])),
        object(&[&[&context, list]])
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

/// Maps what JSON cannot distinguish to one value: the two zeros, and different NaNs.
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
    fn entities_parse_back_at_levels_with_types(given in any_entity(), is_full in any::<bool>()) {
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
