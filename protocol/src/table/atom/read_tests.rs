//! Tests of parsing Atom entries.

use super::*;
use proptest::prelude::*;

fn document(properties: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\n<entry xmlns:d=\"urn:d\" \
         xmlns:m=\"urn:m\" xmlns=\"http://www.w3.org/2005/Atom\" >\n<title /><updated>x</updated>\
         <author><name /></author><id />\n<content type=\"application/xml\">\n    <m:properties \
         xml:space=\"preserve\">{properties}</m:properties></content></entry>"
    )
}

fn code(properties: &str) -> Option<ErrorCode> {
    read_entity(document(properties).as_bytes())
        .err()
        .map(|error| error.code())
}

#[test]
fn entities_are_parsed() {
    let body = document(
        "<d:PartitionKey m:type=\"Edm.String\">p</d:PartitionKey><d:RowKey></d:RowKey>\
         <d:gone m:null=\"true\" /><d:Timestamp>soon</d:Timestamp>\
         <d:sex> male&amp;ꀕ </d:sex><d:no m:type=\"Edm.Boolean\">false</d:no>\
         <d:big m:type=\"Edm.Int64\"> 9333111000 </d:big><x m:type=\"Edm.Int32\">39</x>\
         <d:r n:type=\"Edm.Double\">INF</d:r><d:b m:type='Edm.Binary'>YmluYXJ5</d:b>",
    );
    let read = read_entity(body.as_bytes()).unwrap();
    assert_eq!(read.partition_key.as_deref(), Some("p"));
    assert_eq!(read.row_key.as_deref(), Some(""));
    let expected = [
        ("sex", Value::String(" male&ꀕ ".to_owned())),
        ("no", Value::Boolean(false)),
        ("big", Value::Int64(9_333_111_000)),
        ("x", Value::Int32(39)),
        ("r", Value::Double(f64::INFINITY)),
        ("b", Value::Binary(b"binary".to_vec())),
    ];
    let given: Vec<_> = read.properties.iter().collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, value)| (*name, value))
        .collect();
    assert_eq!(given, expected);
}

#[test]
fn malformed_entities_are_rejected() {
    use ErrorCode::{DuplicatePropertiesSpecified, InvalidInput, PropertyNameInvalid};
    for (properties, expected) in [
        ("<d:a m:type=\"Edm.Int32\">x</d:a>", InvalidInput),
        ("<d:a m:type=\"Edm.Single\">1</d:a>", InvalidInput),
        ("<d:a><d:b/></d:a>", InvalidInput),
        ("<d:a>", InvalidInput),
        ("<d:a>1</d:a><d:a>2</d:a>", DuplicatePropertiesSpecified),
        ("<d:a.b>1</d:a.b>", PropertyNameInvalid),
        (
            "<d:PartitionKey m:type=\"Edm.Int32\">1</d:PartitionKey>",
            InvalidInput,
        ),
        ("<d:RowKey>a/b</d:RowKey>", ErrorCode::OutOfRangeInput),
    ] {
        assert_eq!(code(properties), Some(expected), "{properties}");
    }
    for body in [
        "",
        "{}",
        "<entry/>",
        "<feed><content><properties/></content></feed>",
    ] {
        let error = read_entity(body.as_bytes()).unwrap_err();
        assert_eq!(error.code(), InvalidInput, "{body}");
    }
}

#[test]
fn table_names_are_parsed() {
    let named = |properties: &str| {
        read_table_name(document(properties).as_bytes()).map_err(|error| error.code())
    };
    let written = "<d:TableName m:type=\"Edm.String\">abc</d:TableName>";
    assert_eq!(named(written).as_deref(), Ok("abc"));
    assert_eq!(named(""), Err(ErrorCode::PropertiesNeedValue));
    let null = "<d:TableName m:null=\"true\" />";
    assert_eq!(named(null), Err(ErrorCode::PropertiesNeedValue));
}

proptest! {
    #[test]
    fn any_properties_are_parsed_or_rejected(inner in "[<>/=\"a-d:mtype &;]{0,40}") {
        let _ = read_entity(document(&inner).as_bytes());
        let _ = read_table_name(document(&inner).as_bytes());
    }
}
