//! The index of tags: which blobs have which value of a tag.
//!
//! Find Blobs by Tags reads it, so that it looks at no blob that does not have the tag. It changes
//! with the blob, in the same commit: whoever gives a base blob other tags, or takes it away, says
//! so here. What a deleted container had in it goes with its generation.

use smalt_protocol::Timestamp;

use crate::keys::{self, Generation};
use crate::store::Transaction;

/// Tells the index that a base blob that had these tags has others now; none where it is gone.
pub fn change(
    tx: &mut Transaction<'_>,
    generation: Generation,
    blob: &str,
    had: &[(String, String)],
    has: &[(String, String)],
) {
    let place =
        |(tag, value): &(String, String)| keys::tag(generation, tag, value, blob, Timestamp::MAX);
    for gone in had.iter().filter(|tag| !has.contains(tag)) {
        tx.delete(place(gone));
    }
    for new in has.iter().filter(|tag| !had.contains(tag)) {
        tx.put(place(new), bytes::Bytes::new());
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::clock::Clock;
    use crate::store::{Store, StoreConfig};

    fn tags(text: &str) -> Vec<(String, String)> {
        let pairs = text
            .split_whitespace()
            .filter_map(|tag| tag.split_once('='));
        pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn it_holds_the_tags_that_the_blob_has() {
        let clock = Clock::manual(Timestamp::from_unix_s(1));
        let store = Store::open(StoreConfig::memory(clock)).unwrap();
        for (had, has) in [
            ("", "a=1 b=2"),
            ("a=1 b=2", "a=1 b=3 c="),
            ("a=1 b=3 c=", ""),
        ] {
            let changed = store.commit_blocking(move |tx| {
                change(tx, 7, "x", &tags(had), &tags(has));
                Ok(())
            });
            changed.unwrap();
            let mut found = Vec::new();
            for (key, _) in tags("a= b= c=") {
                let from = keys::tag_values(7, &key);
                let seen = store.read(|view| {
                    view.scan(&from, &keys::after(from.clone()), &mut |place, _| {
                        found.push((key.clone(), keys::tag_place(place).0));
                        ControlFlow::Continue(())
                    })
                });
                seen.unwrap();
            }
            assert_eq!(found, tags(has), "{had} -> {has}");
        }
    }
}
