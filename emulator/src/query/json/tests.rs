//! JSON: finding records in pieces of any size, and reading values in place.

use proptest::prelude::*;

use super::scan::{Broken, Scanner};
use super::*;

fn scan(separator: &str, pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
    let mut scanner = Scanner::new(separator);
    let mut records = Vec::new();
    let text = |scanner: &Scanner| String::from_utf8_lossy(scanner.record()).into_owned();
    let told = |broken| match broken {
        Broken::Syntax(told) => Some(told),
        Broken::TooLong => Some("too long".to_owned()),
    };
    for piece in pieces {
        let mut input = *piece;
        loop {
            match scanner.next(&mut input) {
                Ok(true) => records.push(text(&scanner)),
                Ok(false) => break,
                Err(broken) => return (records, told(broken)),
            }
        }
    }
    match scanner.finish() {
        Ok(true) => records.push(text(&scanner)),
        Ok(false) => {}
        Err(broken) => return (records, told(broken)),
    }
    (records, None)
}

#[test]
fn finds_records() {
    for (text, separator, expected) in [
        ("{\"a\": 1}\n{}\n", "\n", &["{\"a\": 1}", "{}"][..]),
        ("{\n\t\"a\": \"b\",\n}", "\n", &["{\n\t\"a\": \"b\",\n}"]),
        (
            "{\"a\":\"}\\\"{\"}|{\"b\":[1,{}]}",
            "|",
            &["{\"a\":\"}\\\"{\"}", "{\"b\":[1,{}]}"],
        ),
        ("[{\"a\":1}, {\"a\":2}]", "\n", &["{\"a\":1}", "{\"a\":2}"]),
        ("[]", "\n", &[]),
        ("[1, [2]]", "\n", &["1", "[2]"]),
        ("\u{feff}{}", "\n", &["{}"]),
        ("{},{}", ",", &["{}", "{}"]),
        ("true", "\n", &["true"]),
        ("", "\n", &[]),
    ] {
        let (records, error) = scan(separator, &[text.as_bytes()]);
        assert_eq!(
            (records.as_slice(), error),
            (
                &*expected.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>(),
                None
            ),
            "{text}"
        );
    }
}

#[test]
fn reports_the_position_of_an_error() {
    for (text, records, expected) in [
        // As recorded by Microsoft's SDKs.
        (
            "100,200\n",
            1,
            "Unexpected token ',' at [byte: 3]. Expecting tokens '{', or '['.",
        ),
        (
            "{name: owner}",
            0,
            "Unexpected token 'n' at [byte: 1]. Expecting tokens '\"', or '}'.",
        ),
        (
            "{}\n{\"a\" 1}",
            1,
            "Unexpected token '1' at [byte: 5]. Expecting tokens ':'.",
        ),
        ("{\"a\":1", 0, "Unexpected end of input at [byte: 6]."),
        (
            "{\"a\":1]",
            0,
            "Unexpected token ']' at [byte: 6]. Expecting tokens ',', or a closing bracket.",
        ),
        (
            "{\"a\":tru}",
            0,
            "Unexpected token 't' at [byte: 5]. Expecting tokens a value.",
        ),
        ("[{}", 1, "Unexpected end of input at [byte: 2]."),
    ] {
        let (found, error) = scan("\n", &[text.as_bytes()]);
        assert_eq!(
            (found.len(), error.as_deref()),
            (records, Some(expected)),
            "{text}"
        );
    }
    let deep = "[".repeat(100_000);
    assert!(scan("\n", &[deep.as_bytes()]).1.is_some());
}

fn documents() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a\"\\\\{}\\[\\],:é\n]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-c\"]{1,2}", inner, 0..4).prop_map(|members| members
                .into_iter()
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

fn rebuilt(json: Json<'_>) -> serde_json::Value {
    match json.value() {
        Value::Json(json) if json.raw().starts_with(b"{") => json
            .members()
            .map(|(name, value)| (name.into_owned(), rebuilt(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Json(json) => json.items().map(rebuilt).collect::<Vec<_>>().into(),
        Value::Text(text) => text.into_owned().into(),
        Value::Integer(number) => number.into(),
        Value::Boolean(value) => value.into(),
        _ => serde_json::Value::Null,
    }
}

proptest! {
    #[test]
    fn reads_output_of_serde_json(
        documents in prop::collection::vec(documents(), 0..4),
        is_pretty in any::<bool>(),
        cut in 0_usize..200,
    ) {
        let records: Vec<serde_json::Value> =
            documents.into_iter().map(|inner| serde_json::json!({ "d": inner })).collect();
        let mut text = String::new();
        for record in &records {
            text += &if is_pretty { format!("{record:#}") } else { record.to_string() };
            text.push('\n');
        }
        let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
        let (found, error) = scan("\n", &[first, second]);
        prop_assert_eq!(error, None);
        let found: Vec<_> = found.iter().map(|raw| rebuilt(Json::new(raw.as_bytes()))).collect();
        prop_assert_eq!(found, records);
    }

    #[test]
    fn scans_any_text(text in "[\\[\\]{}\",:a1 \\\\\n-]{0,60}") {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let (records, error) = scan("\n", &[text.as_bytes()]);
        prop_assert_eq!((&records, &error), (&scan("\n", &pieces).0, &scan("\n", &pieces).1));
        for record in &records {
            rebuilt(Json::new(record.as_bytes()));
        }
    }
}
