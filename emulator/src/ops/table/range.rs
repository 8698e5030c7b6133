//! Ranges of entities: what a signature opens, and what a query has to look at.

use std::ops::Bound;

use smalt_protocol::table::filter;

use crate::auth::Identity;
use crate::call::Call;
use crate::keys;
use crate::planted::planted;

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

    /// What a filter leaves to look at in one of its ranges. With several partitions row keys bound
    /// nothing here: [`scan`](super::scan) leaps over what they exclude.
    pub fn of_filter(range: &filter::KeyRange) -> Self {
        let (partitions, rows) = (&range.partition_key, &range.row_key);
        let Some(partition) = partitions.single() else {
            return KeyRange {
                from: match &partitions.lower {
                    Bound::Unbounded => Vec::new(),
                    Bound::Included(first) => keys::partition(first),
                    Bound::Excluded(before) => keys::after(keys::partition(before)),
                },
                to: match &partitions.upper {
                    Bound::Unbounded => None,
                    Bound::Included(last) => Some(keys::after(keys::partition(last))),
                    Bound::Excluded(end) => Some(keys::partition(end)),
                },
            };
        };
        let place = |row: &str| keys::position(partition, row);
        KeyRange {
            from: match &rows.lower {
                Bound::Unbounded => keys::partition(partition),
                Bound::Included(first) => place(first),
                Bound::Excluded(before) => keys::after(place(before)),
            },
            to: Some(match &rows.upper {
                Bound::Unbounded => keys::after(keys::partition(partition)),
                Bound::Included(last) => keys::after(place(last)),
                Bound::Excluded(end) => place(end),
            }),
        }
    }

    /// What comes from an entity on; without a row key from a partition on.
    pub fn starting(partition_key: &str, row_key: Option<&str>) -> Self {
        KeyRange {
            from: match row_key {
                Some(row_key) if planted("continuation-skips-one") => {
                    keys::after(keys::position(partition_key, row_key))
                }
                Some(row_key) => keys::position(partition_key, row_key),
                None => keys::partition(partition_key),
            },
            to: None,
        }
    }

    /// What is in both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        KeyRange {
            from: self.from.max(other.from.clone()),
            to: match (self.to, other.to.clone()) {
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
    use proptest::prelude::*;
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
                &[
                    ("tn", "t"),
                    ("spk", "b"),
                    ("srk", "2"),
                    ("epk", "c"),
                    ("erk", "5"),
                ],
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
                assert!(
                    range.contains(partition, row),
                    "{query:?} {partition} {row}"
                );
            }
            for (partition, row) in outside {
                assert!(
                    !range.contains(partition, row),
                    "{query:?} {partition} {row}"
                );
            }
        }
    }

    #[test]
    fn the_owner_is_not_bound() {
        let call = testing::call(&[("tn", "t"), ("spk", "b")], &[]);
        assert_eq!(KeyRange::of_signature(&call), KeyRange::default());
    }

    /// Texts that meet often.
    fn text() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "a", "ab", "b", "c"]).prop_map(str::to_owned)
    }

    fn comparison() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec!["PartitionKey", "RowKey"]);
        let operator = prop::sample::select(vec!["eq", "ne", "gt", "ge", "lt", "le"]);
        (key, operator, text())
            .prop_map(|(key, operator, text)| format!("{key} {operator} '{text}'"))
    }

    proptest! {
        /// What a filter accepts lies in one of its ranges, and with one partition nothing else.
        #[test]
        fn filters_bound_what_is_looked_at(
            one in comparison(),
            other in comparison(),
            joined in prop::sample::select(vec!["and", "or"]),
            partition in text(),
            row in text(),
        ) {
            let filter = filter::Filter::parse(&format!("{one} {joined} {other}")).unwrap();
            let ranges = filter.key_ranges();
            let holds = ranges.iter().any(|range| range.contains(&partition, &row));
            let within = |range: &filter::KeyRange| {
                KeyRange::of_filter(range).contains(&partition, &row)
            };
            prop_assert!(!holds || ranges.iter().any(within));
            for range in ranges.iter().filter(|range| range.partition_key.single().is_some()) {
                prop_assert_eq!(within(range), range.contains(&partition, &row));
            }
        }
    }
}
