//! Compares searches with a naive model: all pages together are what a scan of every blob finds.

use proptest::prelude::*;
use smalt_protocol::ETag;

use super::*;
use crate::clock::Clock;
use crate::ops::blob::tag_index::Owner;
use crate::records::{BlobContent, BlobKind};
use crate::store::{Store, StoreConfig, Transaction};

const NOW: Timestamp = Timestamp::from_unix_s(1_700_000_000);

/// Container, blob, value of the tag `k`, value of the tag `l`.
type Tagged = (u64, String, String, String);

fn record<T: Record>(fields: impl serde::Serialize) -> T {
    T::decode(&rmp_serde::to_vec_named(&fields).unwrap()).unwrap()
}

fn blob(tags: &[(String, String)]) -> BlobRecord {
    #[derive(serde::Serialize)]
    struct Fields(BlobKind, Timestamp, ETag, Timestamp, u64, BlobContent);
    let etag = ETag::from_tick(NOW);
    let fields = Fields(BlobKind::Block, NOW, etag, NOW, 0, BlobContent::Empty);
    BlobRecord {
        tags: tags.to_vec(),
        ..record(fields)
    }
}

fn container(generation: u64) -> ContainerRecord {
    #[derive(serde::Serialize)]
    struct Fields(u64, ETag, Timestamp);
    record(Fields(generation, ETag::from_tick(NOW), NOW))
}

fn store(all: &[Tagged]) -> Store {
    let store = Store::open(StoreConfig::memory(Clock::manual(NOW))).unwrap();
    let all = all.to_vec();
    let fill = move |tx: &mut Transaction<'_>| {
        for (generation, name, k, l) in &all {
            let key = keys::container("a", &format!("c{generation}"));
            container(*generation).save(tx, key)?;
            let tags = [("k".to_owned(), k.clone()), ("l".to_owned(), l.clone())];
            Owner::base(*generation, name).change(tx, &[], &tags);
            blob(&tags).save(tx, keys::blob(*generation, name))?;
        }
        Ok(())
    };
    store.commit_blocking(fill).unwrap();
    store
}

/// Returns all pages of a search together, and the lengths of the pages.
fn search(
    store: &Store,
    query: &TagQuery,
    only: Option<&str>,
    most: usize,
    seen_most: usize,
) -> (Vec<(String, String)>, Vec<usize>) {
    let scope = Scope {
        account: "a".to_owned(),
        container: only.map(str::to_owned),
    };
    let (mut found, mut lengths, mut start) = (Vec::new(), Vec::new(), None);
    loop {
        let page = store.read(|view| {
            let search = Search {
                view,
                now: NOW,
                query,
                most,
                seen_most,
                versions: false,
            };
            search.page(&scope, start.as_ref()).unwrap()
        });
        lengths.push(page.found.len());
        found.extend(page.found.into_iter().map(|one| (one.container, one.blob)));
        let Some(next) = page.next else {
            return (found, lengths);
        };
        // As a client would return it.
        start = Some(Place::parse(&next.marker()).unwrap());
    }
}

fn many(count: u64) -> Vec<Tagged> {
    let tagged = |n: u64| {
        (
            n % 3,
            format!("b{n:04}"),
            (n % 7).to_string(),
            "x".to_owned(),
        )
    };
    (0..count).map(tagged).collect()
}

#[test]
fn page_ends_when_full_or_after_enough_entries() {
    let store = store(&many(900));
    let query = TagQuery::parse("l = 'x' AND k = '3'").unwrap();
    let all = search(&store, &query, None, 5_000, SEEN_MAX);
    assert_eq!(all.1, [129]);
    let pages = search(&store, &query, None, 50, SEEN_MAX);
    assert_eq!(pages.1, [50, 50, 29]);
    assert_eq!(pages.0, all.0);
    // The page is exactly full: nothing follows, so there is no next page.
    assert_eq!(search(&store, &query, None, 129, SEEN_MAX).1, [129]);
    let cut = search(&store, &query, None, 5_000, 10);
    assert_eq!(cut.0, all.0);
    assert!(cut.1.iter().all(|length| *length <= 10));
}

#[test]
fn single_container_can_be_searched() {
    let store = store(&many(30));
    let query = TagQuery::parse("l = 'x'").unwrap();
    let (found, _) = search(&store, &query, Some("c1"), 4, SEEN_MAX);
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|(container, _)| container == "c1"));
    let (none, _) = search(&store, &query, Some("c"), 4, SEEN_MAX);
    assert!(none.is_empty());
}

proptest! {
    #[test]
    fn pages_together_match_a_scan_of_every_blob(
        all in proptest::collection::btree_map(
            (0_u64..3, "[ab]{1,2}"),
            ("[ab]{0,2}", "[ab]{0,1}"),
            0..30,
        ),
        text in prop_oneof![
            Just("k = 'a'"),
            Just("k > 'a'"),
            Just("k >= 'a' AND k < 'b'"),
            Just("l <= 'a' AND k > ''"),
        ],
        most in 1_usize..6,
        seen_most in 1_usize..8,
    ) {
        let all: Vec<Tagged> = all.into_iter().map(|((c, b), (k, l))| (c, b, k, l)).collect();
        let query = TagQuery::parse(text).unwrap();
        let holds = |(_, _, k, l): &&Tagged| {
            query.holds(&[("k".to_owned(), k.clone()), ("l".to_owned(), l.clone())])
        };
        let mut expected: Vec<_> = all.iter().filter(holds)
            .map(|(c, b, ..)| (format!("c{c}"), b.clone()))
            .collect();
        let (mut found, lengths) = search(&store(&all), &query, None, most, seen_most);
        prop_assert!(found.is_sorted_by_key(|(container, _)| container.clone()));
        prop_assert!(lengths.iter().all(|length| *length <= most));
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_marker_is_read_or_refused(text in "(2![0-9]{1,3}!)?.{0,40}") {
        let _ = Place::parse(&text);
    }
}
