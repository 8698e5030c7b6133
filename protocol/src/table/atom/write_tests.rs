//! Tests of writing Atom: the recorded shapes, and round trips of entries.

use super::*;
use proptest::prelude::*;

use crate::table::atom::read::read_entity;
use crate::table::literal::tests::any_value;
use crate::time::Timestamp;
use crate::xml::write::is_xml_char;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const NAMESPACES: &str = " xml:base=\"https://a.table.core.windows.net/\" \
    xmlns=\"http://www.w3.org/2005/Atom\" \
    xmlns:d=\"http://schemas.microsoft.com/ado/2007/08/dataservices\" \
    xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"";

fn scope() -> Scope<'static> {
    Scope {
        endpoint: "https://a.table.core.windows.net/",
        account: "a",
        now: Timestamp::parse_iso("2015-06-23T00:12:29.7Z").unwrap(),
    }
}

fn person(properties: &[(&str, Value)]) -> Entity {
    let owned = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
    Entity {
        partition_key: "P".to_owned(),
        row_key: "1".to_owned(),
        timestamp: Timestamp::parse_iso("2015-06-23T00:12:29.1113952Z").unwrap(),
        properties: properties.iter().map(owned).collect(),
    }
}

/// Returns the part of an entry between its start and its content.
fn entry_head(set: &str, path: &str) -> String {
    format!(
        "<id>https://a.table.core.windows.net/{path}</id><category term=\"a.{set}\" \
         scheme=\"http://schemas.microsoft.com/ado/2007/08/dataservices/scheme\" />\
         <link rel=\"edit\" title=\"{set}\" href=\"{path}\" /><title />\
         <updated>2015-06-23T00:12:29Z</updated><author><name /></author>"
    )
}

fn content(properties: &str) -> String {
    format!("<content type=\"application/xml\"><m:properties>{properties}</m:properties></content>")
}

const TAG: &str = " m:etag=\"W/&quot;datetime'2015-06-23T00%3A12%3A29.1113952Z'&quot;\"";
const SYSTEM: &str = "<d:PartitionKey>P</d:PartitionKey><d:RowKey>1</d:RowKey>\
    <d:Timestamp m:type=\"Edm.DateTime\">2015-06-23T00:12:29.1113952Z</d:Timestamp>";
const PATH: &str = "people(PartitionKey='P',RowKey='1')";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn entities_are_written_as_recorded() {
    let given = person(&[
        ("sex", Value::String("ma<le ".to_owned())),
        ("age", Value::Int32(39)),
        ("none", Value::String(String::new())),
        ("ratio", Value::Double(f64::NEG_INFINITY)),
    ]);
    let properties = format!(
        "{SYSTEM}<d:sex xml:space=\"preserve\">ma&lt;le </d:sex>\
         <d:age m:type=\"Edm.Int32\">39</d:age><d:none />\
         <d:ratio m:type=\"Edm.Double\">-INF</d:ratio>"
    );
    let (head, content_of) = (entry_head("people", PATH), content(&properties));
    assert_eq!(
        text(entity(&scope(), "people", None, &given)),
        format!("{HEAD}<entry{NAMESPACES}{TAG}>{head}{content_of}</entry>")
    );
    let select = Select::parse("age,RowKey,gone").unwrap();
    let chosen = content(
        "<d:RowKey>1</d:RowKey><d:age m:type=\"Edm.Int32\">39</d:age><d:gone m:null=\"true\" />",
    );
    assert_eq!(
        text(entity(&scope(), "people", Some(&select), &given)),
        format!("{HEAD}<entry{NAMESPACES}{TAG}>{head}{chosen}</entry>")
    );
}

#[test]
fn feeds_are_written_as_recorded() {
    let start = format!(
        "{HEAD}<feed{NAMESPACES}><id>https://a.table.core.windows.net/people</id>\
         <title type=\"text\">people</title><updated>2015-06-23T00:12:29Z</updated>\
         <link rel=\"self\" title=\"people\" href=\"people\" />"
    );
    let entry = format!(
        "<entry{TAG}>{}{}</entry>",
        entry_head("people", PATH),
        content(SYSTEM)
    );
    let feed = |given: &[Entity]| text(entities(&scope(), "people", None, given));
    assert_eq!(
        feed(&[]),
        format!("{start}<author><name /></author></feed>")
    );
    let two = [person(&[]), person(&[])];
    assert_eq!(feed(&two), format!("{start}{entry}{entry}</feed>"));
}

#[test]
fn tables_and_their_list_are_written_as_recorded() {
    let inner = entry_head("Tables", "Tables('abc')") + &content("<d:TableName>abc</d:TableName>");
    assert_eq!(
        text(table(&scope(), "abc")),
        format!("{HEAD}<entry{NAMESPACES}>{inner}</entry>")
    );
    let list = text(tables(&scope(), ["abc"]));
    let end = format!(
        "<link rel=\"self\" title=\"Tables\" href=\"Tables\" /><entry>{inner}</entry></feed>"
    );
    assert!(list.ends_with(&end), "{list}");
}

proptest! {
    #[test]
    fn entries_parse_back(
        names in proptest::collection::btree_map("[a-zA-Z_]{1,5}", any_value(), 0..6),
    ) {
        let fits = |value: &Value| match value {
            Value::String(text) => text.chars().all(is_xml_char),
            Value::Double(number) => !number.is_nan() && *number != 0.0,
            _ => true,
        };
        prop_assume!(names.values().all(fits));
        let mut given = person(&[]);
        given.properties = names.into_iter().collect();
        let read = read_entity(&entity(&scope(), "t", None, &given)).unwrap();
        prop_assert_eq!(read.properties, given.properties);
        prop_assert_eq!(read.row_key, Some(given.row_key));
    }
}
