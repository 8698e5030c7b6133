//! The keys that a filter leaves: what a query has to look at.
//!
//! Each part of a filter is reduced to a region that contains everything it can match: stretches of
//! partitions, and in each of them stretches of rows. `not` is carried inwards to the comparisons,
//! which it turns round. What is said of other properties leaves all keys.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::table::entity::{PARTITION_KEY, ROW_KEY};
use crate::table::filter::condition::{Comparison, Condition, Operand};
use crate::table::value::{Value, compare_text};

/// Stretches of rows that a region tells apart, over all its partitions; where there would be more,
/// neighbours become one. Ours: several for each of the comparisons that a filter can make, of
/// which each puts an end to two stretches at most.
const STRETCHES_MAX: usize = 4_096;

/// Texts between two bounds, in the order of [`compare_text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Where it begins.
    pub lower: Bound<String>,
    /// Where it ends.
    pub upper: Bound<String>,
}

/// Entities whose partition key lies in one interval and whose row key in one of several. With a
/// single partition those of a row interval lie side by side; else in each partition there is a
/// stretch of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Their partition keys.
    pub partition_key: Interval,
    /// Their row keys, in each of the partitions: in order, apart from one another, at least one.
    pub row_keys: Vec<Interval>,
}

/// The ranges of a whole filter, in order and disjoint.
pub(super) fn of(condition: &Condition) -> Vec<KeyRange> {
    let region = region(condition, true);
    region.iter().map(Part::key_range).collect()
}

/// A place between texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut<'a> {
    Start,
    Before(&'a str),
    After(&'a str),
    End,
}

/// The texts between two places, of which the first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch<'a> {
    from: Cut<'a>,
    to: Cut<'a>,
}

const EVERYTHING: Stretch<'static> = Stretch {
    from: Cut::Start,
    to: Cut::End,
};

/// Stretches in order, apart from one another.
type Stretches<'a> = Vec<Stretch<'a>>;

/// Partitions and, in each of them, some rows.
#[derive(Clone, Debug)]
struct Part<'a> {
    partitions: Stretch<'a>,
    rows: Stretches<'a>,
}

/// Parts in order, apart from one another.
type Region<'a> = Vec<Part<'a>>;

fn everything<'a>() -> Region<'a> {
    vec![Part {
        partitions: EVERYTHING,
        rows: vec![EVERYTHING],
    }]
}

/// Where a condition can hold or, with `holds` false, where it can fail. The depth of this
/// recursion is that of the filter, which was bounded when it was read.
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

/// What is left of two lists of rows.
type Join = for<'a> fn(&[Stretch<'a>], &[Stretch<'a>]) -> Stretches<'a>;

/// The regions of several terms, joined in pairs, so that many cost little more than few.
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

/// What a comparison leaves. A key is a text: compared with anything else it matches nothing.
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

/// The texts that compare so with this one.
fn stretches(comparison: Comparison, text: &str) -> Stretches<'_> {
    // Nothing comes before the empty text.
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

/// Two regions joined: between any two places where a part of either begins or ends, their rows
/// are.
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

/// The rows of the partitions that begin here, where no part begins or ends soon.
fn rows_at<'r, 'a>(region: &'r [Part<'a>], from: Cut<'a>) -> &'r [Stretch<'a>] {
    let place = region.partition_point(|part| part.partitions.to.compare(&from).is_le());
    let part = region.get(place);
    let part = part.filter(|part| part.partitions.from.compare(&from).is_le());
    part.map_or(&[], |part| part.rows.as_slice())
}

/// What lies in either list.
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

/// What lies in both lists.
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

/// At most so many stretches: neighbours become one.
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
    /// Whether an entity with these keys lies in it.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let is_wanted = |rows: &Interval| rows.contains(row_key);
        self.partition_key.contains(partition_key) && self.row_keys.iter().any(is_wanted)
    }
}

impl Interval {
    /// All texts.
    pub const EVERYTHING: Interval = Interval {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    /// The only text in it, if it is made for one.
    pub fn single(&self) -> Option<&str> {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
            // Nothing comes before the empty text.
            (Bound::Unbounded, Bound::Included(upper)) if upper.is_empty() => Some(upper),
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
        begins && !self.ends_before(text)
    }

    /// Whether a text lies behind all of it.
    pub fn ends_before(&self, text: &str) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => compare_text(upper, text).is_lt(),
            Bound::Excluded(upper) => compare_text(upper, text).is_le(),
        }
    }
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

    /// What holds of two texts where this does not.
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
