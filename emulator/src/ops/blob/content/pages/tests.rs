//! Compares maps with a naive model, in which the last write that covers a page decides its
//! content.

use std::ops::ControlFlow;

use bytes::Bytes;
use proptest::prelude::*;
use smalt_protocol::Timestamp;
use smalt_protocol::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};

use super::*;
use crate::clock::Clock;
use crate::ops::blob::content;
use crate::rules::pages::Kind;
use crate::store::{Staged, Store, StoreConfig};

const PAGES: u64 = PAGE_BLOB_BYTES_MAX / PAGE_BYTES;

fn store() -> Store {
    let clock = Clock::manual(Timestamp::from_unix_s(1));
    Store::open(StoreConfig::memory(clock)).unwrap()
}

fn commit<T: Send + 'static>(
    store: &Store,
    job: impl FnOnce(&mut Transaction<'_>) -> StoreResult<T> + Send + 'static,
) -> T {
    let commit: StoreResult<T> = store.commit_blocking(job);
    commit.unwrap()
}

fn bytes_of(pages: &Range<u64>) -> Range<u64> {
    pages.start * PAGE_BYTES..pages.end * PAGE_BYTES
}

fn put(store: &Store, content: BlobContent, pages: &Range<u64>) -> (BlobContent, PayloadId) {
    let range = bytes_of(pages);
    commit(store, move |tx| {
        let staged = Staged::inline(Bytes::from(vec![1; (range.end - range.start) as usize]))?;
        let payload = store::adopt(tx, staged)?;
        Ok((write(tx, content, range, payload)?, payload))
    })
}

fn wipe(store: &Store, content: BlobContent, pages: &Range<u64>, tick: u64) -> BlobContent {
    let range = bytes_of(pages);
    commit(store, move |tx| clear(tx, content, range, tick))
}

fn keys_of(store: &Store, prefix: u8) -> usize {
    let count = |view: &dyn View| {
        let mut count = 0;
        view.scan(&[prefix], &[prefix + 1], &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        StoreResult::Ok(count)
    };
    store.read(count).unwrap()
}

fn nodes(store: &Store) -> usize {
    keys_of(store, keys::page_node(0)[0])
}

/// Releases everything and checks that no record is left.
fn release_all(store: &Store, contents: Vec<BlobContent>) {
    commit(store, move |tx| {
        contents
            .into_iter()
            .try_for_each(|content| content::release(tx, content))
    });
    while commit(store, |tx| release_more(tx, 100)) > 0 {}
    assert_eq!(nodes(store), 0);
    assert_eq!(keys_of(store, keys::page_node_refs(0)[0]), 0);
    assert_eq!(keys_of(store, keys::page_garbage(0)[0]), 0);
    // The store's own records: locations of payloads and references to them.
    assert_eq!((keys_of(store, 1), keys_of(store, 2)), (0, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Write(Range<u64>),
    Clear(Range<u64>),
    Snapshot,
    DropSnapshot(usize),
}

/// Offsets near the start of a slot of some level.
fn place() -> impl Strategy<Value = u64> {
    let anchor = prop_oneof![
        Just(0),
        Just(512),
        Just(512 * 512),
        Just(512 * 512 * 512),
        Just(PAGES - 40),
    ];
    (anchor, 0..40_u64).prop_map(|(anchor, by): (u64, u64)| (anchor + by).saturating_sub(20))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let short = || (place(), 1..=30_u64).prop_map(|(at, count)| at..PAGES.min(at + count));
    let long = (place(), place()).prop_map(|(a, b)| a.min(b)..a.max(b) + 1);
    let step = prop_oneof![
        4 => short().prop_map(Step::Write),
        2 => short().prop_map(Step::Clear),
        2 => long.prop_map(Step::Clear),
        2 => Just(Step::Snapshot),
        1 => any::<usize>().prop_map(Step::DropSnapshot),
    ];
    proptest::collection::vec(step, 1..24)
}

/// What covered pages, in order: the payload, or the tick at which they were cleared.
type Model = Vec<(Range<u64>, Result<PayloadId, u64>)>;

/// Returns what a page contains: payload and offset in it, or the tick of its clearing.
fn state(model: &Model, page: u64) -> Option<Result<(PayloadId, u64), u64>> {
    let (range, what) = model
        .iter()
        .rev()
        .find(|(range, _)| range.contains(&page))?;
    Some(what.map(|payload| (payload, (page - range.start) * PAGE_BYTES)))
}

fn found(store: &Store, content: BlobContent, page: u64) -> Option<(PayloadId, u64)> {
    let find = |view: &dyn View| {
        let mut found = None;
        let range = bytes_of(&(page..page + 1));
        visit(view, content, range.clone(), &mut |span| {
            assert_eq!(span.range, range);
            assert!(found.replace((span.payload, span.offset)).is_none());
            Ok(ControlFlow::Continue(()))
        })?;
        StoreResult::Ok(found)
    };
    store.read(find).unwrap()
}

fn changed(store: &Store, contents: [BlobContent; 2], page: u64) -> Option<Kind> {
    let find = |view: &dyn View| {
        let mut found = None;
        let range = bytes_of(&(page..page + 1));
        differences(view, contents, range.clone(), &mut |range_found, kind| {
            assert_eq!(range_found, range);
            assert!(found.replace(kind).is_none());
            ControlFlow::Continue(())
        })?;
        StoreResult::Ok(found)
    };
    store.read(find).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn maps_match_a_page_by_page_model(steps in steps()) {
        let store = store();
        let mut base = (BlobContent::Empty, Model::new());
        let mut snapshots = Vec::new();
        let mut edges = vec![0, PAGES - 1];
        for (tick, step) in (1..).zip(steps) {
            match step {
                Step::Write(pages) => {
                    let (content, payload) = put(&store, base.0, &pages);
                    base.0 = content;
                    edges.extend([pages.start, pages.end - 1]);
                    base.1.push((pages, Ok(payload)));
                }
                Step::Clear(pages) => {
                    base.0 = wipe(&store, base.0, &pages, tick);
                    edges.extend([pages.start, pages.end - 1]);
                    base.1.push((pages, Err(tick)));
                }
                Step::Snapshot => {
                    let content = base.0;
                    commit(&store, move |tx| content::retain(tx, content));
                    snapshots.push(base.clone());
                }
                Step::DropSnapshot(number) => {
                    if !snapshots.is_empty() {
                        let (content, _) = snapshots.swap_remove(number % snapshots.len());
                        commit(&store, move |tx| content::release(tx, content));
                    }
                }
            }
        }
        edges.extend(edges.clone().iter().flat_map(|at| [at.saturating_sub(1), at + 1]));
        edges.retain(|page| *page < PAGES);
        for page in edges {
            for (content, model) in snapshots.iter().chain([&base]) {
                let expected = state(model, page).and_then(Result::ok);
                prop_assert_eq!(found(&store, *content, page), expected, "page {}", page);
            }
            let new = state(&base.1, page);
            for (content, model) in &snapshots {
                let kind = match new {
                    Some(Ok(_)) => Kind::Page,
                    _ => Kind::Clear,
                };
                let expected = (state(model, page) != new).then_some(kind);
                prop_assert_eq!(changed(&store, [*content, base.0], page), expected);
            }
        }
        let all = snapshots.into_iter().chain([base]).map(|(content, _)| content);
        release_all(&store, all.collect());
    }
}

#[test]
fn clearing_8_tib_is_one_run() {
    let store = store();
    let (mut content, _) = put(&store, BlobContent::Empty, &(PAGES - 1..PAGES));
    (content, _) = put(&store, content, &(0..1));
    assert_eq!(nodes(&store), 7);
    content = wipe(&store, content, &(0..PAGES), 5);
    assert_eq!(nodes(&store), 1);
    assert_eq!(found(&store, content, 0), None);
    release_all(&store, vec![content]);
}

#[test]
fn a_snapshot_shares_all_nodes_and_a_write_makes_four() {
    let store = store();
    let mut content = BlobContent::Empty;
    for page in 0..20 {
        (content, _) = put(&store, content, &(page * 1000..page * 1000 + 2));
    }
    let before = nodes(&store);
    commit(&store, move |tx| content::retain(tx, content));
    assert_eq!(nodes(&store), before);
    let (changed, _) = put(&store, content, &(7..8));
    assert_eq!(nodes(&store), before + 4);
    release_all(&store, vec![content, changed]);
}

#[test]
fn fully_overwritten_payload_is_freed_and_others_stay() {
    let store = store();
    let (content, long) = put(&store, BlobContent::Empty, &(0..8));
    let (content, _) = put(&store, content, &(2..4));
    let (content, _) = put(&store, content, &(0..2));
    assert_eq!(found(&store, content, 7), Some((long, 7 * PAGE_BYTES)));
    assert_eq!(keys_of(&store, 1), 3);
    let content = wipe(&store, content, &(4..8), 9);
    assert_eq!(keys_of(&store, 1), 2);
    release_all(&store, vec![content]);
}

#[test]
fn large_map_is_released_in_steps() {
    let store = store();
    let mut content = BlobContent::Empty;
    for page in 0..AT_ONCE as u64 * 5 / 4 {
        (content, _) = put(&store, content, &(page * 2..page * 2 + 1));
    }
    commit(&store, move |tx| content::release(tx, content));
    assert!(nodes(&store) > 0, "all of it was released at once");
    release_all(&store, Vec::new());
}

#[test]
fn single_payload_becomes_the_map_of_its_pages() {
    let store = store();
    let whole = |length: usize| {
        commit(&store, move |tx| {
            store::adopt(tx, Staged::inline(vec![7; length].into())?)
        })
    };
    let payload = whole(2048);
    let content = BlobContent::Payload(payload);
    assert_eq!(found(&store, content, 3), Some((payload, 1536)));
    assert_eq!(found(&store, content, 4), None);
    let (content, new) = put(&store, content, &(1..2));
    assert_eq!(found(&store, content, 0), Some((payload, 0)));
    assert_eq!(found(&store, content, 1), Some((new, 0)));
    assert_eq!(found(&store, content, 2), Some((payload, 1024)));
    release_all(&store, vec![content]);
}
