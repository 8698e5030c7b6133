//! Caches what a group of commits has read from the engine, until its mask is built.
//!
//! The mask of a group needs the old value of every key that it writes (ADR 4), and the checks have
//! just read most of them: a get of 32 messages has read each place and each record that it moves.
//! Reading them again took a third of the committer's time, and more in larger trees. Keys that are
//! new to the tree are mostly adjacent, and one lookup of the gap around them answers for all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::engine::Engine;
use super::error::StoreResult;
use super::extents::Segment;
use super::view::{View, Visit, Writes};

/// Most bytes of keys and values in a group's cache; keys beyond it are read again. 512 gets of 32
/// messages without text read about as much.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Values by key; `None` for a missing key.
pub(super) type Known = BTreeMap<Vec<u8>, Option<Bytes>>;

/// A view that caches what is read through it.
pub(super) struct Remembering<'a> {
    below: &'a dyn View,
    known: RefCell<Known>,
    bytes: Cell<usize>,
}

impl<'a> Remembering<'a> {
    pub(super) fn new(below: &'a dyn View) -> Self {
        Remembering {
            below,
            known: RefCell::new(Known::new()),
            bytes: Cell::new(0),
        }
    }

    pub(super) fn into_known(self) -> Known {
        self.known.into_inner()
    }

    fn remember(&self, key: &[u8], value: Option<&Bytes>) {
        let bytes = self.bytes.get() + key.len() + value.map_or(0, Bytes::len);
        if bytes <= BYTES_MAX {
            self.bytes.set(bytes);
            self.known.borrow_mut().insert(key.to_vec(), value.cloned());
        }
    }
}

impl View for Remembering<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        if let Some(value) = self.known.borrow().get(key) {
            return Ok(value.clone());
        }
        let value = self.below.get(key)?;
        self.remember(key, value.as_ref());
        Ok(value)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.below
            .scan(from, to, &mut |key, value| -> ControlFlow<()> {
                self.remember(key, Some(value));
                visit(key, value)
            })
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.below.pin(segment)
    }
}

/// Returns the engine's values of all written keys.
pub(super) fn old_values(
    engine: &dyn Engine,
    writes: &Writes,
    known: &Known,
) -> StoreResult<Writes> {
    let mut old = Writes::new();
    // End of the gap after the last looked-up key; an inner `None` means that no key follows it.
    let mut gap: Option<Option<Vec<u8>>> = None;
    for (key, written) in writes {
        let is_in_gap = |until: &Option<Vec<u8>>| until.as_ref().is_none_or(|until| key < until);
        let value = if let Some(value) = known.get(key) {
            value.clone()
        } else if gap.as_ref().is_some_and(is_in_gap) {
            None
        } else if written.is_none() {
            // A deleted key nearly always exists.
            engine.get(key)?
        } else {
            let next = engine.first_from(key)?;
            let (at, value) = next.map_or((None, None), |(at, value)| (Some(at), Some(value)));
            let is_there = at.as_ref() == Some(key);
            gap = (!is_there).then_some(at);
            value.filter(|_| is_there)
        };
        old.insert(key.clone(), value);
    }
    Ok(old)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::super::engine::MemoryEngine;
    use super::*;

    struct Direct<'a>(&'a Counting);

    impl View for Direct<'_> {
        fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
            self.0.get(key)
        }

        fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
            self.0.scan(from, to, visit)
        }
    }

    /// An engine that counts its lookups.
    #[derive(Default)]
    struct Counting {
        inner: MemoryEngine,
        asked: AtomicUsize,
    }

    impl Counting {
        fn of(entries: impl IntoIterator<Item = u8>) -> Self {
            let engine = Counting::default();
            engine.apply(&writes(entries)).unwrap();
            engine
        }

        fn asked(&self) -> usize {
            self.asked.swap(0, Ordering::Relaxed)
        }
    }

    impl Engine for Counting {
        fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.inner.get(key)
        }

        fn first_from(&self, key: &[u8]) -> StoreResult<Option<(Vec<u8>, Bytes)>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.inner.first_from(key)
        }

        fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.inner.scan(from, to, visit)
        }

        fn apply(&self, writes: &Writes) -> StoreResult<()> {
            self.inner.apply(writes)
        }

        fn sync(&self) -> StoreResult<()> {
            self.inner.sync()
        }

        fn disk_bytes(&self) -> u64 {
            0
        }
    }

    fn writes(keys: impl IntoIterator<Item = u8>) -> Writes {
        let value = |key: u8| Some(Bytes::from(vec![key; 3]));
        keys.into_iter()
            .map(|key| (vec![key], value(key)))
            .collect()
    }

    #[test]
    fn cached_values_are_not_looked_up_again() {
        let engine = Counting::of(0..40);
        let below = Direct(&engine);
        let view = Remembering::new(&below);
        assert_eq!(view.get(&[50]).unwrap(), None);
        assert!(view.get(&[7]).unwrap().is_some());
        let visit = &mut |key: &[u8], _: &Bytes| match key {
            [29] => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        view.scan(&[10], &[40], visit).unwrap();
        assert_eq!(engine.asked(), 3);
        let moved = (10..30).map(|key| (vec![key], None));
        let moved: Writes = moved.chain(writes([7, 50])).collect();
        let old = old_values(&engine, &moved, &view.into_known()).unwrap();
        assert_eq!(engine.asked(), 0);
        assert_eq!(old[&vec![50]], None);
        assert_eq!(old[&vec![29]], Some(Bytes::from(vec![29; 3])));
    }

    #[test]
    fn adjacent_new_keys_need_one_lookup() {
        let engine = Counting::of([0, 100, 200]);
        let many = writes((1..99).chain([100]).chain(201..=255));
        let old = old_values(&engine, &many, &Known::new()).unwrap();
        assert_eq!(engine.asked(), 3);
        assert_eq!(old.values().flatten().count(), 1);
    }

    proptest! {
        /// The mask has the engine's values, however many are cached.
        #[test]
        fn old_values_are_those_of_the_engine(
            entries: std::collections::BTreeSet<u8>,
            read: std::collections::BTreeSet<u8>,
            scanned: (u8, u8),
            written in proptest::collection::btree_map(any::<u8>(), any::<bool>(), 0..60),
        ) {
            let engine = Counting::of(entries.iter().copied());
            let below = Direct(&engine);
            let view = Remembering::new(&below);
            for key in read {
                prop_assert_eq!(view.get(&[key]).unwrap(), engine.get(&[key]).unwrap());
            }
            let all = &mut |_: &[u8], _: &Bytes| ControlFlow::Continue(());
            view.scan(&[scanned.0], &[scanned.1], all).unwrap();
            let new = |puts: bool| puts.then(|| Bytes::from_static(b"new"));
            let written: Writes =
                written.into_iter().map(|(key, puts)| (vec![key], new(puts))).collect();
            let old = old_values(&engine, &written, &view.into_known()).unwrap();
            let naive: Writes = written
                .keys()
                .map(|key| (key.clone(), engine.get(key).unwrap()))
                .collect();
            prop_assert_eq!(old, naive);
        }
    }
}
