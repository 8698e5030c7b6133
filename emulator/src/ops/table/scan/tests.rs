//! Compares queries, for any filter and page size, with a naive search of every entity.

use std::cell::Cell;

use proptest::prelude::*;
use smalt_protocol::Timestamp;
use smalt_protocol::table::{Properties, Value};

use super::*;
use crate::clock::Clock;
use crate::ops::table::range::KeyRange;
use crate::store::{Store, StoreConfig};

const GENERATION: Generation = 7;

/// Creates a table with these keys; the property `n` numbers them.
fn table(keys: Vec<(String, String)>, text_bytes: usize) -> Store {
    let clock = Clock::manual(Timestamp::from_unix_s(5));
    let store = Store::open(StoreConfig::memory(clock)).unwrap();
    let put = store.commit_blocking(move |tx| {
        for (n, (partition, row)) in (0..).zip(&keys) {
            let text = Value::String("x".repeat(text_bytes));
            let record = EntityRecord {
                timestamp: Timestamp::from_unix_s(5),
                properties: [("n".to_owned(), Value::Int32(n)), ("text".to_owned(), text)]
                    .into_iter()
                    .collect::<Properties>(),
            };
            record.put(tx, crate::keys::entity(GENERATION, partition, row))?;
        }
        Ok(())
    });
    put.unwrap();
    store
}

/// Returns the keys of all pages of a query, and the number of pages.
fn found(store: &Store, filter: &str, most: usize) -> (Vec<(String, String)>, usize) {
    let filter = Filter::parse(filter).unwrap();
    let mut start = KeyRange::default();
    let mut all = Vec::new();
    let mut pages = 0;
    loop {
        let spans = Span::of_filter(&filter, &start);
        let page = store.read(|view| page(view, GENERATION, &spans, most, Some(&filter)));
        let page = page.unwrap();
        assert!(page.entities.len() <= most);
        pages += 1;
        let keys = page.entities.into_iter();
        all.extend(keys.map(|entity| (entity.partition_key, entity.row_key)));
        match page.next {
            None => return (all, pages),
            Some((partition, row)) => start = KeyRange::starting(&partition, Some(&row)),
        }
    }
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "a'", "ab", "b", "c", "\u{e000}", "😀"])
        .prop_map(str::to_owned)
}

fn term() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["PartitionKey", "RowKey"]);
    let operator = prop::sample::select(vec!["eq", "ne", "gt", "ge", "lt", "le"]);
    let key = (name, operator, key()).prop_map(|(name, operator, key)| {
        format!("{name} {operator} '{}'", key.replace('\'', "''"))
    });
    prop_oneof![3 => key, 1 => (0..40).prop_map(|n| format!("n lt {n}"))]
}

fn filter() -> impl Strategy<Value = String> {
    term().prop_recursive(3, 12, 4, |inner| {
        let joined = prop::sample::select(vec![" and ", " or "]);
        prop_oneof![
            (prop::collection::vec(inner.clone(), 2..5), joined)
                .prop_map(|(terms, joined)| format!("({})", terms.join(joined))),
            inner.prop_map(|one| format!("not ({one})")),
        ]
    })
}

proptest! {
    #[test]
    fn query_returns_what_its_filter_matches(
        keys in prop::collection::btree_set((key(), key()), 0..40),
        filter in filter(),
        most in 1_usize..7,
    ) {
        let keys: Vec<_> = keys.into_iter().collect();
        let store = table(keys.clone(), 0);
        let parsed = Filter::parse(&filter).unwrap();
        let mut expected: Vec<_> = (0..)
            .zip(keys)
            .filter(|(n, (partition, row))| {
                let entity = Entity {
                    partition_key: partition.clone(),
                    row_key: row.clone(),
                    timestamp: Timestamp::from_unix_s(5),
                    properties: [("n".to_owned(), Value::Int32(*n))].into_iter().collect(),
                };
                parsed.matches(&entity)
            })
            .map(|(_, keys)| keys)
            .collect();
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        expected.sort_by_key(|(partition, row)| (units(partition), units(row)));
        prop_assert_eq!(found(&store, &filter, most).0, expected, "{}", filter);
    }
}

/// A query for a row key in every partition does not scan all entities.
#[test]
fn scan_jumps_to_row_keys() {
    let keys =
        (0..20).flat_map(|p| (0..3_000).map(move |r| (format!("{p:02}"), format!("{r:04}"))));
    let store = table(keys.collect(), 0);
    let (keys, pages) = found(&store, "RowKey eq '1500'", 1_000);
    // 60,000 entities would take three pages.
    assert_eq!((keys.len(), pages), (20, 1));
}

/// *Query timeout and pagination*: a page ends at 4 MiB, and an entity that does not fit moves to
/// the next one.
#[test]
fn page_ends_at_its_byte_limit() {
    let keys = (0..200).map(|row| (String::new(), format!("{row:03}")));
    let store = table(keys.collect(), 30_000);
    let (keys, pages) = found(&store, "", 1_000);
    assert_eq!((keys.len(), pages), (200, 3));
}

/// Entities that do not match also end a page.
#[test]
fn search_without_matches_ends_its_page() {
    let keys = (0..SEEN_MAX + 5).map(|row| (String::new(), format!("{row:06}")));
    let store = table(keys.collect(), 0);
    assert_eq!(found(&store, "n lt 0", 1_000), (Vec::new(), 2));
}

/// Fewer of them end it if the filter has many comparisons.
#[test]
fn search_with_many_comparisons_ends_its_page() {
    // Each entity has two properties.
    let comparisons = 1_000;
    let seen = COMPARED_MAX / (comparisons * 3);
    let keys = (0..seen + 5).map(|row| (String::new(), format!("{row:06}")));
    let store = table(keys.collect(), 0);
    let filter = vec!["n lt 0"; comparisons].join(" or ");
    assert_eq!(found(&store, &filter, 1_000), (Vec::new(), 2));
}

/// Large entities end it much earlier.
#[test]
fn search_through_large_entities_ends_its_page() {
    let keys = (0..70).map(|row| (String::new(), format!("{row:03}")));
    let store = table(keys.collect(), 500_000);
    // 70 MB of UTF-16, of which one page scans 64 MiB.
    assert_eq!(found(&store, "n lt 0", 1_000), (Vec::new(), 2));
}

/// Counts the entries that scans visit.
struct Counting<'a> {
    below: &'a dyn View,
    visited: Cell<usize>,
}

impl View for Counting<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<bytes::Bytes>> {
        self.below.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut crate::store::Visit<'_>) -> StoreResult<()> {
        self.below.scan(from, to, &mut |key, value| {
            self.visited.set(self.visited.get() + 1);
            visit(key, value)
        })
    }
}

/// Returns a filter of `count` points, spread over partitions and rows.
fn points(count: usize) -> String {
    let point = |n: usize| {
        let (partition, row) = (n % 10, n * 499 / count);
        format!("PartitionKey eq '{partition}' and RowKey eq '{row:03}'")
    };
    (0..count).map(point).collect::<Vec<_>>().join(" or ")
}

/// Bounds on the keys limit what is read, whatever else the table contains.
#[test]
fn key_bounds_limit_what_is_read() {
    let keys = (0..10).flat_map(|p| (0..500).map(move |r| (format!("{p}"), format!("{r:03}"))));
    let store = table(keys.collect(), 0);
    for (filter, found, visited_max) in [
        (points(64).as_str(), 64, 64),
        (points(65).as_str(), 65, 65),
        (points(100).as_str(), 100, 100),
        ("not (PartitionKey lt '9')", 500, 500),
        ("not (PartitionKey ne '9' or RowKey lt '490')", 10, 10),
        ("PartitionKey eq '5' and not (RowKey lt '490')", 10, 10),
        ("not (PartitionKey eq '4') and RowKey eq '499'", 9, 300),
        ("RowKey eq '000' or RowKey eq '499'", 20, 400),
        (
            "RowKey eq '100' or RowKey gt '498' or RowKey eq '250'",
            30,
            600,
        ),
        (
            "(PartitionKey eq '1' or PartitionKey eq '8') and (RowKey eq '001' or RowKey eq '400')",
            4,
            4,
        ),
        ("PartitionKey eq '5' and RowKey eq '250'", 1, 1),
        ("PartitionKey eq '5' and RowKey ge '490'", 10, 10),
        (
            "PartitionKey eq '5' and RowKey gt '100' and RowKey lt '104'",
            3,
            3,
        ),
        ("PartitionKey eq '3' and n lt 1502", 2, 500),
        ("PartitionKey gt '8' and RowKey eq '007'", 1, 40),
        (
            "PartitionKey eq '1' and RowKey eq '1' or PartitionKey eq '9' and RowKey eq '009'",
            1,
            2,
        ),
        ("RowKey eq '007'", 10, 400),
        ("PartitionKey eq 'x'", 0, 0),
    ] {
        let filter = Filter::parse(filter).unwrap();
        let spans = Span::of_filter(&filter, &KeyRange::default());
        let (entities, visited) = store.read(|view| {
            let counting = Counting {
                below: view,
                visited: Cell::new(0),
            };
            let page = page(&counting, GENERATION, &spans, 1_000, Some(&filter)).unwrap();
            (page.entities.len(), counting.visited.get())
        });
        assert_eq!(entities, found, "{filter:?}");
        assert!(visited <= visited_max, "{filter:?}: {visited}");
    }
}
