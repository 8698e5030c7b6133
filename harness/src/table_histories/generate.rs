//! Generates the steps of a history.

use std::collections::BTreeSet;

use proptest::prelude::*;
use smalt_model::tables::Tables;
use smalt_model::vocabulary::tables::{
    Action, Change, Level, Match, Properties, RowId, TableFilter, TableMalformed, TableOperation,
};
use smalt_model::vocabulary::{Operation, Tag};
use smalt_protocol::Timestamp;
use smalt_protocol::table::Value;

/// Names of tables: two spellings of one, and another.
const TABLES: [&str; 3] = ["Orders", "orders", "Blogs"];
/// Keys: some that occur often together, and some with characters that need escaping.
const KEYS: [&str; 7] = ["", "a", "b c", "O'Neil", "+,$:@=&%", "\u{ffff}", "😀"];
/// Probability that a change is one that can succeed.
const CAREFUL: f64 = 0.75;
/// Probability that a transaction may name an entity twice.
const REPEATING: f64 = 0.3;
const NAMES: [&str; 3] = ["Age", "Name", "_x1"];

/// The intention of one step.
#[derive(Clone, Debug)]
pub struct Wanted {
    table: &'static str,
    meant: Meant,
    level: Level,
}

#[derive(Clone, Debug)]
enum Meant {
    Create,
    Delete,
    Change(Wish),
    Batch(Vec<Wish>),
    Get(RowId),
    Query(Option<TableFilter>, u32),
    Page(RowId, bool, u32),
    Malformed(TableMalformed),
}

/// An intended change.
#[derive(Clone, Debug)]
struct Wish {
    row: RowId,
    kind: Kind,
    properties: Properties,
    condition: Condition,
    /// Whether a change that cannot succeed is replaced by one that can.
    is_careful: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Insert,
    Replace,
    Merge,
    Delete,
}

/// An intended condition.
#[derive(Clone, Copy, Debug)]
enum Condition {
    None,
    Any,
    /// The current ETag of the entity.
    Current,
    /// Another ETag, issued or not.
    Other(u32),
}

impl Wanted {
    /// Returns the creation of a table, to start with.
    pub fn create() -> Self {
        Wanted {
            table: TABLES[0],
            meant: Meant::Create,
            level: Level::Minimal,
        }
    }

    /// Returns the operation for the current state.
    pub fn operation(&self, model: &Tables) -> Operation {
        let change = |wish: &Wish| wish.change(model, self.table);
        let operation = match &self.meant {
            Meant::Create => TableOperation::Create,
            Meant::Delete => TableOperation::Delete,
            Meant::Change(wish) => TableOperation::Change(change(wish)),
            Meant::Batch(wishes) => TableOperation::Batch(wishes.iter().map(change).collect()),
            Meant::Get(row) => TableOperation::Get(row.clone(), self.level),
            Meant::Query(filter, page) => TableOperation::Query {
                filter: filter.clone(),
                page: *page,
                level: self.level,
            },
            Meant::Page(row, goes_on, most) => TableOperation::Page {
                partition_key: row.partition_key.clone(),
                from: goes_on.then(|| row.row_key.clone()),
                most: *most,
            },
            Meant::Malformed(which) => TableOperation::Malformed(*which),
        };
        Operation::Table(self.table.to_owned(), operation)
    }
}

impl Wish {
    fn change(&self, model: &Tables, table: &str) -> Change {
        let rows = model.rows(table);
        let current = rows.iter().find(|row| row.id == self.row);
        let current = current.map(|row| row.tag);
        // Without the table nothing can succeed.
        let is_there = model.names().any(|name| name.eq_ignore_ascii_case(table));
        let is_careful = self.is_careful && is_there;
        let condition = match self.condition {
            Condition::None => None,
            _ if is_careful && current.is_none() => None,
            Condition::Any => Some(Match::Any),
            Condition::Other(_) if is_careful => current.map(Match::Tag),
            Condition::Current => current.map(Match::Tag),
            Condition::Other(number) => {
                let tag = Tag(number % (model.tags() + 1));
                Some(Match::Tag(tag)).filter(|_| current != Some(tag))
            }
        };
        let properties = self.properties.clone();
        let kind = match self.kind {
            Kind::Insert if is_careful && current.is_some() => Kind::Merge,
            Kind::Delete if is_careful && current.is_none() => Kind::Insert,
            kind => kind,
        };
        let action = match kind {
            Kind::Insert => Action::Insert(properties),
            Kind::Replace => Action::Replace(properties, condition),
            Kind::Merge => Action::Merge(properties, condition),
            Kind::Delete => Action::Delete(condition.unwrap_or(Match::Any)),
        };
        Change {
            row: self.row.clone(),
            action,
        }
    }
}

/// Returns a strategy for all steps.
pub fn any() -> impl Strategy<Value = Wanted> {
    let table = prop_oneof![
        8 => Just(TABLES[0]),
        2 => proptest::sample::select(&TABLES[..]),
    ];
    let meant = prop_oneof![
        2 => Just(Meant::Create),
        2 => Just(Meant::Delete),
        24 => any_wish().prop_map(Meant::Change),
        10 => any_batch().prop_map(Meant::Batch),
        4 => any_row().prop_map(Meant::Get),
        4 => (any_row(), proptest::bool::ANY, 1..5_u32)
            .prop_map(|(row, goes_on, most)| Meant::Page(row, goes_on, most)),
        3 => proptest::sample::select(&TableMalformed::ALL[..]).prop_map(Meant::Malformed),
        8 => (proptest::option::of(any_filter()), 1..5_u32)
            .prop_map(|(filter, page)| Meant::Query(filter, page)),
    ];
    let level = prop_oneof![Just(Level::Minimal), Just(Level::Full)];
    (table, meant, level).prop_map(|(table, meant, level)| Wanted {
        table,
        meant,
        level,
    })
}

fn any_row() -> impl Strategy<Value = RowId> {
    let key = || proptest::sample::select(&KEYS[..]);
    // Two partitions, so that operations often use the same entity.
    (proptest::sample::select(&KEYS[3..5]), key()).prop_map(|(partition_key, row_key)| RowId {
        partition_key: partition_key.to_owned(),
        row_key: row_key.to_owned(),
    })
}

fn any_wish() -> impl Strategy<Value = Wish> {
    let kind = prop_oneof![
        3 => Just(Kind::Insert),
        2 => Just(Kind::Replace),
        2 => Just(Kind::Merge),
        1 => Just(Kind::Delete),
    ];
    let condition = prop_oneof![
        2 => Just(Condition::None),
        1 => Just(Condition::Any),
        2 => Just(Condition::Current),
        1 => proptest::num::u32::ANY.prop_map(Condition::Other),
    ];
    let name = proptest::sample::select(&NAMES[..]).prop_map(str::to_owned);
    let properties = proptest::collection::btree_map(name, any_value(), 0..3);
    let is_careful = proptest::bool::weighted(CAREFUL);
    (any_row(), kind, properties, condition, is_careful).prop_map(
        |(row, kind, properties, condition, is_careful)| Wish {
            row,
            kind,
            properties,
            condition,
            is_careful,
        },
    )
}

/// Returns a strategy for transactions, usually in one partition, and sometimes with an entity
/// twice.
fn any_batch() -> impl Strategy<Value = Vec<Wish>> {
    let is_mixed = proptest::bool::weighted(0.15);
    let is_repeating = proptest::bool::weighted(REPEATING);
    let wishes = proptest::collection::vec(any_wish(), 1..5);
    (wishes, is_mixed, is_repeating).prop_map(|(mut wishes, is_mixed, is_repeating)| {
        let partition_key = wishes[0].row.partition_key.clone();
        for wish in wishes.iter_mut().filter(|_| !is_mixed) {
            wish.row.partition_key.clone_from(&partition_key);
        }
        let mut named = BTreeSet::new();
        wishes.retain(|wish| named.insert(wish.row.clone()) || is_repeating);
        wishes
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        (-2..3_i32).prop_map(|number| f64::from(number) / 2.0),
        Just(1e300),
    ];
    prop_oneof![
        "[a-c'\u{e000}😀\"\\\\]{0,2}".prop_map(Value::String),
        (-2..3_i32).prop_map(Value::Int32),
        prop_oneof![-2..3_i64, Just(i64::MIN)].prop_map(Value::Int64),
        number.prop_map(Value::Double),
        proptest::bool::ANY.prop_map(Value::Boolean),
        (0..3_u64).prop_map(|second| Value::DateTime(Timestamp::from_unix_s(second))),
        proptest::collection::vec(proptest::num::u8::ANY, 0..3).prop_map(Value::Binary),
    ]
}

fn any_filter() -> impl Strategy<Value = TableFilter> {
    let operator = || proptest::sample::select(&TableFilter::OPERATORS[..]);
    let of_key = proptest::sample::select(&["PartitionKey", "RowKey"][..]);
    let keys = (
        of_key,
        operator(),
        proptest::sample::select(&KEYS[..]),
        proptest::bool::ANY,
    )
        .prop_map(|(name, operator, key, is_mirrored)| TableFilter::Compare {
            name: name.to_owned(),
            operator,
            value: Value::String(key.to_owned()),
            is_mirrored,
        });
    let name = proptest::sample::select(&NAMES[..]);
    let others = (name.clone(), operator(), any_value(), proptest::bool::ANY).prop_map(
        |(name, operator, value, is_mirrored)| TableFilter::Compare {
            name: name.to_owned(),
            operator,
            value,
            is_mirrored,
        },
    );
    let holds = name.prop_map(|name| TableFilter::Holds(name.to_owned()));
    let leaf = prop_oneof![6 => keys, 3 => others, 1 => holds];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            3 => two.clone().prop_map(|(a, b)| TableFilter::And(Box::new(a), Box::new(b))),
            2 => two.prop_map(|(a, b)| TableFilter::Or(Box::new(a), Box::new(b))),
            1 => inner.prop_map(|a| TableFilter::Not(Box::new(a))),
        ]
    })
}
