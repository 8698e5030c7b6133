//! Ranges of entities: those a signature permits, and those a query has to scan.

use std::ops::Bound;

use smalt_protocol::table::filter::Interval;

use crate::auth::Identity;
use crate::call::Call;
use crate::keys;

/// A half-open range of entity positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first position.
    pub from: Vec<u8>,
    /// The end, exclusive; `None` if it is unbounded.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns the range that a call's signature permits: from `spk` and `srk` to `epk` and `erk`,
    /// both inclusive. *Create a service SAS*, table ranges. A row key counts only together with
    /// its partition key.
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

    /// Returns the range of some partitions.
    pub fn of_partitions(partitions: &Interval) -> Self {
        KeyRange {
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
        }
    }

    /// Returns the range of some rows of a partition.
    pub fn of_rows(partition: &str, rows: &Interval) -> Self {
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

    /// Returns the range from an entity on or, without a row key, from a partition on.
    pub fn starting(partition_key: &str, row_key: Option<&str>) -> Self {
        KeyRange {
            from: match row_key {
                Some(row_key) => keys::position(partition_key, row_key),
                None => keys::partition(partition_key),
            },
            to: None,
        }
    }

    /// Returns the intersection of two ranges.
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

    /// Whether the range contains an entity.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let place = keys::position(partition_key, row_key);
        place >= self.from && self.to.as_ref().is_none_or(|to| place < *to)
    }

    /// Returns the range's keys in a table.
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
    fn signature_ranges_include_both_ends() {
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
            // A row key without its partition key has no effect.
            (
                &[("tn", "t"), ("srk", "2"), ("erk", "3")],
                &[("a", "1"), ("z", "9")],
                &[],
            ),
            (
                &[("tn", "t"), ("srk", "2"), ("epk", "b"), ("erk", "3")],
                &[("a", "1"), ("b", "3")],
                &[("b", "4"), ("c", "")],
            ),
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
    fn owner_has_no_range_limits() {
        let call = testing::call(&[("tn", "t"), ("spk", "b")], &[]);
        assert_eq!(KeyRange::of_signature(&call), KeyRange::default());
    }

    /// Strings that are often equal.
    fn text() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "a", "ab", "b", "c"]).prop_map(str::to_owned)
    }

    fn bound() -> impl Strategy<Value = Bound<String>> {
        (0..3, text()).prop_map(|(kind, text)| match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(text),
            _ => Bound::Excluded(text),
        })
    }

    proptest! {
        /// Positions sort as keys do.
        #[test]
        fn key_intervals_match_position_ranges(
            lower in bound(),
            upper in bound(),
            partition in text(),
            row in text(),
        ) {
            let interval = Interval { lower, upper };
            let partitions = KeyRange::of_partitions(&interval);
            prop_assert_eq!(partitions.contains(&partition, &row), interval.contains(&partition));
            let rows = KeyRange::of_rows(&partition, &interval);
            prop_assert_eq!(rows.contains(&partition, &row), interval.contains(&row));
            prop_assert!(!rows.contains("other", &row));
            // Both begin or end without a bound now and then.
            let both = partitions.clone().and(&rows);
            prop_assert!(!both.contains("other", &row));
            let within = partitions.contains(&partition, &row) && rows.contains(&partition, &row);
            prop_assert_eq!(both.contains(&partition, &row), within);
        }
    }
}
