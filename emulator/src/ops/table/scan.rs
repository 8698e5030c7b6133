//! Scans ranges of a table, in one view, for a page of entities.
//!
//! Source: *Query timeout and pagination*: a page ends after 1,000 entities, 4 MiB, or when its
//! time is over. The next page begins at the entity where the scan stopped, which may have been
//! deleted by then.

use std::ops::{Bound, ControlFlow};

use smalt_protocol::limits::TABLE_PAGE_BYTES_MAX;
use smalt_protocol::table::Entity;
use smalt_protocol::table::filter::{self, Filter, Interval};

use super::range::KeyRange;
use crate::keys::{self, Generation};
use crate::records::EntityRecord;
use crate::store::{StoreResult, View};

/// Maximum entities scanned for one page. The service ends a page after five seconds; a count does
/// the same with one outcome on every machine.
pub const SEEN_MAX: usize = 20_000;
/// Maximum bytes of entities scanned for one page, for the same reason: few large ones take as long
/// as many small ones.
const SEEN_BYTES_MAX: usize = 16 * TABLE_PAGE_BYTES_MAX;
/// Maximum property names compared with a filter for one page, for the same reason: a filter with a
/// thousand comparisons takes as long as a thousand filters.
const COMPARED_MAX: usize = 50_000_000;
/// Entities of a partition that a scan skips one by one before it jumps to the next wanted row keys
/// or the next partition: a jump costs about as much.
const PASSED_MAX: usize = 16;

/// A part of a table that a query has to scan.
#[derive(Clone, Debug)]
pub struct Span {
    /// The positions to scan.
    pub range: KeyRange,
    /// The wanted row keys in each partition, in order.
    pub rows: Vec<Interval>,
}

impl Span {
    /// Returns a span of a whole range.
    pub fn whole(range: KeyRange) -> Self {
        Span {
            range,
            rows: vec![Interval::EVERYTHING],
        }
    }

    /// Returns the parts of a range that can match a filter, in order: for a single partition, one
    /// span for each interval of rows; for several, one span that covers them all, in which the
    /// scan jumps to the rows.
    pub fn of_filter(filter: &Filter, within: &KeyRange) -> Vec<Self> {
        let ranges = filter.key_ranges().into_iter();
        ranges
            .flat_map(|range| Self::of_keys(range, within))
            .collect()
    }

    fn of_keys(keys: filter::KeyRange, within: &KeyRange) -> Vec<Self> {
        let Some(partition) = keys.partition_key.single() else {
            return vec![Span {
                range: KeyRange::of_partitions(&keys.partition_key).and(within),
                rows: keys.row_keys,
            }];
        };
        let rows = keys.row_keys.iter();
        rows.map(|rows| Self::whole(KeyRange::of_rows(partition, rows).and(within)))
            .collect()
    }
}

/// A page of entities.
#[derive(Debug, Default)]
pub struct Page {
    /// The entities, in key order.
    pub entities: Vec<Entity>,
    /// Partition key and row key that the next page begins with.
    pub next: Option<(String, String)>,
}

/// Reads at most `most` entities that match a filter from the spans, which must be in order.
///
/// # Errors
/// When the store cannot be read.
pub fn page(
    view: &dyn View,
    generation: Generation,
    spans: &[Span],
    most: usize,
    filter: Option<&Filter>,
) -> StoreResult<Page> {
    if most == 0 {
        // A page of no entities is complete: a continuation token would lead here again forever.
        return Ok(Page::default());
    }
    let mut scan = Scan {
        view,
        most,
        filter,
        page: Page::default(),
        seen: 0,
        seen_bytes: 0,
        compared: 0,
        bytes: 0,
    };
    for span in spans {
        let (mut from, to) = span.range.keys(generation);
        loop {
            match scan.run(generation, &from, &to, &span.rows)? {
                Stop::End => break,
                Stop::Full => return Ok(scan.page),
                Stop::Leap(further) => from = further,
            }
        }
    }
    Ok(scan.page)
}

enum Stop {
    End,
    Full,
    /// Nothing before this key is wanted.
    Leap(Vec<u8>),
}

struct Scan<'a> {
    view: &'a dyn View,
    most: usize,
    filter: Option<&'a Filter>,
    page: Page,
    seen: usize,
    seen_bytes: usize,
    compared: usize,
    bytes: usize,
}

impl Scan<'_> {
    fn run(
        &mut self,
        generation: Generation,
        from: &[u8],
        to: &[u8],
        rows: &[Interval],
    ) -> StoreResult<Stop> {
        if from >= to {
            return Ok(Stop::End);
        }
        let mut outcome = Ok(Stop::End);
        let mut passed = 0;
        self.view.scan(from, to, &mut |key, value| {
            let names = keys::entity_names(key);
            if self.is_over() {
                self.page.next = Some(names);
                outcome = Ok(Stop::Full);
                return ControlFlow::Break(());
            }
            self.seen += 1;
            let wanted = first_wanted(rows, &names.1);
            if !wanted.is_some_and(|wanted| wanted.contains(&names.1)) {
                passed += 1;
                if passed < PASSED_MAX {
                    return ControlFlow::Continue(());
                }
                outcome = Ok(Stop::Leap(leap(generation, key, &names.0, wanted)));
                return ControlFlow::Break(());
            }
            passed = 0;
            match self.take(key, value, names) {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => {
                    outcome = Ok(Stop::Full);
                    ControlFlow::Break(())
                }
                Err(error) => {
                    outcome = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        outcome
    }

    fn is_over(&self) -> bool {
        self.page.entities.len() == self.most
            || self.seen == SEEN_MAX
            || self.seen_bytes >= SEEN_BYTES_MAX
            || self.compared >= COMPARED_MAX
    }

    /// Adds an entity if it matches. Returns whether the page has room for it.
    fn take(
        &mut self,
        key: &[u8],
        value: &bytes::Bytes,
        (partition_key, row_key): (String, String),
    ) -> StoreResult<bool> {
        let record = EntityRecord::of_value(self.view, key, value)?;
        let entity = record.named(partition_key, row_key);
        let size = entity.bytes();
        self.seen_bytes += size;
        if let Some(filter) = self.filter {
            self.compared += filter.comparisons() * (1 + entity.properties.len());
            if !filter.matches(&entity) {
                return Ok(true);
            }
        }
        let bytes = self.bytes + size;
        if bytes > TABLE_PAGE_BYTES_MAX && !self.page.entities.is_empty() {
            self.page.next = Some((entity.partition_key, entity.row_key));
            return Ok(false);
        }
        self.bytes = bytes;
        self.page.entities.push(entity);
        Ok(true)
    }
}

/// Returns the first interval that does not end before `row`; the intervals are in order.
fn first_wanted<'a>(rows: &'a [Interval], row: &str) -> Option<&'a Interval> {
    rows.get(rows.partition_point(|rows| rows.ends_before(row)))
}

/// Returns the next key that may have a wanted row key, after one whose row key is not: the start
/// of the next interval of wanted rows, or of the next partition.
fn leap(generation: Generation, key: &[u8], partition: &str, wanted: Option<&Interval>) -> Vec<u8> {
    let Some(wanted) = wanted else {
        let place = keys::after(keys::partition(partition));
        return [keys::entities(generation), place].concat();
    };
    match &wanted.lower {
        Bound::Included(first) => keys::entity(generation, partition, first),
        // It may be the row that the bound excludes.
        Bound::Excluded(before) => keys::after(keys::entity(generation, partition, before)),
        Bound::Unbounded => keys::after(key.to_vec()),
    }
}

#[cfg(test)]
mod tests;
