//! Ranges of entities: what a signature opens, and what a query has to look at.

use crate::auth::Identity;
use crate::call::Call;
use crate::keys;

/// Places of entities from one on up to, but without, another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it starts.
    pub from: Vec<u8>,
    /// Where it ends; absent where nothing ends it.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// What the signature of a call opens: from `spk` and `srk` to `epk` and `erk`, both included.
    /// *Create a service SAS*, table ranges. A row key counts only together with its partition key.
    pub fn of_signature(call: &Call) -> Self {
        if !matches!(call.identity, Identity::Sas(_)) || call.query("tn").is_none() {
            return KeyRange::default();
        }
        let from = match (call.query("spk"), call.query("srk")) {
            (None, _) => Vec::new(),
            (Some(partition), None) => keys::partition(partition),
            (Some(partition), Some(row)) => keys::position(partition, row),
        };
        let to = match (call.query("epk"), call.query("erk")) {
            (None, _) => None,
            (Some(partition), None) => Some(keys::after(keys::partition(partition))),
            (Some(partition), Some(row)) => Some(keys::after(keys::position(partition, row))),
        };
        KeyRange { from, to }
    }

    /// What is in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        KeyRange {
            from: self.from.max(other.from),
            to: match (self.to, other.to) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
        }
    }

    /// Whether an entity is in it.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let place = keys::position(partition_key, row_key);
        place >= self.from && self.to.as_ref().is_none_or(|to| place < *to)
    }

    /// The keys of a table that it spans.
    pub fn keys(&self, generation: keys::Generation) -> (Vec<u8>, Vec<u8>) {
        let table = keys::entities(generation);
        let from = [table.as_slice(), &self.from].concat();
        let to = match &self.to {
            Some(to) => [table.as_slice(), to].concat(),
            None => keys::after(table),
        };
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use smalt_protocol::signing::permissions::Permissions;

    use super::*;
    use crate::ops::blob::testing;

    fn range(query: &[(&str, &str)]) -> KeyRange {
        let mut call = testing::call(query, &[]);
        call.identity = Identity::Sas(Permissions::default());
        KeyRange::of_signature(&call)
    }

    #[test]
    fn signatures_open_ranges_with_both_ends() {
        for (query, inside, outside) in [
            (&[][..], &[("", ""), ("z", "z")][..], &[][..]),
            (
                &[("tn", "t"), ("spk", "b"), ("srk", "2"), ("epk", "c"), ("erk", "5")],
                &[("b", "2"), ("b", "9"), ("c", ""), ("c", "5")],
                &[("b", "1"), ("a", "9"), ("c", "50"), ("c", "6"), ("d", "")],
            ),
            (
                &[("tn", "t"), ("spk", "b"), ("epk", "b")],
                &[("b", ""), ("b", "z")],
                &[("a", "z"), ("ba", "")],
            ),
            (&[("tn", "t"), ("srk", "2")], &[("a", "1")], &[]),
            // Without a table it is the signature of an account.
            (&[("spk", "b")], &[("a", "")], &[]),
        ] {
            let range = range(query);
            for (partition, row) in inside {
                assert!(range.contains(partition, row), "{query:?} {partition} {row}");
            }
            for (partition, row) in outside {
                assert!(!range.contains(partition, row), "{query:?} {partition} {row}");
            }
        }
    }

    #[test]
    fn the_owner_is_not_bound() {
        let call = testing::call(&[("tn", "t"), ("spk", "b")], &[]);
        assert_eq!(KeyRange::of_signature(&call), KeyRange::default());
    }
}
