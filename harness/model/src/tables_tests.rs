//! Tests of the table model against the documents, and against the filters of the wire.

use super::*;
use crate::vocabulary::tables::Properties;
use proptest::prelude::*;
use smalt_protocol::Timestamp;
use smalt_protocol::table::{Entity, Filter};

fn row(partition_key: &str, row_key: &str) -> RowId {
    RowId {
        partition_key: partition_key.to_owned(),
        row_key: row_key.to_owned(),
    }
}

fn numbers(given: &[(&str, i32)]) -> Properties {
    let owned = |(name, number): &(&str, i32)| ((*name).to_owned(), Value::Int32(*number));
    given.iter().map(owned).collect()
}

fn change(row_key: &str, action: Action) -> Change {
    Change {
        row: row("p", row_key),
        action,
    }
}

fn insert(row_key: &str) -> Change {
    change(row_key, Action::Insert(numbers(&[("a", 1), ("b", 2)])))
}

/// Returns a table with one entity, whose tag is the first.
fn tables() -> Tables {
    let mut tables = Tables::default();
    tables.step("t", &TableOperation::Create);
    tables.step("t", &TableOperation::Change(insert("1")));
    tables
}

#[test]
fn unmet_conditions_and_missing_resources_are_errors() {
    use ErrorCode::{
        EntityAlreadyExists, ResourceNotFound, TableNotFound, UpdateConditionNotSatisfied,
    };
    let any = Some(Match::Any);
    let (right, wrong) = (Some(Match::Tag(Tag(0))), Some(Match::Tag(Tag(7))));
    let none = Properties::new;
    for (table, changed, code) in [
        ("t", insert("1"), Some(EntityAlreadyExists)),
        ("t", insert("2"), None),
        ("x", insert("2"), Some(TableNotFound)),
        ("t", change("1", Action::Replace(none(), None)), None),
        ("t", change("2", Action::Replace(none(), None)), None),
        ("t", change("1", Action::Replace(none(), any)), None),
        ("T", change("1", Action::Replace(none(), right)), None),
        (
            "t",
            change("1", Action::Replace(none(), wrong)),
            Some(UpdateConditionNotSatisfied),
        ),
        (
            "t",
            change("2", Action::Merge(none(), any)),
            Some(ResourceNotFound),
        ),
        (
            "t",
            change("2", Action::Delete(Match::Tag(Tag(0)))),
            Some(ResourceNotFound),
        ),
        ("t", change("1", Action::Delete(Match::Any)), None),
    ] {
        let answer = tables().step(table, &TableOperation::Change(changed.clone()));
        assert_eq!(answer.code, code, "{changed:?}");
        assert_eq!(answer.place, None);
    }
    let mut tables = tables();
    let create = tables.step("T", &TableOperation::Create);
    assert_eq!(create.code, Some(ErrorCode::TableAlreadyExists));
    assert_eq!(tables.step("t", &TableOperation::Delete).status, 204);
    let delete = tables.step("t", &TableOperation::Delete);
    assert_eq!(delete.code, Some(ResourceNotFound));
}

#[test]
fn a_merge_keeps_other_properties_and_a_replacement_drops_them() {
    let mut merged = tables();
    let properties = numbers(&[("b", 3), ("c", 4)]);
    let action = Action::Merge(properties.clone(), None);
    let answer = merged.step("t", &TableOperation::Change(change("1", action)));
    assert_eq!(answer.tags, [Some(Tag(1))]);
    let expected = numbers(&[("a", 1), ("b", 3), ("c", 4)]);
    assert_eq!(merged.rows("t")[0].properties, expected);
    let action = Action::Replace(properties.clone(), None);
    merged.step("t", &TableOperation::Change(change("1", action)));
    assert_eq!(merged.rows("t")[0].properties, properties);
}

#[test]
fn a_transaction_applies_all_changes_or_none() {
    let mut tables = tables();
    let before = tables.rows("t");
    let elsewhere = Change {
        row: row("q", "9"),
        ..insert("9")
    };
    for (changes, place, code) in [
        (
            vec![insert("2"), insert("1")],
            1,
            ErrorCode::EntityAlreadyExists,
        ),
        (
            vec![insert("2"), insert("2")],
            1,
            ErrorCode::InvalidDuplicateRow,
        ),
        (
            vec![insert("1"), insert("2"), elsewhere],
            2,
            ErrorCode::CommandsInBatchActOnDifferentPartitions,
        ),
    ] {
        let answer = tables.step("t", &TableOperation::Batch(changes));
        assert_eq!((answer.place, answer.code), (Some(place), Some(code)));
        assert_eq!(tables.rows("t"), before);
    }
    let both = vec![insert("2"), change("1", Action::Delete(Match::Any))];
    let answer = tables.step("t", &TableOperation::Batch(both));
    assert!(matches!(answer.tags.as_slice(), [Some(_), None]));
    assert_eq!(tables.rows("t").len(), 1);
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-c'\u{ffff}😀]{0,2}".prop_map(Value::String),
        (-2..3_i32).prop_map(Value::Int32),
        (-2..3_i64).prop_map(Value::Int64),
        prop_oneof![
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            (-2..3_i32).prop_map(|number| f64::from(number) / 2.0)
        ]
        .prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        (0..3_u64).prop_map(|second| Value::DateTime(Timestamp::from_unix_s(second))),
        proptest::collection::vec(0..3_u8, 0..3).prop_map(Value::Binary),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("PartitionKey".to_owned()),
        Just("RowKey".to_owned()),
        "[ab]"
    ]
}

fn any_filter() -> impl Strategy<Value = TableFilter> {
    let operator = proptest::sample::select(&TableFilter::OPERATORS[..]);
    let leaf = prop_oneof![
        6 => (any_name(), operator, any_value(), any::<bool>()).prop_map(
            |(name, operator, value, is_mirrored)| TableFilter::Compare {
                name,
                operator,
                value,
                is_mirrored,
            }
        ),
        1 => "[ab]".prop_map(TableFilter::Holds),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone()
                .prop_map(|(a, b)| TableFilter::And(Box::new(a), Box::new(b))),
            two.prop_map(|(a, b)| TableFilter::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| TableFilter::Not(Box::new(a))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The filter parser and the model's filter tree agree on every entity.
    #[test]
    fn filters_match_as_the_wire_filters_do(
        filter in any_filter(),
        keys in ("[a-c'\u{ffff}😀]{0,2}", "[a-c'\u{ffff}😀]{0,2}"),
        properties in proptest::collection::btree_map("[ab]", any_value(), 0..3),
    ) {
        let text = filter.to_string();
        let wire = Filter::parse(&text).unwrap();
        let (partition_key, row_key) = keys;
        let id = row(&partition_key, &row_key);
        let entity = Entity {
            partition_key,
            row_key,
            timestamp: Timestamp::UNIX_EPOCH,
            properties: properties.clone().into_iter().collect(),
        };
        let row = Row { id, tag: Tag(0), properties };
        prop_assert_eq!(wire.matches(&entity), matches(&filter, &row), "{}", text);
    }
}
