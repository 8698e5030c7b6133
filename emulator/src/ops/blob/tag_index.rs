//! The tag index: maps each value of a tag to the blobs that have it.
//!
//! Find Blobs by Tags reads it, so that it visits only blobs with the tag. The index changes in the
//! same commit as the blob: code that changes the tags of a base blob or previous version, or
//! removes it, must update the index here. Entries of a deleted container are removed with its
//! generation.

use smalt_protocol::Timestamp;

use crate::keys::{self, Generation};
use crate::records::BlobRecord;
use crate::store::Transaction;

/// The base blob or version whose tags change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    generation: Generation,
    blob: &'a str,
    /// Id of a previous version; [`Timestamp::MAX`] for the base blob.
    at: Timestamp,
}

impl<'a> Owner<'a> {
    /// Creates the owner for a base blob.
    pub fn base(generation: Generation, blob: &'a str) -> Self {
        let at = Timestamp::MAX;
        Owner {
            generation,
            blob,
            at,
        }
    }

    /// Creates the owner for a record: a previous version if the record is one, otherwise the base
    /// blob.
    pub fn of(generation: Generation, blob: &'a str, record: &BlobRecord) -> Self {
        let id = record.version_id.filter(|_| record.is_previous);
        Owner {
            at: id.unwrap_or(Timestamp::MAX),
            ..Self::base(generation, blob)
        }
    }

    /// Updates the index from the old tags to the new ones; a removed blob has no new tags.
    pub fn change(
        self,
        tx: &mut Transaction<'_>,
        had: &[(String, String)],
        has: &[(String, String)],
    ) {
        let key = |(tag, value): &(String, String)| {
            keys::tag(self.generation, tag, value, self.blob, self.at)
        };
        for gone in had.iter().filter(|tag| !has.contains(tag)) {
            tx.delete(key(gone));
        }
        let is_new = |tag: &&(String, String)| !had.contains(tag);
        for new in has.iter().filter(is_new) {
            tx.put(key(new), bytes::Bytes::new());
        }
    }
}

/// Updates the index for a removed record; of snapshots and versions, only previous versions are in
/// the index.
pub fn forget(tx: &mut Transaction<'_>, key: &[u8], part: &BlobRecord) {
    if let Some((generation, blob)) = keys::blob_of_part(key).filter(|_| part.is_previous) {
        Owner::of(generation, &blob, part).change(tx, &part.tags, &[]);
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
    fn index_matches_the_tags_of_the_blob() {
        let clock = Clock::manual(Timestamp::from_unix_s(1));
        let store = Store::open(StoreConfig::memory(clock)).unwrap();
        for (had, has) in [
            ("", "a=1 b=2"),
            ("a=1 b=2", "a=1 b=3 c="),
            ("a=1 b=3 c=", ""),
        ] {
            let changed = store.commit_blocking(move |tx| {
                Owner::base(7, "x").change(tx, &tags(had), &tags(has));
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
