//! Tests of filters: the language, what matches, and that key ranges include every match.

use super::*;
use crate::table::value::Value;
use proptest::prelude::*;
use std::ops::Bound;

use crate::table::entity::Entity;
use crate::table::name::TableRow;
use crate::table::{EdmType, literal};
use crate::time::Timestamp;

fn entity(partition_key: &str, row_key: &str) -> Entity {
    let value = |edm, text: &str| literal::read(edm, text).unwrap();
    let properties = [
        ("Name", Value::String("O'Neil".to_owned())),
        ("Age", Value::Int32(39)),
        ("Big", Value::Int64(5_000_000_000)),
        ("Ratio", Value::Double(3.5)),
        ("Odd", Value::Double(f64::NAN)),
        ("Active", Value::Boolean(true)),
        ("Idle", Value::Boolean(false)),
        ("Since", value(EdmType::DateTime, "2008-07-10T00:00:00Z")),
        (
            "Id",
            value(EdmType::Guid, "c9da6455-213d-42c9-9a79-3e9149a57833"),
        ),
        ("Bytes", Value::Binary(vec![0x0a, 0xff])),
    ];
    Entity {
        partition_key: partition_key.to_owned(),
        row_key: row_key.to_owned(),
        timestamp: Timestamp::parse_iso("2020-01-01T00:00:00Z").unwrap(),
        properties: properties
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

fn matches(table: &[(&str, bool)]) {
    let person = entity("p", "7");
    for (filter, expected) in table {
        let read = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert_eq!(read.matches(&person), *expected, "{filter}");
    }
}

/// A literal has a type, but a small whole number also matches larger types.
#[test]
fn numbers_compare_across_types_as_documented() {
    matches(&[
        ("Age eq 39", true),
        ("Age ne 39", false),
        ("Age gt -40", true),
        ("Age eq 39L", false),
        ("Age ne 39L", false),
        ("Age eq '39'", false),
        ("Big eq 5000000000L", true),
        ("Big eq 5000000000", true),
        ("Big gt 5", true),
        ("Big lt 5", false),
        ("5 lt Big", true),
        ("Ratio gt 3", true),
        ("Ratio eq 3", false),
        ("Ratio gt 3L", false),
        ("Ratio lt 5000000000", false),
        ("Age eq 39.0", false),
        ("Odd eq 7", false),
        ("Odd ne 7", true),
        ("Ratio eq 3.5", true),
        ("Ratio lt 35e-1", false),
        ("Ratio le 3.5d", true),
        ("Ratio lt INF", true),
        ("Ratio gt -INF", true),
        ("Odd eq NaN", false),
        ("Odd ne NaN", true),
        ("Odd lt 1.0", false),
    ]);
}

#[test]
fn filters_match_entities() {
    matches(&[
        ("", true),
        ("  ", true),
        ("PartitionKey eq 'p'", true),
        ("PartitionKey eq 'P'", false),
        ("'p' eq PartitionKey", true),
        ("'o' lt PartitionKey", true),
        ("'o' gt PartitionKey", false),
        ("Name eq 'O''Neil'", true),
        ("Name ge 'O' and Name lt 'P'", true),
        ("Active", true),
        ("Idle", false),
        ("not Idle", true),
        ("not not Active", true),
        ("Active eq true", true),
        ("true eq Active", true),
        ("Active eq True", true),
        ("(Active eq truE)", true),
        ("Idle eq FALSE and Active", true),
        ("Age", false),
        ("Missing", false),
        ("true", true),
        ("false", false),
        ("1 eq 1", true),
        ("Since eq datetime'2008-07-10T00:00:00Z'", true),
        ("Since gt datetime'2008-07-10'", false),
        ("Timestamp ge datetime'2020-01-01T00:00:00.0000000Z'", true),
        ("Id eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'", true),
        ("Id eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", true),
        ("Bytes eq X'0aff'", true),
        ("Bytes eq binary'0AFF'", true),
        ("Bytes gt X''", true),
        ("Missing eq 1", false),
        ("Missing ne 1", false),
        ("not (Missing eq 1)", true),
        ("Missing eq null", true),
        ("Missing ne null", false),
        ("Age ne null", true),
        ("null eq Age", false),
        ("Age lt null", false),
        ("Age eq 1 and Age eq 2 or Active", true),
        ("Active or Age eq 1 and Age eq 2", true),
        ("(Active or Age eq 1) and Age eq 2", false),
        ("not Idle and Active", true),
        ("not (Idle or Active)", false),
        ("not Age eq 1", true),
        ("((Age) eq (39))", true),
        ("(Age eq 39)and(Active)", true),
        ("\tAge\teq\t39 ", true),
    ]);
}

#[test]
fn tables_are_filtered_by_name() {
    let filter = Filter::parse("TableName ge 'zzza' and TableName lt 'zzzb'").unwrap();
    assert!(filter.matches(&TableRow("zzzap06")));
    assert!(!filter.matches(&TableRow("zzzb")));
}

/// The first filter was recorded; positions are in UTF-16 units, after the unexpected token.
#[test]
fn malformed_filters_are_rejected_with_a_position() {
    for (filter, position) in [
        ("aaa bbb ccc", 7),
        ("Name eq 'ü😀' bbb", 17),
        ("Age eq", 6),
        ("Age eq 1 and", 12),
        ("(Age eq 1", 9),
        ("Age eq 1)", 9),
        ("eq eq 1", 5),
        ("Age eq 'x", 9),
        ("Age = 1", 5),
        ("Age eq 1 or or Active", 21),
        ("7", 1),
        ("null", 4),
        ("Age eq Big", 10),
        ("(Age eq 1) eq true", 13),
        ("Age eq 1x", 9),
        ("Age eq 1.2.3", 12),
        ("Age eq 99999999999999999999", 27),
        ("Age eq 1e999", 12),
        ("Id eq guid'x'", 13),
        ("Since eq datetime'yesterday'", 28),
        ("Bytes eq X'0'", 13),
        ("Bytes eq X'zz'", 14),
        ("Age eq time'1'", 14),
        ("startswith(Name,'O')", 11),
        ("Name/first eq 'x'", 5),
        ("Age add 1 eq 2", 7),
        ("Active AND Idle", 10),
        ("not", 3),
        ("()", 2),
        ("Age eq --1", 8),
    ] {
        let error = Filter::parse(filter).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidInput, "{filter}");
        let message = format!("Syntax error at position {position} in '{filter}'.");
        assert_eq!(error.message(), message);
    }
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |depth: usize| format!("{}Active{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(100)).is_ok());
    for filter in [
        nested(101),
        nested(5_000),
        "(".repeat(5_000),
        "not ".repeat(5_000) + "Active",
        vec!["Active"; 1_001].join(" or "),
        "Name eq '".to_owned() + &"x".repeat(70_000) + "'",
    ] {
        let error = Filter::parse(&filter).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidInput);
    }
    let most = vec!["Active"; 1_000].join(" and ");
    assert!(Filter::parse(&most).unwrap().matches(&entity("", "")));
}

fn shown(bound: &Bound<String>, included: &str, excluded: &str) -> String {
    match bound {
        Bound::Unbounded => "*".to_owned(),
        Bound::Included(text) => format!("{included}{text}"),
        Bound::Excluded(text) => format!("{excluded}{text}"),
    }
}

/// Formats key ranges as `=a..<b =1..=2`: partition keys, row keys.
fn ranges(filter: &str) -> Vec<String> {
    let interval = |i: &Interval| {
        let (lower, upper) = (shown(&i.lower, "=", ">"), shown(&i.upper, "=", "<"));
        format!("{lower}..{upper}")
    };
    let show = |range: &KeyRange| {
        let rows: Vec<_> = range.row_keys.iter().map(interval).collect();
        format!("{} {}", interval(&range.partition_key), rows.join(" "))
    };
    let read = Filter::parse(filter).unwrap();
    read.key_ranges().iter().map(show).collect()
}

#[test]
fn ranges_of_keys() {
    let cases: [(&str, &[&str]); 20] = [
        ("", &["*..* *..*"]),
        ("Age eq 1", &["*..* *..*"]),
        ("PartitionKey eq 'a'", &["=a..=a *..*"]),
        (
            "PartitionKey eq 'a' and RowKey ge 'b' and Age eq 1",
            &["=a..=a =b..*"],
        ),
        (
            "PartitionKey ge 'a' and PartitionKey lt 'b'",
            &["=a..<b *..*"],
        ),
        ("'a' lt PartitionKey and 'c' ge RowKey", &[">a..* *..=c"]),
        (
            "PartitionKey eq 'b' or PartitionKey eq 'a'",
            &["=a..=a *..*", "=b..=b *..*"],
        ),
        (
            "PartitionKey eq 'a' and (RowKey eq '2' or RowKey eq '1')",
            &["=a..=a =1..=1 =2..=2"],
        ),
        (
            "PartitionKey eq 'a' and (RowKey ge '2' or RowKey ge '1')",
            &["=a..=a =1..*"],
        ),
        (
            "PartitionKey eq 'a' and RowKey eq '1' or PartitionKey gt '0'",
            &[">0..* *..*"],
        ),
        (
            "(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey eq '1'",
            &["=a..=a =1..=1", "=b..=b =1..=1"],
        ),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", &[]),
        ("PartitionKey gt 'a' and PartitionKey lt 'a'", &[]),
        ("PartitionKey lt ''", &[]),
        ("PartitionKey eq 7", &[]),
        ("PartitionKey ne 'a'", &["*..<a *..*", ">a..* *..*"]),
        ("PartitionKey eq 'a' or Age eq 1", &["*..* *..*"]),
        ("PartitionKey eq 'a' or false", &["=a..=a *..*"]),
        ("RowKey eq '1'", &["*..* =1..=1"]),
        (
            "RowKey eq '2' or PartitionKey eq 'a' and RowKey ge '3' or RowKey eq '1'",
            &[
                "*..<a =1..=1 =2..=2",
                "=a..=a =1..=1 =2..=2 =3..*",
                ">a..* =1..=1 =2..=2",
            ],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(ranges(filter), expected, "{filter}");
    }
}

#[test]
fn ranges_of_negated_filters() {
    let cases: [(&str, &[&str]); 11] = [
        ("not (PartitionKey lt 'x')", &["=x..* *..*"]),
        ("not (PartitionKey ne 'x')", &["=x..=x *..*"]),
        ("not ('x' gt PartitionKey)", &["=x..* *..*"]),
        ("not not (PartitionKey lt 'x')", &["*..<x *..*"]),
        ("not (PartitionKey eq 'a')", &["*..<a *..*", ">a..* *..*"]),
        (
            "not (PartitionKey lt 'a' or PartitionKey gt 'b')",
            &["=a..=b *..*"],
        ),
        (
            "not (PartitionKey ge 'a' and RowKey ne '1')",
            &["*..<a *..*", "=a..* =1..=1"],
        ),
        ("not (PartitionKey eq 7)", &["*..* *..*"]),
        ("not (PartitionKey ge '' or Age eq 1)", &[]),
        ("not (PartitionKey ne 'a' and Age eq 1)", &["*..* *..*"]),
        ("not (PartitionKey ne 'a' or true)", &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(ranges(filter), expected, "{filter}");
    }
}

fn each_of(name: &str, count: usize) -> String {
    let terms: Vec<_> = (1_000..1_000 + count)
        .map(|n| format!("{name} eq '{n}'"))
        .collect();
    terms.join(" or ")
}

/// As many ranges as a filter can name stay apart; products of long lists are merged.
#[test]
fn the_number_of_ranges_is_bounded() {
    for count in [65, 100, 1_000] {
        assert_eq!(ranges(&each_of("PartitionKey", count)).len(), count);
    }
    let rows = Filter::parse(&each_of("RowKey", 1_000)).unwrap();
    assert_eq!(rows.key_ranges()[0].row_keys.len(), 1_000);
    let points: Vec<_> = (1_000..1_500)
        .map(|n| format!("PartitionKey eq '{n}' and RowKey eq '{n}'"))
        .collect();
    assert_eq!(ranges(&points.join(" or ")).len(), 500);
    let (one, other) = (each_of("PartitionKey", 500), each_of("RowKey", 500));
    let product = Filter::parse(&format!("({one}) and ({other})")).unwrap();
    let ranges = product.key_ranges();
    let count: usize = ranges.iter().map(|range| range.row_keys.len()).sum();
    assert_eq!(ranges.len(), 500);
    assert!(count <= 4_096, "{count}");
    for n in 1_000..1_500 {
        let keys = (n.to_string(), (2_499 - n).to_string());
        let holding = |range: &&KeyRange| range.contains(&keys.0, &keys.1);
        assert_eq!(ranges.iter().filter(holding).count(), 1, "{n}");
    }
    let same = vec!["PartitionKey eq 'a'"; 500].join(" or ");
    assert_eq!(self::ranges(&same), ["=a..=a *..*"]);
}

fn any_filter() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("PartitionKey"),
        Just("RowKey"),
        Just("RowKey"),
        Just("Age")
    ];
    let operator = prop_oneof![
        Just("eq"),
        Just("eq"),
        Just("ne"),
        Just("lt"),
        Just("le"),
        Just("gt"),
        Just("ge")
    ];
    let leaf = prop_oneof![
        8 => (key, operator, "[a-c\u{ffff}😀]{0,2}", any::<bool>()).prop_map(
            |(key, operator, text, is_mirrored)| if is_mirrored {
                format!("'{text}' {operator} {key}")
            } else {
                format!("{key} {operator} '{text}'")
            }
        ),
        1 => Just("Active".to_owned()),
        1 => Just("PartitionKey eq 7".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            4 => proptest::collection::vec(inner.clone(), 1..4)
                .prop_map(|terms| format!("({})", terms.join(" and "))),
            4 => proptest::collection::vec(inner.clone(), 1..4)
                .prop_map(|terms| format!("({})", terms.join(" or "))),
            1 => inner.prop_map(|term| format!("not ({term})")),
        ]
    })
}

fn filter_of_keys() -> impl Strategy<Value = String> {
    let key = prop_oneof![Just("PartitionKey"), Just("RowKey")];
    let operator = proptest::sample::select(vec!["eq", "ne", "lt", "le", "gt", "ge"]);
    let leaf = (key, operator, "[a-c\u{ffff}😀]{0,2}", any::<bool>()).prop_map(
        |(key, operator, text, is_negated)| {
            let not = if is_negated { "not " } else { "" };
            format!("{not}({key} {operator} '{text}')")
        },
    );
    leaf.prop_recursive(4, 30, 4, |inner| {
        let joined = proptest::sample::select(vec![" and ", " or "]);
        let terms = proptest::collection::vec(inner, 3..5);
        (terms, joined, any::<bool>()).prop_map(|(terms, joined, is_negated)| {
            let not = if is_negated { "not " } else { "" };
            format!("{not}({})", terms.join(joined))
        })
    })
}

fn are_in_order(intervals: &[&Interval]) -> bool {
    intervals.windows(2).all(|pair| {
        let (Bound::Included(end) | Bound::Excluded(end)) = &pair[0].upper else {
            return false;
        };
        let (Bound::Included(start) | Bound::Excluded(start)) = &pair[1].lower else {
            return false;
        };
        crate::table::value::compare_text(end, start).is_le()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_entity_that_matches_lies_in_one_range(
        filter in any_filter(),
        keys in proptest::collection::vec(("[a-c\u{ffff}😀]{0,2}", "[a-c\u{ffff}😀]{0,2}"), 30),
    ) {
        let read = Filter::parse(&filter).unwrap();
        let ranges = read.key_ranges();
        for (partition_key, row_key) in keys {
            let within = ranges
                .iter()
                .filter(|range| range.contains(&partition_key, &row_key))
                .count();
            prop_assert!(within <= 1, "{filter}: {ranges:?}");
            if read.matches(&entity(&partition_key, &row_key)) {
                prop_assert_eq!(within, 1, "{}: {:?}", filter, &ranges);
            }
        }
    }

    /// The ranges of a filter with comparisons of keys only, however negated, are exact.
    #[test]
    fn ranges_of_filters_on_keys_only_are_exact(
        filter in filter_of_keys(),
        keys in proptest::collection::vec(("[a-c\u{ffff}😀]{0,2}", "[a-c\u{ffff}😀]{0,2}"), 30),
    ) {
        let read = Filter::parse(&filter).unwrap();
        let ranges = read.key_ranges();
        for (partition_key, row_key) in keys {
            let is_within = ranges.iter().any(|range| range.contains(&partition_key, &row_key));
            let matches = read.matches(&entity(&partition_key, &row_key));
            prop_assert_eq!(is_within, matches, "{}: {:?}", filter, &ranges);
        }
    }

    #[test]
    fn ranges_are_in_the_order_of_keys(filter in any_filter()) {
        let ranges = Filter::parse(&filter).unwrap().key_ranges();
        let partitions: Vec<_> = ranges.iter().map(|range| &range.partition_key).collect();
        prop_assert!(are_in_order(&partitions), "{filter}: {ranges:?}");
        for range in &ranges {
            let rows: Vec<_> = range.row_keys.iter().collect();
            prop_assert!(!rows.is_empty() && are_in_order(&rows), "{filter}: {range:?}");
        }
    }

    #[test]
    fn any_text_is_parsed_or_rejected(
        pieces in proptest::collection::vec(
            prop_oneof![
                "(PartitionKey|eq|and|or|not|null|true|datetime|guid|X)",
                "('a''|'|\\(|\\)|-?[0-9.eL]{1,3}| )",
                " ",
                ".",
            ],
            0..30,
        ),
    ) {
        let text = pieces.concat();
        if let Ok(filter) = Filter::parse(&text) {
            let _ = filter.matches(&entity("a", "b"));
            let _ = filter.key_ranges();
        }
    }
}
