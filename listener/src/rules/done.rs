//! The memory of messages that were handled but not yet deleted.
//!
//! When a delete fails after the handler succeeded, the message returns; this memory lets the
//! listener delete it then without running the handler again. The memory is bounded and forgets the
//! oldest first, so it reduces duplicates but does not exclude them.

use std::collections::{BTreeMap, VecDeque};

/// Largest number of remembered ids; about 5 MiB.
pub const DONE_MAX: usize = 65_536;

/// How a message whose delete is missing was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The handler succeeded.
    Handled,
    /// A copy was put into the poison queue.
    Copied,
}

/// A bounded memory of the ids of finished messages.
#[derive(Debug)]
pub struct DoneCache {
    ids: BTreeMap<String, Finished>,
    order: VecDeque<String>,
    most: usize,
}

impl Default for DoneCache {
    fn default() -> Self {
        DoneCache::new(DONE_MAX)
    }
}

impl DoneCache {
    /// Creates a memory of at most `most` ids.
    pub fn new(most: usize) -> Self {
        DoneCache {
            ids: BTreeMap::new(),
            order: VecDeque::new(),
            most: most.max(1),
        }
    }

    /// Remembers a finished message.
    pub fn insert(&mut self, id: &str, finished: Finished) {
        if self.ids.insert(id.to_owned(), finished).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        while self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.ids.remove(&oldest);
            }
        }
    }

    /// Returns how the message was finished, if it is remembered.
    pub fn get(&self, id: &str) -> Option<Finished> {
        self.ids.get(id).copied()
    }

    /// Forgets a message that was deleted.
    pub fn remove(&mut self, id: &str) {
        if self.ids.remove(id).is_some()
            // Searches from the end: it was usually added a moment ago.
            && let Some(at) = self.order.iter().rposition(|kept| kept == id)
        {
            self.order.remove(at);
        }
    }

    /// Returns the number of remembered ids.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether no id is remembered.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// It keeps the newest ids, each where it was first inserted since it was last forgotten.
        #[test]
        fn forgets_the_oldest_first_and_never_grows_beyond_its_bound(
            most in 1_usize..4, steps in prop::collection::vec((0..3, "[a-e]"), 0..40),
        ) {
            let (mut done, mut kept) = (DoneCache::new(most), Vec::<(String, Finished)>::new());
            for (what, id) in steps {
                let finished = [Finished::Handled, Finished::Copied][usize::from(what == 1)];
                match kept.iter_mut().find(|(known, _)| *known == id) {
                    _ if what == 0 => {
                        done.remove(&id);
                        kept.retain(|(known, _)| *known != id);
                        continue;
                    }
                    Some(known) => known.1 = finished,
                    None => kept.push((id.clone(), finished)),
                }
                kept.drain(..kept.len().saturating_sub(most));
                done.insert(&id, finished);
                for id in ["a", "b", "c", "d", "e"] {
                    let known = kept.iter().find(|(known, _)| known == id);
                    prop_assert_eq!(done.get(id), known.map(|(_, finished)| *finished));
                }
                prop_assert_eq!((done.len(), done.is_empty()), (kept.len(), kept.is_empty()));
            }
        }
    }
}
