//! Compares listings with a naive model: all pages together are complete, and common prefixes are
//! skipped.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;
use proptest::prelude::*;
use smalt_protocol::ETag;

use super::*;
use crate::clock::Clock;
use crate::keys;
use crate::records::{
    BlobContent, BlobKind, BlobRecord, ContainerRecord, Record, UncommittedRecord,
};
use crate::store::{StoreConfig, StoreResult, Transaction, Visit};

const NOW: Timestamp = Timestamp::from_unix_s(1_700_000_000);
const GENERATION: u64 = 5;

/// The content of a name: whether there is a base blob, the number of snapshots, whether there are
/// uncommitted blocks and since when.
type Stands = (String, bool, u64, Option<Timestamp>);

fn record<T: Record>(fields: impl serde::Serialize) -> T {
    T::decode(&rmp_serde::to_vec_named(&fields).unwrap()).unwrap()
}

fn blob() -> BlobRecord {
    #[derive(serde::Serialize)]
    struct Fields(BlobKind, Timestamp, ETag, Timestamp, u64, BlobContent);
    let etag = ETag::from_tick(NOW);
    record(Fields(
        BlobKind::Block,
        NOW,
        etag,
        NOW,
        0,
        BlobContent::Empty,
    ))
}

fn container() -> ContainerRecord {
    #[derive(serde::Serialize)]
    struct Fields(u64, ETag, Timestamp);
    record(Fields(GENERATION, ETag::from_tick(NOW), NOW))
}

fn store(all: &[Stands]) -> Store {
    let store = Store::open(StoreConfig::memory(Clock::manual(NOW))).unwrap();
    let all = all.to_vec();
    let fill = move |tx: &mut Transaction<'_>| {
        container().save(tx, keys::container("a", "ccc"))?;
        for (name, is_there, snapshots, uncommitted) in &all {
            if *is_there {
                blob().save(tx, keys::blob(GENERATION, name))?;
            }
            for number in 0..*snapshots {
                let tick = NOW.plus_s(number);
                blob().save(tx, keys::snapshot(GENERATION, name, tick))?;
            }
            if let Some(touched) = *uncommitted {
                let record = UncommittedRecord {
                    encryption: None,
                    created: touched,
                    touched,
                    blocks: 1,
                    id_length: 1,
                };
                record.save(tx, keys::uncommitted(GENERATION, name))?;
            }
        }
        Ok(())
    };
    store.commit_blocking(fill).unwrap();
    store
}

fn request(prefix: &str, delimiter: Option<&str>, most: usize) -> ListBlobs {
    ListBlobs {
        name: ContainerName {
            account: "a".to_owned(),
            container: "ccc".to_owned(),
            settings: Default::default(),
            data_lake: false,
        },
        paging: Paging {
            prefix: prefix.to_owned(),
            marker: None,
            most,
        },
        delimiter: delimiter.map(str::to_owned),
        start: None,
        start_from: None,
        includes: Includes::default(),
    }
}

/// Returns a line per entry: `name`, `name@n` for a snapshot, `name?` uncommitted, `name*` for a
/// prefix.
fn lines(page: &Page) -> Vec<String> {
    let line = |entry: &Entry| match entry {
        Entry::Prefix(prefix) => format!("{prefix}*"),
        Entry::Item(at, Item::Snapshot(_)) => {
            format!("{}@{}", at.name, at.time.unix_s() - NOW.unix_s())
        }
        Entry::Item(at, Item::Uncommitted) => format!("{}?", at.name),
        Entry::Item(at, _) => at.name.clone(),
    };
    page.entries.iter().map(line).collect()
}

/// Returns all pages, one after the other, by their markers.
fn listed(store: &Store, mut list: ListBlobs) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = store.read(|view| list.read(view, NOW)).unwrap();
        assert!(page.entries.len() <= list.paging.most);
        all.extend(lines(&page));
        let Some(next) = page.next else { return all };
        // A page with a marker must not be empty: otherwise a client could loop.
        assert_eq!(page.entries.len(), list.paging.most);
        list.start = Some(Position::parse(&next.marker()).unwrap());
    }
}

/// Returns the expected lines from a search of everything.
fn modelled(all: &[Stands], list: &ListBlobs) -> Vec<String> {
    let mut sorted = all.to_vec();
    sorted.sort();
    let mut lines = Vec::new();
    let mut prefixes = BTreeSet::new();
    for (name, is_there, snapshots, uncommitted) in sorted {
        let is_low = list.start_from.as_ref().is_some_and(|from| name < *from);
        if !name.starts_with(&list.paging.prefix) || is_low {
            continue;
        }
        let is_fresh = uncommitted.is_some_and(|touched| NOW < touched.plus_s(7 * 86_400));
        let is_uncommitted = list.includes.uncommitted && is_fresh && !is_there;
        let snapshots = if list.includes.snapshots {
            snapshots
        } else {
            0
        };
        if !is_there && !is_uncommitted && snapshots == 0 {
            continue;
        }
        if let Some(prefix) = list.common_prefix(&name) {
            if prefixes.insert(prefix.to_owned()) {
                lines.push(format!("{prefix}*"));
            }
            continue;
        }
        lines.extend((0..snapshots).map(|number| format!("{name}@{number}")));
        if is_there {
            lines.push(name);
        } else if is_uncommitted {
            lines.push(format!("{name}?"));
        }
    }
    lines
}

fn stands() -> impl Strategy<Value = Vec<Stands>> {
    let touched = prop_oneof![
        Just(None),
        Just(Some(NOW)),
        Just(Some(NOW.minus(std::time::Duration::from_secs(8 * 86_400)))),
    ];
    let one = ("[ab/!ü]{1,4}", any::<bool>(), 0_u64..3, touched);
    proptest::collection::vec(one, 0..24).prop_map(|all| {
        let mut seen = BTreeSet::new();
        all.into_iter()
            .filter(|(name, ..)| seen.insert(name.clone()))
            .collect()
    })
}

proptest! {
    #[test]
    fn pages_together_are_complete(
        all in stands(),
        prefix in "[ab/]{0,2}",
        delimiter in proptest::option::of("(/|a|!/)"),
        start_from in proptest::option::of("[ab/]{0,2}"),
        includes in any::<(bool, bool)>(),
        most in 1_usize..6,
    ) {
        let store = store(&all);
        let mut list = request(&prefix, delimiter.as_deref(), most);
        list.start_from = start_from;
        list.includes.snapshots = includes.0 && delimiter.is_none();
        list.includes.uncommitted = includes.1;
        let expected = modelled(&all, &list);
        prop_assert_eq!(listed(&store, list), expected);
    }
}

fn base(name: String) -> Stands {
    (name, true, 0, None)
}

/// Counts the entries that scans visit.
struct Counted<'a> {
    view: &'a dyn View,
    visited: Cell<usize>,
}

impl View for Counted<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        self.view.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.view.scan(from, to, &mut |key, value| {
            self.visited.set(self.visited.get() + 1);
            let flow: ControlFlow<()> = visit(key, value);
            flow
        })
    }
}

fn visited(store: &Store, list: &ListBlobs) -> (Vec<String>, usize) {
    store.read(|view| {
        let counted = Counted {
            view,
            visited: Cell::new(0),
        };
        let page = list.read(&counted, NOW).unwrap();
        (lines(&page), counted.visited.get())
    })
}

#[test]
fn a_page_visits_its_own_entries_and_the_next_one() {
    let all: Vec<Stands> = (0..2_000).map(|n| base(format!("b{n:05}"))).collect();
    let store = store(&all);
    let mut list = request("", None, 100);
    list.start = Some(Position {
        name: "b01000".to_owned(),
        time: Timestamp::MAX,
    });
    let (page, visits) = visited(&store, &list);
    assert_eq!((page.len(), page[0].as_str()), (100, "b01000"));
    assert_eq!(visits, 101);
}

#[test]
fn the_members_of_a_prefix_are_not_visited() {
    let members = (0..3_000).map(|n| base(format!("d{}/{n:05}", n % 3)));
    let store = store(&members.collect::<Vec<_>>());
    let (page, visits) = visited(&store, &request("", Some("/"), 5_000));
    assert_eq!(page, ["d0/*", "d1/*", "d2/*"]);
    assert!(visits <= 8, "{visits}");
}

#[test]
fn page_starts_after_its_deleted_first_item() {
    let store = store(&["a", "c", "d"].map(|name| base(name.to_owned())));
    let mut list = request("", None, 2);
    list.start = Some(Position {
        name: "b".to_owned(),
        time: Timestamp::MAX,
    });
    let page = store.read(|view| list.read(view, NOW)).unwrap();
    assert_eq!(
        (lines(&page), page.next),
        (vec!["c".to_owned(), "d".to_owned()], None)
    );
}

/// A page ends after too many hidden items, and the next one continues after them.
#[test]
fn page_ends_after_too_many_hidden_items() {
    let week_ago = NOW.minus(std::time::Duration::from_secs(8 * 86_400));
    let hidden = |n| (format!("b{n:05}"), false, 0, Some(week_ago));
    let mut all: Vec<Stands> = (0..walk::HIDDEN_MAX + 5).map(hidden).collect();
    all.extend([base("a".to_owned()), base("c".to_owned())]);
    let store = store(&all);
    let mut list = request("", None, 100);
    list.includes.uncommitted = true;
    let first = store.read(|view| list.read(view, NOW)).unwrap();
    assert_eq!(lines(&first), ["a"]);
    list.start = first.next;
    let second = store.read(|view| list.read(view, NOW)).unwrap();
    assert_eq!((lines(&second), second.next), (vec!["c".to_owned()], None));
}
