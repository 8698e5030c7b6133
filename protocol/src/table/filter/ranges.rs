//! The key ranges of a filter, which a query has to scan.
//!
//! Each part of a filter is reduced to a region that contains everything it can match: intervals of
//! partitions, each with intervals of rows. `not` is pushed down to the comparisons and inverts
//! them. A comparison of any other property allows all keys.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::table::entity::{PARTITION_KEY, ROW_KEY};
use crate::table::filter::condition::{Comparison, Condition, Operand};
use crate::table::value::{Value, compare_text};

/// Maximum row stretches of a region, over all its partitions; beyond it, neighbours are merged.
/// smalt's own limit: several for each comparison of the largest filter, and each comparison ends
/// at most two stretches.
const STRETCHES_MAX: usize = 4_096;

/// The strings between two bounds, in the order of [`compare_text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The lower bound.
    pub lower: Bound<String>,
    /// The upper bound.
    pub upper: Bound<String>,
}

/// The entities whose partition key lies in one interval and whose row key lies in one of several.
/// With a single partition the entities of a row interval are contiguous; otherwise there is a
/// contiguous stretch in each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The interval of the partition keys.
    pub partition_key: Interval,
    /// The intervals of the row keys within each partition: at least one, sorted and disjoint.
    pub row_keys: Vec<Interval>,
}

/// Returns the ranges of a whole filter, sorted and disjoint.
pub(super) fn of(condition: &Condition) -> Vec<KeyRange> {
    let region = region(condition, true);
    region.iter().map(Part::key_range).collect()
}

/// A position between strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut<'a> {
    Start,
    Before(&'a str),
    After(&'a str),
    End,
}

/// The strings between two positions; `from` is before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch<'a> {
    from: Cut<'a>,
    to: Cut<'a>,
}

const EVERYTHING: Stretch<'static> = Stretch {
    from: Cut::Start,
    to: Cut::End,
};

/// Sorted, disjoint stretches.
type Stretches<'a> = Vec<Stretch<'a>>;

/// Partitions and, in each of them, some rows.
#[derive(Clone, Debug)]
struct Part<'a> {
    partitions: Stretch<'a>,
    rows: Stretches<'a>,
}

/// Sorted parts with disjoint partitions.
type Region<'a> = Vec<Part<'a>>;

fn everything<'a>() -> Region<'a> {
    vec![Part {
        partitions: EVERYTHING,
        rows: vec![EVERYTHING],
    }]
}

/// Returns the keys for which a condition can be true or, if `holds` is false, can be false.
/// Recurses as deep as the filter, whose depth the parser limits.
fn region(condition: &Condition, holds: bool) -> Region<'_> {
    match condition {
        Condition::Not(term) => region(term, !holds),
        Condition::All(terms) => combined(terms, holds, if holds { both } else { either }),
        Condition::Any(terms) => combined(terms, holds, if holds { either } else { both }),
        Condition::Compare(Operand::Property(name), comparison, Operand::Literal(value)) => {
            compared(name, *comparison, value, holds)
        }
        Condition::Compare(Operand::Literal(value), comparison, Operand::Property(name)) => {
            compared(name, comparison.mirrored(), value, holds)
        }
        Condition::Holds(Operand::Literal(Value::Boolean(given))) if *given != holds => Vec::new(),
        Condition::Compare(..) | Condition::Holds(_) => everything(),
    }
}

/// Combines two lists of rows: their union or intersection.
type Join = for<'a> fn(&[Stretch<'a>], &[Stretch<'a>]) -> Stretches<'a>;

/// Joins the regions of several terms in pairs, so that the cost of many terms grows slowly.
fn combined(terms: &[Condition], holds: bool, join: Join) -> Region<'_> {
    let mut regions: Vec<_> = terms.iter().map(|term| region(term, holds)).collect();
    while regions.len() > 1 {
        let pairs = regions.chunks(2).map(|pair| match pair {
            [one, other] => joined(one, other, join),
            alone => alone.concat(),
        });
        regions = pairs.collect();
    }
    regions.pop().unwrap_or_else(everything)
}

/// Returns the region of a comparison. Keys are strings, so a comparison with any other type
/// matches nothing.
fn compared<'a>(name: &str, comparison: Comparison, value: &'a Value, holds: bool) -> Region<'a> {
    if name != PARTITION_KEY && name != ROW_KEY {
        return everything();
    }
    let Value::String(text) = value else {
        return if holds { Vec::new() } else { everything() };
    };
    let comparison = if holds {
        comparison
    } else {
        comparison.opposite()
    };
    let mut found = stretches(comparison, text);
    found.retain(|stretch| !stretch.is_empty());
    if name == PARTITION_KEY {
        let parts = found.into_iter().map(|partitions| Part {
            partitions,
            rows: vec![EVERYTHING],
        });
        return parts.collect();
    }
    let all = Part {
        partitions: EVERYTHING,
        rows: found,
    };
    Some(all)
        .filter(|all| !all.rows.is_empty())
        .into_iter()
        .collect()
}

/// Returns the strings for which the comparison with `text` is true.
fn stretches(comparison: Comparison, text: &str) -> Stretches<'_> {
    // No string is less than the empty string.
    let before = if text.is_empty() {
        Cut::Start
    } else {
        Cut::Before(text)
    };
    let after = Cut::After(text);
    let up_to = |to| Stretch {
        from: Cut::Start,
        to,
    };
    let starting = |from| Stretch { from, to: Cut::End };
    match comparison {
        Comparison::Equal => vec![Stretch {
            from: before,
            to: after,
        }],
        Comparison::NotEqual => vec![up_to(before), starting(after)],
        Comparison::Greater => vec![starting(after)],
        Comparison::GreaterOrEqual => vec![starting(before)],
        Comparison::Less => vec![up_to(before)],
        Comparison::LessOrEqual => vec![up_to(after)],
    }
}

/// Joins two regions: splits the partitions wherever a part of either region begins or ends, and
/// joins the rows of each piece.
fn joined<'a>(one: &[Part<'a>], other: &[Part<'a>], join: Join) -> Region<'a> {
    let parts = one.iter().chain(other).map(|part| part.partitions);
    let mut cuts: Vec<Cut<'_>> = parts.flat_map(|part| [part.from, part.to]).collect();
    cuts.sort_unstable_by(|a, b| a.compare(b));
    cuts.dedup();
    let pairs: Vec<_> = cuts
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .map(|(from, to)| {
            (
                Stretch { from, to },
                rows_at(one, from),
                rows_at(other, from),
            )
        })
        .collect();
    let count: usize = pairs.iter().map(|(_, a, b)| a.len() + b.len()).sum();
    let most = if count > STRETCHES_MAX {
        (STRETCHES_MAX / pairs.len()).max(1)
    } else {
        STRETCHES_MAX
    };
    let mut region: Region<'_> = Vec::new();
    for (partitions, a, b) in pairs {
        let rows = thinned(join(a, b), most);
        match region.last_mut() {
            _ if rows.is_empty() => {}
            Some(last) if last.partitions.to == partitions.from && last.rows == rows => {
                last.partitions.to = partitions.to;
            }
            _ => region.push(Part { partitions, rows }),
        }
    }
    region
}

/// Returns the rows at the partitions from `from` to the next cut; empty where the region has no
/// part.
fn rows_at<'r, 'a>(region: &'r [Part<'a>], from: Cut<'a>) -> &'r [Stretch<'a>] {
    let place = region.partition_point(|part| part.partitions.to.compare(&from).is_le());
    let part = region.get(place);
    let part = part.filter(|part| part.partitions.from.compare(&from).is_le());
    part.map_or(&[], |part| part.rows.as_slice())
}

/// Returns the union of two lists.
fn either<'a>(one: &[Stretch<'a>], other: &[Stretch<'a>]) -> Stretches<'a> {
    let mut all = [one, other].concat();
    all.sort_by(|a, b| a.from.compare(&b.from));
    let mut merged: Stretches<'_> = Vec::with_capacity(all.len());
    for stretch in all {
        match merged.last_mut() {
            Some(last) if stretch.from.compare(&last.to).is_le() => {
                last.to = last.to.max(stretch.to);
            }
            _ => merged.push(stretch),
        }
    }
    merged
}

/// Returns the intersection of two lists.
fn both<'a>(one: &[Stretch<'a>], other: &[Stretch<'a>]) -> Stretches<'a> {
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        let shared = Stretch {
            from: if a.from.compare(&b.from).is_ge() {
                a.from
            } else {
                b.from
            },
            to: if a.to.compare(&b.to).is_le() {
                a.to
            } else {
                b.to
            },
        };
        if !shared.is_empty() {
            common.push(shared);
        }
        if a.to.compare(&b.to).is_le() {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}

/// Merges neighbours until there are at most `most` stretches.
fn thinned(stretches: Stretches<'_>, most: usize) -> Stretches<'_> {
    if stretches.len() <= most {
        return stretches;
    }
    let size = stretches.len().div_ceil(most);
    let groups = stretches.chunks(size).map(|group| Stretch {
        from: group[0].from,
        to: group[group.len() - 1].to,
    });
    groups.collect()
}

impl Cut<'_> {
    fn compare(&self, other: &Cut<'_>) -> Ordering {
        let rank = |cut: &Cut<'_>| match cut {
            Cut::Start => 0,
            Cut::Before(_) | Cut::After(_) => 1,
            Cut::End => 2,
        };
        match (self, other) {
            (Cut::Before(a) | Cut::After(a), Cut::Before(b) | Cut::After(b)) => {
                let is_after = |cut: &Cut<'_>| matches!(cut, Cut::After(_));
                compare_text(a, b).then(is_after(self).cmp(&is_after(other)))
            }
            _ => rank(self).cmp(&rank(other)),
        }
    }

    fn max(self, other: Self) -> Self {
        if self.compare(&other).is_ge() {
            self
        } else {
            other
        }
    }

    fn lower(self) -> Bound<String> {
        match self {
            Cut::Before(text) => Bound::Included(text.to_owned()),
            Cut::After(text) => Bound::Excluded(text.to_owned()),
            Cut::Start | Cut::End => Bound::Unbounded,
        }
    }

    fn upper(self) -> Bound<String> {
        match self {
            Cut::Before(text) => Bound::Excluded(text.to_owned()),
            Cut::After(text) => Bound::Included(text.to_owned()),
            Cut::Start | Cut::End => Bound::Unbounded,
        }
    }
}

impl Stretch<'_> {
    fn is_empty(&self) -> bool {
        self.from.compare(&self.to).is_ge()
    }

    fn interval(&self) -> Interval {
        Interval {
            lower: self.from.lower(),
            upper: self.to.upper(),
        }
    }
}

impl Part<'_> {
    fn key_range(&self) -> KeyRange {
        KeyRange {
            partition_key: self.partitions.interval(),
            row_keys: self.rows.iter().map(Stretch::interval).collect(),
        }
    }
}

impl KeyRange {
    /// Returns whether the range contains an entity with these keys.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let is_wanted = |rows: &Interval| rows.contains(row_key);
        self.partition_key.contains(partition_key) && self.row_keys.iter().any(is_wanted)
    }
}

impl Interval {
    /// The interval of all strings.
    pub const EVERYTHING: Interval = Interval {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    /// Returns the only string of the interval, if it was made for a single one.
    pub fn single(&self) -> Option<&str> {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
            // No string is less than the empty string.
            (Bound::Unbounded, Bound::Included(upper)) if upper.is_empty() => Some(upper),
            _ => None,
        }
    }

    /// Returns whether the interval contains a string.
    pub fn contains(&self, text: &str) -> bool {
        let begins = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => compare_text(lower, text).is_le(),
            Bound::Excluded(lower) => compare_text(lower, text).is_lt(),
        };
        begins && !self.ends_before(text)
    }

    /// Returns whether a string lies after the whole interval.
    pub fn ends_before(&self, text: &str) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => compare_text(upper, text).is_lt(),
            Bound::Excluded(upper) => compare_text(upper, text).is_le(),
        }
    }
}

impl Comparison {
    /// Returns the comparison with its sides exchanged.
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

    /// Returns the comparison that is true for two strings exactly when this one is false.
    const fn opposite(self) -> Self {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
        }
    }
}
