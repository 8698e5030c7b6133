//! The keys that a filter leaves: what a query has to look at.
//!
//! Each part of a filter is reduced to a list of ranges that contains everything it can match.
//! What is said of other properties, and what is negated, leaves all keys.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::table::entity::{PARTITION_KEY, ROW_KEY};
use crate::table::filter::{Comparison, Condition, Operand};
use crate::table::value::{Value, compare_text};

/// Ranges that are told apart; more become the one that spans them. Ours: a query looks each up.
const RANGES_MAX: usize = 64;

/// Texts between two bounds, in the order of [`compare_text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Where it begins.
    pub lower: Bound<String>,
    /// Where it ends.
    pub upper: Bound<String>,
}

/// Entities whose partition key lies in one interval and whose row key in another. With a single
/// partition they lie side by side; else in each partition there is a stretch of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Their partition keys.
    pub partition_key: Interval,
    /// Their row keys, in each of the partitions.
    pub row_key: Interval,
}

/// The ranges of a whole filter, in order and disjoint.
pub(super) fn of(condition: &Condition) -> Vec<KeyRange> {
    disjoint(ranges(condition))
}

fn ranges(condition: &Condition) -> Vec<KeyRange> {
    match condition {
        Condition::All(terms) => {
            let start = vec![KeyRange::everything()];
            let mut terms = terms.iter().map(ranges);
            terms.by_ref().fold(start, |one, other| both(&one, &other))
        }
        Condition::Any(terms) => {
            let mut any = Vec::new();
            for term in terms {
                any.extend(ranges(term));
                any = bounded(any);
            }
            any
        }
        Condition::Compare(Operand::Property(name), comparison, Operand::Literal(value)) => {
            compared(name, *comparison, value)
        }
        Condition::Compare(Operand::Literal(value), comparison, Operand::Property(name)) => {
            compared(name, comparison.mirrored(), value)
        }
        Condition::Holds(Operand::Literal(Value::Boolean(false))) => Vec::new(),
        Condition::Not(_) | Condition::Compare(..) | Condition::Holds(_) => {
            vec![KeyRange::everything()]
        }
    }
}

/// What a comparison leaves. A key is a text: compared with anything else it matches nothing.
fn compared(name: &str, comparison: Comparison, value: &Value) -> Vec<KeyRange> {
    if name != PARTITION_KEY && name != ROW_KEY {
        return vec![KeyRange::everything()];
    }
    let Value::String(text) = value else {
        return Vec::new();
    };
    let mut range = KeyRange::everything();
    let interval = Interval::of(comparison, text);
    if name == PARTITION_KEY {
        range.partition_key = interval;
    } else {
        range.row_key = interval;
    }
    vec![range]
}

/// What lies in both lists.
fn both(one: &[KeyRange], other: &[KeyRange]) -> Vec<KeyRange> {
    let spans = [hull(one), hull(other)];
    let (one, other) = if one.len() * other.len() <= RANGES_MAX {
        (one, other)
    } else if one.len() >= other.len() {
        (one, spans[1].as_slice())
    } else {
        (spans[0].as_slice(), other)
    };
    let pairs = one
        .iter()
        .flat_map(|a| other.iter().map(move |b| a.intersection(b)));
    bounded(pairs.filter(|range| !range.is_empty()).collect())
}

/// The list, or what spans it where it is too long.
fn bounded(ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    if ranges.len() <= RANGES_MAX {
        return ranges;
    }
    let merged = disjoint(ranges);
    if merged.len() <= RANGES_MAX {
        merged
    } else {
        hull(&merged)
    }
}

/// The one range that spans a list; none for none.
fn hull(ranges: &[KeyRange]) -> Vec<KeyRange> {
    let mut ranges = ranges.iter();
    let first = ranges.next().cloned();
    let span = first.map(|first| ranges.fold(first, |span, range| span.hull(range)));
    span.into_iter().collect()
}

/// Ranges in order; those that meet in a partition become one, but for separate rows of a single
/// partition.
fn disjoint(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by(|one, other| {
        let partitions = lower(&one.partition_key.lower, &other.partition_key.lower);
        partitions.then_with(|| lower(&one.row_key.lower, &other.row_key.lower))
    });
    let mut merged: Vec<KeyRange> = Vec::new();
    for mut range in ranges {
        while let Some(last) = merged.pop() {
            if last.is_apart_from(&range) {
                merged.push(last);
                break;
            }
            range = last.hull(&range);
        }
        merged.push(range);
    }
    merged
}

impl KeyRange {
    /// All entities of a table.
    pub const fn everything() -> Self {
        KeyRange {
            partition_key: Interval::EVERYTHING,
            row_key: Interval::EVERYTHING,
        }
    }

    /// Whether an entity with these keys lies in it.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        self.partition_key.contains(partition_key) && self.row_key.contains(row_key)
    }

    fn is_empty(&self) -> bool {
        self.partition_key.is_empty() || self.row_key.is_empty()
    }

    fn intersection(&self, other: &Self) -> Self {
        KeyRange {
            partition_key: self.partition_key.intersection(&other.partition_key),
            row_key: self.row_key.intersection(&other.row_key),
        }
    }

    fn hull(&self, other: &Self) -> Self {
        KeyRange {
            partition_key: self.partition_key.hull(&other.partition_key),
            row_key: self.row_key.hull(&other.row_key),
        }
    }

    fn is_apart_from(&self, other: &Self) -> bool {
        if self
            .partition_key
            .intersection(&other.partition_key)
            .is_empty()
        {
            return true;
        }
        let is_one_partition =
            self.partition_key.single().is_some() && self.partition_key == other.partition_key;
        is_one_partition && self.row_key.intersection(&other.row_key).is_empty()
    }
}

impl Interval {
    /// All texts.
    pub const EVERYTHING: Interval = Interval {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    /// The texts that compare so with this one; for `ne` all.
    fn of(comparison: Comparison, text: &str) -> Self {
        let (included, excluded) = (
            Bound::Included(text.to_owned()),
            Bound::Excluded(text.to_owned()),
        );
        let (lower, upper) = match comparison {
            Comparison::Equal => (included.clone(), included),
            Comparison::NotEqual => (Bound::Unbounded, Bound::Unbounded),
            Comparison::Greater => (excluded, Bound::Unbounded),
            Comparison::GreaterOrEqual => (included, Bound::Unbounded),
            Comparison::Less => (Bound::Unbounded, excluded),
            Comparison::LessOrEqual => (Bound::Unbounded, included),
        };
        Interval { lower, upper }
    }

    /// The only text in it, if it is made for one.
    pub fn single(&self) -> Option<&str> {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
            _ => None,
        }
    }

    /// Whether a text lies in it.
    pub fn contains(&self, text: &str) -> bool {
        let begins = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => compare_text(lower, text).is_le(),
            Bound::Excluded(lower) => compare_text(lower, text).is_lt(),
        };
        begins
            && match &self.upper {
                Bound::Unbounded => true,
                Bound::Included(upper) => compare_text(text, upper).is_le(),
                Bound::Excluded(upper) => compare_text(text, upper).is_lt(),
            }
    }

    /// Whether no text can lie in it.
    pub fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) => compare_text(lower, upper).is_gt(),
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => compare_text(lower, upper).is_ge(),
            // Nothing comes before the empty text.
            (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
            _ => false,
        }
    }

    fn intersection(&self, other: &Self) -> Self {
        let begins_later = lower(&self.lower, &other.lower).is_ge();
        let ends_earlier = upper(&self.upper, &other.upper).is_le();
        Interval {
            lower: pick(begins_later, &self.lower, &other.lower),
            upper: pick(ends_earlier, &self.upper, &other.upper),
        }
    }

    fn hull(&self, other: &Self) -> Self {
        let begins_earlier = lower(&self.lower, &other.lower).is_le();
        let ends_later = upper(&self.upper, &other.upper).is_ge();
        Interval {
            lower: pick(begins_earlier, &self.lower, &other.lower),
            upper: pick(ends_later, &self.upper, &other.upper),
        }
    }
}

fn pick(is_first: bool, first: &Bound<String>, second: &Bound<String>) -> Bound<String> {
    if is_first { first } else { second }.clone()
}

/// Which of two beginnings comes first.
fn lower(one: &Bound<String>, other: &Bound<String>) -> Ordering {
    match (one, other) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Less,
        (_, Bound::Unbounded) => Ordering::Greater,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
            compare_text(a, b).then(is_excluded(one).cmp(&is_excluded(other)))
        }
    }
}

/// Which of two ends comes first.
fn upper(one: &Bound<String>, other: &Bound<String>) -> Ordering {
    match (one, other) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
            compare_text(a, b).then(is_excluded(other).cmp(&is_excluded(one)))
        }
    }
}

const fn is_excluded(bound: &Bound<String>) -> bool {
    matches!(bound, Bound::Excluded(_))
}

impl Comparison {
    /// The same with its sides exchanged.
    const fn mirrored(self) -> Self {
        match self {
            Comparison::Equal => Comparison::Equal,
            Comparison::NotEqual => Comparison::NotEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        }
    }
}
